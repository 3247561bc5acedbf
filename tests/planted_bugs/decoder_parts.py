"""Bugs in the parts of decoder-only models: RMS norm, rotary positions, gates and shared heads."""

from planted_bugs.bug import Place

BUGS = {
    "functional/rms_norm.py": {
        "dx = rrms * (dxhat - xhat * along)": {
            "RMS norm: rrms left out": "dx = dxhat - xhat * along",
            "RMS norm: term through the mean square": "dx = rrms * dxhat",
            "RMS norm: sign of the mean square": "dx = rrms * (dxhat + xhat * along)",
        },
        "along = (dxhat * xhat).mean(-1, keepdims=True)": {
            "RMS norm: along summed": "along = (dxhat * xhat).sum(-1, keepdims=True)"
        },
        "dxhat = dy * gain": {"RMS norm: gain left out": "dxhat = dy"},
        "dgain = (dy * xhat).sum(rows)": {"RMS norm: dgain over one axis": "(rows) → (0)"},
    },
    "nn/norm.py": {
        Place("self.gain.accumulate(dgain)", nth=3, of=4): {
            "RMSNorm: gain": "self.gain.grad = dgain",
            "RMSNorm: gain lost": "pass",
        }
    },
    "functional/rotary.py": {
        "dx, _ = rotate(dy, cos, -sin, layout)": {
            "rotary: backward rotates forward": "dx, _ = rotate(dy, cos, sin, layout)",
            "rotary: backward in the other layout": (
                'layout → "halves" if layout == "interleaved" else "interleaved"'
            ),
        },
        "y[..., second] = a * sin + b * cos": {
            "rotary: sine and cosine swapped in the second number": "sin + b * cos → cos + b * sin"
        },
        "y[..., width:] = x[..., width:]": {
            "rotary: the columns that are not rotated are lost": "= x[..., width:] → = 0",
        },
        "-np.arange(0, width, 2) / width": {
            "rotary: angles of all columns, not of pairs": "-np.arange(width // 2) / width"
        },
    },
    "nn/positions.py": {
        "return table[start : start + length]": {
            "RotaryPositions: positions restart at each call": "return table[:length]"
        },
        "return rotate_backward(dy, cache)": {"RotaryPositions: backward skipped": "return dy"},
    },
    "functional/gated.py": {
        Place("dactivated, dvalue = dy * cache.value, dy * cache.activated", nth=1, of=3): {
            "swiglu: factors swapped": "dactivated, dvalue → dvalue, dactivated"
        },
        "return swish_backward(dactivated, cache.activation), dvalue": {
            "swiglu: activation skipped": "return dactivated, dvalue"
        },
        "return gelu_tanh_backward(dactivated, cache.activation), dvalue": {
            "geglu_tanh: activation skipped": "return dactivated, dvalue"
        },
        Place("dactivated, dvalue = dy * cache.value, dy * cache.activated", nth=2, of=3): {
            "geglu: factors swapped": "dactivated, dvalue → dvalue, dactivated"
        },
        "return gelu_backward(dactivated, cache.activation), dvalue": {
            "geglu: gradients swapped": "return dvalue, gelu_backward(dactivated, cache.activation)"
        },
    },
    "nn/feed_forward.py": {
        "return self.gate.backward(dgate, cache.gate) + self.value.backward(dvalue, cache.value)": {
            "GatedFeedForward: gradient through the gate": "return self.value.backward(dvalue, cache.value)",
            "GatedFeedForward: gate and value swapped": (
                "return self.gate.backward(dvalue, cache.gate) + self.value.backward(dgate, cache.value)"
            ),
        },
        "dh = dropout_backward(dh, cache.dropout_mask)": {"GatedFeedForward: dropout skipped": "dh = dh"},
    },
    "functional/heads.py": {
        "return dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)": {
            "repeat heads: averaged": "sum(2) → mean(2)",
            "repeat heads: first copy only": ".sum(2) → [:, :, 0]",
            "repeat heads: summed over the groups": (
                "return dy.reshape(batch, n_repeats, n_heads // n_repeats, length, width).sum(1)"
            ),
        },
        "return dy[..., :width].sum(1, keepdims=True), dy[..., width:]": {
            "join shared: first head only": ".sum(1, keepdims=True) → [:, :1]",
            "join shared: averaged over the heads": ".sum(1 → .mean(1",
        },
    },
    "nn/attention/multi_head_latent.py": {
        "dx = dx + self.latent.backward(dc, caches.latent)": {
            "latent attention: gradient through the latent vector lost": "pass"
        },
        "dx = self.key_rotary.project_backward([dshared], caches.key_rotary)": {
            "latent attention: gradient through the rotated key lost": "dx = 0"
        },
        "return self.linear.backward(self.norm.backward(dc, cache.norm), cache.linear)": {
            "latent attention: norm of the latent vector skipped": "self.norm.backward(dc, cache.norm) → dc"
        },
        "dquery = self.query_latent.backward(dquery, caches.query_latent)": {
            "latent attention: gradient through the latent query lost": "dquery = 0"
        },
        "self.scale = self.d_head**-0.5": {
            "latent attention, decoding: scale of the width of the absorbed columns": "pass"
        },
        "new, _ = rotate(new, *rotation)": {
            "latent attention, decoding: keys cached without the rotation": "pass"
        },
        "cached, cached[..., d_rotary:], mask": {
            "latent attention, decoding: positions among the values": (
                "cached[..., d_rotary:] → cached[..., : -d_rotary]"
            )
        },
        "self.n_heads, d_head).transpose(1, 2, 0)": {
            "latent attention, decoding: heads and columns of Wk mixed up": (
                "self.n_heads, d_head).transpose(1, 2, 0) → d_head, self.n_heads).transpose(2, 1, 0)"
            )
        },
    },
    "models/deepseek.py": {
        "base=c.rotary_base,": {"DeepSeek: base of the rotation left out": ""},
    },
    "nn/attention/multi_head.py": {
        "dv = repeat_heads_backward(dv, self.n_repeats)": {
            "multi-head, grouped: dv of the first query head of each group": "dv = dv[:, :: self.n_repeats]"
        },
        "dk = repeat_heads_backward(dk, self.n_repeats)": {
            "multi-head: shared heads averaged": ") → ) / self.n_repeats"
        },
        "self.rotary.backward(dq, cache.rotation), self.rotary.backward(dk, cache.rotation)": {
            "multi-head, rotary: dk not rotated back": "self.rotary.backward(dk, cache.rotation) → dk",
            "multi-head, rotary: dq and dk swapped": (
                "self.rotary.backward(dk, cache.rotation), self.rotary.backward(dq, cache.rotation)"
            ),
        },
    },
    "nn/attention/decoding.py": {
        "start = 0 if kv_cache is None else kv_cache.length": {
            "decoding, rotary: positions restart at each step": "start = 0"
        },
        "q = q.reshape(batch, *groups, width)  # (B, G, R, K)": {
            "decoding, shared keys: the query heads of a group are interleaved": (
                "q = q.reshape(batch, *groups[::-1], width).swapaxes(1, 2)"
            )
        },
    },
    "nn/attention/kv_cache.py": {
        "new = slice(self.length, self.length + n_new)": {
            "KV cache: each step overwrites the first positions": "new = slice(0, n_new)"
        },
        "else self.length[to_numpy(rows)]": {
            "KV cache: the lengths of the sentences are not reordered": "else self.length"
        },
    },
    "functional/masks.py": {
        "return (query >= key) & (query < key + window)": {
            "causal mask: window one too long": "query < → query <="
        },
        "query = xp.arange(start, start + length)[:, None]": {
            "causal mask: the start left out": "query = xp.arange(length)[:, None]"
        },
    },
    "functional/qk_norm.py": {
        "dmerged, dgain = rms_norm_backward(merge_heads(dy), norm_cache)": {
            "QK-norm: gain applied twice": "merge_heads(dy) → merge_heads(dy) * norm_cache.gain"
        },
        "return rms_norm_backward(dy, norm_cache)": {
            "QK-norm: norm skipped": "return dy, rms_norm_backward(dy, norm_cache)[1]"
        },
        "if len(gain) == width:": {"QK-norm: each head by itself with its part of the gain": "if True:"},
    },
    "nn/attention/qk_norm.py": {
        "dk, dkey_gain = qk_norm_backward(dk, normed.key)": {
            "QKNormAttention: dk not passed through the norm": "dk, dkey → _, dkey"
        },
        "self.query_gain.accumulate(dquery_gain)": {"QKNormAttention: gain of the queries lost": "pass"},
        "self.key_gain.accumulate(dkey_gain)": {
            "QKNormAttention: gains swapped": "dkey_gain → dquery_gain[: len(dkey_gain)]"
        },
    },
    "models/qwen3.py": {
        "attention = partial(QKNormAttention, eps=config.norm_eps)": {
            "Qwen3: eps of the norms of queries and keys left out": ", eps=config.norm_eps → "
        }
    },
    "models/olmo2.py": {
        "dx = dy + self.feed_forward.backward(dh, cache.feed_forward)": {
            "OLMo 2: identity path around the feed-forward lost": "dy + self → self"
        },
        "dh = self.norm2.backward(dh, cache.norm2)": {"OLMo 2: norm behind the feed-forward skipped": "pass"},
        "dh = self.norm1.backward(dh, cache.norm1)": {"OLMo 2: norm behind attention skipped": "pass"},
        "return dx + self.self_attention.backward(dh, cache.self_attention)": {
            "OLMo 2: identity path around attention lost": "dx + self → self"
        },
    },
    "functional/experts.py": {
        "dweights = (dweights - (dweights * weights).sum(-1, keepdims=True)) / total": {
            "router: the sum of the chosen probabilities is a constant": "dweights = dweights / total",
            "router: not divided by the sum": " / total → ",
        },
        Place("return softmax_backward(dprobs, probs)", nth=1, of=2): {
            "router: softmax skipped": "softmax_backward(dprobs, probs) → dprobs"
        },
        "dprobs[xp.arange(len(chosen))[:, None], chosen] = dweights": {
            "router: gradients at the first experts": ", chosen] → , : chosen.shape[1]]"
        },
        "dweights = (dy[:, None] * outputs).sum(-1)": {
            "experts: dweights averaged over the width": ".sum(-1) → .mean(-1)"
        },
        "doutputs = weights[..., None] * dy[:, None]": {
            "experts: outputs without their weights": (
                "doutputs = array_module(dy).ones_like(weights)[..., None] * dy[:, None]"
            )
        },
        "dprobs = (dloss * n_experts / n_tokens) * share": {
            "load balancing: probabilities summed over the tokens": " / n_tokens → ",
            "load balancing: sign": "dprobs = -(dloss * n_experts / n_tokens) * share",
        },
        'axis=-1, kind="stable")[:, :k]': {"router: the least probable experts": "[:, :k] → [:, -k:]"},
    },
    "nn/experts.py": {
        "[cache.order], cache.cuts)": {
            "MixtureOfExperts: dy in the order of the tokens": "[cache.order], cache.cuts → , cache.cuts"
        },
        "[xp.argsort(cache.order)].reshape(doutputs.shape).sum(1)": {
            "MixtureOfExperts: dx in the order of the experts": "[xp.argsort(cache.order)] → ",
            "MixtureOfExperts: dx of the first expert alone": ".sum(1) → [:, 0]",
        },
        "dtokens + self.router.backward(dlogits, cache.router)": {
            "MixtureOfExperts: gradient through the router lost": (
                "dtokens + 0 * self.router.backward(dlogits, cache.router)"
            )
        },
        "dlogits = dlogits + load_balancing_backward(dbalance, cache.balancing)": {
            "MixtureOfExperts: the balance has no gradient": "pass"
        },
        "outputs = xp.concatenate(outputs)[xp.argsort(order)]": {
            "MixtureOfExperts: outputs in the order of the experts": "[xp.argsort(order)] → "
        },
    },
    "models/mixture.py": {
        "dh = self.feed_forward.backward(dh, cache.feed_forward, *dbalance)": {
            "Mixture: the balance of a layer has no gradient": ", *dbalance → "
        },
        "dx = dy + self.norm2.backward(dh, cache.norm2)": {
            "Mixture: identity path around the experts lost": "dy + self → self"
        },
        "return dx + self.norm1.backward(dh, cache.norm1)": {
            "Mixture: identity path around attention lost": "dx + self → self"
        },
        "[dauxiliary * self._balance_factor(cache)] if dauxiliary": {
            "Mixture: the gradient of the balance without its weight": " * self._balance_factor(cache) → "
        },
        "Block if layer in config.dense": {
            "Mixture: the other layers are dense": "in config → not in config"
        },
    },
    "functional/soft_cap.py": {
        "return dy * (1 - cache.t * cache.t)": {
            "soft cap: derivative of another function": "1 - cache.t * cache.t → 1 - cache.t",
            "soft cap: passed through": "return dy",
        },
        "t = array_module(x).tanh(x / cap)": {"soft cap: not divided by the cap": "x / cap → x"},
    },
    "nn/attention/capped.py": {
        "dscores = soft_cap_backward(dscores, cache.cap) * self._factor": {
            "CappedAttention: the scale left out": " * self._factor → ",
            "CappedAttention: the cap left out": "soft_cap_backward(dscores, cache.cap) → dscores",
        }
    },
    "models/gemma2.py": {
        "dx = dy + self.norm2.backward(dh, cache.norm2)": {
            "Gemma 2: identity path around the feed-forward lost": "dy + self → self"
        },
        "dh = self.after2.backward(dh, cache.after2)": {
            "Gemma 2: norm behind the feed-forward skipped": "pass"
        },
        "dh = self.after1.backward(dh, cache.after1)": {"Gemma 2: norm behind attention skipped": "pass"},
        "return dx + self.norm1.backward(dh, cache.norm1)": {
            "Gemma 2: identity path around attention lost": "dx + self → self"
        },
        "mask = causal_mask(x.shape[1], x, window=self.window, start=kv_cache.length)": {
            "Gemma 2: local layers look at all tokens in decoding": "window=self.window, → "
        },
        "kinds[layer in c.local]": {"Gemma 2: the other layers are local": "in c → not in c"},
    },
    "models/gpt_neox.py": {
        "return dy + self.norm1.backward(dh, cache.norm1) + self.norm2.backward(df, cache.norm2)": {
            "GPT-NeoX: identity path lost": "dy + self → self",
            "GPT-NeoX: gradient through attention lost": "self.norm1.backward(dh, cache.norm1) + → ",
            "GPT-NeoX: caches of the norms swapped": (
                "return dy + self.norm1.backward(dh, cache.norm2) + self.norm2.backward(df, cache.norm1)"
            ),
        },
        "y: Array = x + h + self.feed_forward(self.norm2(x))": {
            "GPT-NeoX: decoding without the parallel residual": "self.norm2(x) → self.norm2(x + h)"
        },
    },
    "models/smollm3.py": {
        "None if layer in config.unrotated else rotary": {
            "SmolLM3: the other layers are without positions": "in config → not in config"
        }
    },
    "models/gpt/model.py": {
        "dh = self.feed_forward.backward(dh, cache.feed_forward)": {
            "GPT block: feed-forward network skipped": "pass"
        },
        "dx = dx + self.norm2.backward(dh, cache.norm2)": {
            "GPT block: identity path around the feed-forward lost": "dx + self → self"
        },
        "return dx + self.norm1.backward(dh, cache.norm1)": {
            "GPT block: attention skipped": "return dx",
            "GPT block: identity path around attention lost": "dx + self → self",
        },
        "dh = self.dropout1.backward(dx, cache.dropout1)": {"GPT block: dropout skipped": "dh = dx"},
        "dx = self.norm.backward(dx, cache.norm)": {"GPT: final norm skipped": "pass"},
        "zip(self.layers[::-1], cache.layers[::-1], strict=True)": {
            "GPT: layers in forward order": "zip(self.layers, cache.layers, strict=True)"
        },
        "self.embedding.backward(dx, cache.embedding)": {"GPT: embedding lost": "pass"},
    },
}
