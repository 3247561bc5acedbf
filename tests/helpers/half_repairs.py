"""Repairs that look plausible and do not remove the bug: patches for `patched`, by the name of the bug."""

HALF_REPAIRS = {
    # divides by the number of sentences, which is right if each has one token
    "linear": [
        """
-        drows = dy.reshape(-1, dy.shape[-1]) / len(rows)  # (N, O)
+        drows = dy.reshape(-1, dy.shape[-1]) / len(dy)
""",
        """
-        self.weight.grad += rows.T @ drows  # (I, O)
+        self.weight.grad += rows.T @ drows * len(rows)
""",
    ],
    "layer-norm": [
        """
-        return self.gain.value * dx  # (..., D)
+        return dx
""",
        """
-        dx = rstd * (dy - dy.mean(-1, keepdims=True) - xhat * along)
-        return self.gain.value * dx  # (..., D)
+        dxhat = dy * self.gain.value
+        return rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)
""",
    ],
    # computed for each sentence, which is right if no sentence contains a token twice
    "embedding": [
        """
-        self.weight.grad[cache.ids] += dy
+        for ids, drow in zip(cache.ids, dy, strict=True):
+            self.weight.grad[ids] += drow
""",
        """
-        self.weight.grad[cache.ids] += dy
+        self.weight.grad[...] = 0
+        np.add.at(self.weight.grad, cache.ids, dy)
""",
    ],
    "cross-entropy": [
        """
-    loss = (losses * real).sum() / real.sum()
+    loss = (losses * real).sum() / len(real)
""",
        """
-    drows = drows * (real[:, None] * (dloss / len(real)))
+    drows = drows * (real[:, None] * dloss)
""",
    ],
    # right for p = 0.5
    "dropout": [
        """
-        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
+        dropout_mask = dropout_mask.astype(x.real.dtype) * (1 / self.p)
""",
        """
-        return x * dropout_mask, DropoutCache(dropout_mask)
+        return x * dropout_mask / (1 - self.p), DropoutCache(dropout_mask)
""",
    ],
    "adam": [
        """
-            self.t += 1
+            self.t = 1
""",
        """
-        beta1, beta2 = self.betas
+        self.t += 1
+        beta1, beta2 = self.betas
""",
    ],
    "tied-weights": [
        """
-        self.weight.grad[...] = dtable
+        self.weight.grad[ids] += dx
""",
        """
-        self.weight.grad += drows.T @ h.reshape(-1, h.shape[-1])  # (V, D)
+        self.weight.grad[...] = drows.T @ h.reshape(-1, h.shape[-1])

-        self.weight.grad[...] = dtable
+        self.weight.grad += dtable
""",
    ],
    # a stack of activations, which is right if every forward has its backward, in reverse order
    "shared-layer": [
        """
-        self.active = np.empty(0, bool)
+        self.active = []

-        self.active = h.real > 0  # where the ReLU is the identity
-        y, outer = self.outer.forward(np.where(self.active, h, 0))  # (..., D)
+        self.active.append(h.real > 0)
+        y, outer = self.outer.forward(np.where(self.active[-1], h, 0))

-        dh = np.where(self.active, dh, 0)
+        dh = np.where(self.active.pop(), dh, 0)
""",
    ],
    "split-heads": [
        """
-    return x.reshape(batch, n_heads, length, width // n_heads)
+    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)
""",
        """
-    return x.reshape(batch, n_heads, length, width // n_heads)
+    return x.reshape(batch, length, width // n_heads, n_heads).transpose(0, 3, 1, 2)

-    return x.reshape(batch, length, n_heads * width)
+    return x.transpose(0, 2, 3, 1).reshape(batch, length, n_heads * width)
""",
    ],
    "attention": [
        # a score of 0 is not a weight of 0
        """
-    soft, _ = softmax(scores)  # (..., T, S)
-    weights = soft if mask is None else np.where(mask, soft, 0)
+    soft, _ = softmax(scores if mask is None else np.where(mask, scores, 0))
+    weights = soft
""",
        # right in exact arithmetic, but a hidden score of several thousand gives 0 / 0
        """
-    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = weights / weights.sum(-1, keepdims=True)

-    dsoft = dweights if mask is None else np.where(mask, dweights, 0)
-    dscores = softmax_backward(dsoft, soft) / math.sqrt(q.shape[-1])  # (..., T, S)
+    dscores = softmax_backward(dweights, weights) / math.sqrt(q.shape[-1])
""",
        # the same, and backward ignores it
        """
-    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = weights / weights.sum(-1, keepdims=True)
""",
    ],
    # now a position does not attend to itself
    "language-model": [
        """
-    return np.tril(np.ones((length, length), bool), 1)
+    return np.tril(np.ones((length, length), bool), -1)
""",
    ],
    "positions": [
        """
-    i = np.arange(0, d_model, 2)  # (D/2,)
+    i = np.arange(1, d_model // 2 + 1)
""",
        """
-    angle = position / 10000 ** (2 * i / d_model)  # (T, D/2)
+    angle = position / 100000 ** (i / d_model)
""",
    ],
    # before the positions are added, but still from the vectors
    "padding": [
        """
-        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
+        mask = (self.input.tokens.forward(ids)[0].real.sum(-1) != 0)[:, None, None, :]
""",
        """
-        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
+        mask = (ids != PAD)[:, None, :, None]
""",
    ],
    "decoder": [
        """
-        h, cross = self.cross.forward(memory, x)
+        h, cross = self.cross.forward(x, memory)
""",
        # queries, keys and values from the target: the source has no effect
        """
-        h, cross = self.cross.forward(memory, x)
+        h, cross = self.cross.forward(x, x)
""",
        # a causal mask stops the leak, but the two are still exchanged
        """
-        h, cross = self.cross.forward(memory, x)
+        h, cross = self.cross.forward(memory, x, mask=causal_mask(target_in.shape[1], x))
""",
    ],
    "checkpointing": [
        # the same dropout mask at every call
        """
-        y, _ = self.layer.forward(x, Context(train, rng))
+        y, _ = self.layer.forward(x, Context(train, np.random.default_rng(0)))

-        _, layer_cache = self.layer.forward(x, Context(train, rng))
+        _, layer_cache = self.layer.forward(x, Context(train, np.random.default_rng(0)))
""",
        # right for one backward pass
        """
-        y, _ = self.layer.forward(x, Context(train, rng))
-        return y, CheckpointedCache(x, train, rng)
+        import copy
+        before = copy.deepcopy(rng)
+        y, _ = self.layer.forward(x, Context(train, rng))
+        return y, CheckpointedCache(x, train, before)
""",
    ],
    "accumulation": [
        # divides by the number of sentences, not of tokens
        """
-        share = 1 / len(batches)
+        share = len(ids) / sum(len(other) for other, _ in batches)
""",
        # counts padding
        """
-        share = 1 / len(batches)
+        share = ids.size / sum(other.size for other, _ in batches)
""",
    ],
    # float32 at the end, but float64 in between
    "precision": [
        """
-        return x + weights @ v, SelfAttentionCache(cache, q, k, v, weights)
+        return (x + weights @ v).astype(x.dtype), SelfAttentionCache(cache, q, k, v, weights)
""",
        """
-        self.scale = 1 / np.sqrt(d_model)
+        self.scale = np.float32(1 / np.sqrt(d_model))

-        return x + weights @ v, SelfAttentionCache(cache, q, k, v, weights)
+        return (x + weights @ v).astype(np.float32), SelfAttentionCache(cache, q, k, v, weights)
""",
    ],
    "beam-search": [
        """
-        if finished or not live:
+        if len(finished) >= 2 or not live:
""",
        """
-        if finished or not live:
+        if not live:

-    tokens, log_prob = max(finished, key=lambda pair: pair[1])
+    tokens, log_prob = finished[0]
""",
    ],
    "local-attention": [
        # the length of the longest sentence in the batch
        """
-        length = np.full((len(memory), 1), memory.shape[1])  # (B, 1): S tokens
+        length = np.full((len(memory), 1), mask.sum(-1).max())
""",
        # never in the padding, but still at the wrong token
        """
-        p, predicted = predict_position(queries, self.position.value, self.v.value, length)  # (B, T)
+        p, predicted = predict_position(queries, self.position.value, self.v.value, length)
+        p = np.where(p.real > mask.sum(-1, keepdims=True) - 1, mask.sum(-1, keepdims=True) - 1, p)
""",
    ],
    "recurrent": [
        # the backward pass treats padding as tokens
        """
-            dnew = np.where(step.real, dstate, 0)
+            dnew = dstate
""",
        # loses the gradients of the states at padding
        """
-            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
+            dheld = np.where(step.real, 0, dstate - dstates[:, t])
+            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection) + dheld
""",
        """
-            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
+            dstate = dstate + dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
""",
    ],
    "hard-attention": [
        # right on average, but with a large variance
        """
-    return log_likelihood.mean(0)
+    return np.zeros_like(log_likelihood)
""",
        # 0 / 0 for a single draw
        """
-    return log_likelihood.mean(0)
+    return (log_likelihood.sum(0) - log_likelihood) / (len(log_likelihood) - 1)
""",
        # right for two draws
        """
-        dlog_prob = -reward / log_likelihood.size
+        dlog_prob = -2 * reward / log_likelihood.size
""",
        # still depends on the draw itself
        """
-    return log_likelihood.mean(0)
+    return 0.9 * log_likelihood.mean(0)
""",
    ],
    "latent-attention": [
        # all weights are equal
        """
-        dw = dweights / length
+        dw = (dweights - dweights.mean(-1, keepdims=True)) / length
""",
        # the gradient of the sum, but not of the quotient
        """
-        dw = dweights / length
+        dw = dweights - (dweights * weights).sum(-1, keepdims=True)
""",
        # the sum runs over the batch
        """
-        dw = dweights / length
+        dw = (dweights - (dweights * weights).sum()) / length
""",
    ],
    "relative": [
        # right in decoding, but every query of a whole sentence counts as the last
        """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - np.full(n_queries, n_keys - 1)[:, None]
""",
        # off by one
        """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - (np.arange(n_queries)[:, None] + n_keys - n_queries + (n_queries < n_keys))
""",
        # the wrong sign, and only for a single query
        """
-        y, _, _ = self.attend(q, k, v, np.ones((1, k.shape[1]), bool))
+        y, _, _ = self.attend(q, k[:, ::-1], v[:, ::-1], np.ones((1, k.shape[1]), bool))
""",
    ],
    # repairs the forward pass only, or the backward pass only
    "rotary-values": [
        """
-        (q, rotation), (k, _), (v, _) = (rotate(part, cos, sin) for part in (q, k, v))
+        (q, rotation), (k, _) = (rotate(part, cos, sin) for part in (q, k))
""",
        """
-        dq, dk, dv = (rotate_backward(part, cache.rotation) for part in (dq, dk, dv))
+        dq, dk = (rotate_backward(part, cache.rotation) for part in (dq, dk))
""",
    ],
    # one minus sign too many: no rotation, or a reflection
    "rotary-sign": [
        """
-    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
+    first, second = np.stack([cos, -sin], -1), np.stack([-sin, cos], -1)
""",
        """
-    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
+    first, second = np.stack([cos, sin], -1), np.stack([sin, -cos], -1)
""",
    ],
    # right for the first two tokens, or late by one
    "rotary-decoding": [
        """
-        (q, k, v), _, _ = self.project(x)
-        if kv_cache is not None:
+        (q, k, v), _, _ = self.project(x, 0 if kv_cache is None else 1)
+        if kv_cache is not None:
""",
        """
-        (q, k, v), _, _ = self.project(x)
-        if kv_cache is not None:
+        (q, k, v), _, _ = self.project(x, 0 if kv_cache is None else kv_cache[0].shape[1] - 1)
+        if kv_cache is not None:
""",
    ],
    # one position too many
    "window": [
        """
-    return (key <= query) & (key > query - window + 1)
+    return (key <= query) & (key >= query - window)
""",
        """
-    return (key <= query) & (key > query - window + 1)
+    return key > query - window
""",
    ],
    # no decay at all, or that of gains and biases
    "weight-decay": [
        """
-            p.value *= 1 - lr * self.weight_decay
""",
        """
-            p.value *= 1 - lr * self.weight_decay
+            if p.value.ndim == 1:
+                p.value *= 1 - lr * self.weight_decay
""",
    ],
}
