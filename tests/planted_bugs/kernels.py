"""Bugs in the kernels, and in packing, which leaves out the padding."""

from planted_bugs.bug import Place

BUGS = {
    "kernels/cpu/attention.py": {
        # the gradients stay right
        "if scores.max() < SAFE and scores.min() > -SAFE:": {
            "attention kernel: peak not subtracted if the scores are safe on one side": "SAFE and → SAFE or"
        },
        "return same and q.ndim == 4": {
            "attention kernel: the first sentence's keys for all queries": (
                "return q.ndim == k.ndim == v.ndim == 4"
            )
        },
        "np.matmul(dropped.swapaxes(-1, -2), dy[block]": {
            "attention kernel: dropout left out of dv": "dropped → seen"
        },
        "dscores -= block_weights * row_sums(dscores)[..., None]": {
            "attention kernel: weighted mean not subtracted": "pass"
        },
        "row_sums(dscores)[..., None]": {
            "attention kernel: row sums of keys": "dscores.mean(-1, keepdims=True)"
        },
        "dscores *= scale": {"attention kernel: scale": "pass"},
        "return dq, dk, dv": {"attention kernel: dq and dk swapped": "return dk, dq, dv"},
        "else mask[block]": {"attention kernel: mask not of the block": "block → : block.stop - block.start"},
        "scores *= mask.astype(scores.dtype)": {"attention kernel: mask left out in range": "pass"},
        "np.copyto(scores, -np.inf, where=~mask)": {"attention kernel: masked keys in the sum too": "pass"},
    },
    "kernels/cpu/long_attention.py": {
        # the gradients stay right
        'check_mask(mask, (batch, n_heads, n_queries, k.shape[2]), "mask")': {
            "long attention: mask not checked": "pass"
        },
        "dk[head] += dscores.T": {"long attention: dk of the last queries only": "dk[head] = dscores.T"},
        "dv[head] += dropped.T": {"long attention: dv of the last queries only": "dv[head] = dropped.T"},
        "        dropped = _dropped(weights, cache, index)\n": {
            "long attention: another dropout mask in backward": "        dropped = weights\n"
        },
        "dscores -= weights": {"long attention: sign of the weighted mean": "dscores += weights"},
    },
    "functional/residual.py": {
        "return dx, dropout_backward(dx, cache.dropout_mask), dgain, dbias": {
            "add and norm: dropout on the identity path too": (
                "return 2 * (dropout_backward(dx, cache.dropout_mask),) + (dgain, dbias)"
            ),
            "add and norm: dropout skipped": "return dx, dx, dgain, dbias",
        },
        "return dropout_backward(dh, cache.dropout_mask)": {
            "activation and dropout: dropout skipped": "return dh"
        },
        "return activate_backward(dh, cache.activation)": {
            "activation and dropout: activation skipped": "return dh"
        },
        "dh = relu_backward(dy, cache.y)": {"ReLU and dropout: ReLU skipped": "dh = dy"},
    },
    "kernels/cpu/dropout.py": {
        "dx *= cache.factor\n    return dx": {"dropout kernel: factor left out": "return dx"},
        "if cache.factor != 1:\n            out[block] *= cache.factor": {
            "activation_dropout kernel: the factor left out": "pass"
        },
        "np.multiply(x.view(bits), selected, out=out.view(bits))": {
            "relu_dropout kernel: -0 for negative numbers and NaN for infinite ones": (
                "np.multiply(x, selected, out=out)"
            )
        },
        "y = np.empty(x.shape, x.dtype)": {
            "relu_dropout kernel: rows with another memory layout lost": "y = np.empty_like(x)"
        },
        "y[block] > 0": {"relu_dropout kernel: passes at 0": "y[block] >= 0"},
    },
    "kernels/cpu/norm.py": {
        "dx, _, dgain, dbias = _backward(dy, cache, None)": {
            "layer_norm kernel: gain and bias swapped": "dgain, dbias → dbias, dgain"
        },
        "return _backward(dy, cache.norm, cache.dropout_mask)": {
            "add_norm kernel: dropout skipped": "return _backward(dy, cache.norm, None)"
        },
        "dxb -= mean[:, None]": {"layer_norm kernel: mean left in": "pass"},
        "dxb -= product": {"layer_norm kernel: part along xhat left in": "pass"},
        "dgain += column_sums(product)": {
            "layer_norm kernel: gain only of the last block": "dgain += → dgain[...] ="
        },
        "dbias += column_sums(dyb)": {
            "layer_norm kernel: bias only of the last block": "dbias[...] = column_sums(dyb)"
        },
        "dxb *= rstd[block]": {"layer_norm kernel: not divided by the standard deviation": "pass"},
        "return dx.reshape(dy.shape), dh": {
            "add_norm kernel: dropout on the identity path too": "return dx → return dh"
        },
        "dh[block] *= dropout_mask.factor": {"add_norm kernel: dropout's factor left out": "pass"},
        "np.vecdot(xhat, xhat) / width": {
            "add_norm kernel: variance over D - 1": "np.vecdot(xhat, xhat) / (width - 1)"
        },
    },
    "kernels/cpu/linear.py": {
        "dx = drows @ weight.T": {
            "linear kernel: dx by the weight itself": "T → reshape(weight.shape[::-1])"
        },
        "column_sums(drows)": {"linear kernel: bias counted twice": "2 * column_sums(drows)"},
    },
    "kernels/lazy.py": {
        "(self.right, self.left) if self.transposed else": {
            "unevaluated product: not transposed": "(self.right, self.left) if False else"
        },
        "destination += self.evaluate()": {
            "unevaluated product: overwrites what was added before": "destination[...] = self.evaluate()"
        },
        "destination[self.ids] += self.rows": {
            "unevaluated rows: overwrite what was added before": "+= self.rows → = self.rows"
        },
    },
    "kernels/dropout.py": {
        "return activate_backward(dh, cache.activation)": {
            "activation_dropout kernel: activation skipped": "return dh"
        }
    },
    "functional/attention.py": {
        "sum_to_shape(dk, k.shape), sum_to_shape(dv, v.shape)": {
            "attention: gradients of repeated arrays not summed": "dk, dv"
        }
    },
    "kernels/cpu/losses.py": {
        "dx[at_target] -= share * (1 - smoothing)": {
            "cross-entropy kernel: target not smoothed": "dx[at_target] -= share"
        },
        "share * (smoothing / vocab_size)": {
            "cross-entropy kernel: smoothing not over V": "share * smoothing"
        },
        "share = is_token.astype(rows.dtype) / tokens": {
            "cross-entropy kernel: padding counts": "share = np.ones(len(rows), rows.dtype) / tokens"
        },
        "cache.dlogits * dloss": {"cross-entropy kernel: dloss left out": "cache.dlogits"},
        "rows if overwrite else": {
            "cross-entropy kernel: overwrites without permission": "rows if True else"
        },
    },
    "kernels/cpu/embedding.py": {
        "sums *= scale": {"embedding_backward kernel: scale": "pass"},
        "return LazyRows(tokens[starts], sums, len(table))": {
            "embedding_backward kernel: last of equal tokens only": (
                "sums, len(table) → rows[order][starts] * scale, len(table)"
            )
        },
        "order = order[ids[order] != zero_id]": {
            "embedding_backward kernel: padding gets a gradient": "pass"
        },
    },
    "kernels/cpu/adam.py": {
        "mb += step": {"Adam kernel: mean of the last block's buffer": "mb[...] = step"},
        "lr * math.sqrt(c2) / c1, eps * math.sqrt(c2)": {
            "Adam kernel: eps not scaled": "eps * math.sqrt(c2) → eps * math.sqrt(c2) * 1e7"
        },
        "lr * math.sqrt(c2) / c1": {"Adam kernel: squares not corrected": "lr / c1"},
    },
    "functional/packing.py": {
        "y[packing.places] = x": {"packing: tokens at the positions of padding": "y[: len(x)] = x"}
    },
    "nn/attention/multi_head.py": {
        "key_packing = mask.packing if n_inputs == 1 else mask.key_packing": {
            "multi-head: packed gradients not spread out": "key_packing = mask.packing"
        }
    },
    "training/workers.py": {
        "for model in self.models[1:]:\n            grads +=": {
            "workers: one replica's gradients lost": "[1:]: → [2:]:"
        }
    },
    "kernels/cpu/block_attention.py": {
        "keys = slice(int(attended[0]), int(attended[-1]) + 1)": {
            "block attention kernel: last key of a range left out": "1]) + 1 → 1])"
        },
        "dq *= scale": {"block attention kernel: scale of dq left out": "pass"},
        "dscores -= np.vecdot(cache.y[part.at_queries], dz)[..., None]": {
            "block attention kernel: mean of dscores left in": "pass"
        },
        "out += left @ right": {
            "block attention kernel: gradients of one block of queries only": "out[...] = left @ right"
        },
        "scores *= mask.astype(scores.dtype)": {"block attention kernel: mask left out in range": "pass"},
        "weights = _exponentiate(scores, part.mask, cache.peaks[number])": {
            "block attention kernel: peak forgotten when exponentials are computed again": (
                "cache.peaks[number] → 0.0"
            )
        },
    },
    "kernels/cpu/activations.py": {
        "np.add(phi, density, out=slope)": {"gelu kernel: density left out": "np.copyto(slope, phi)"},
        Place("return dy * cache.slope", nth=1, of=2): {"gelu kernel: derivative left out": "return dy"},
        Place("return dy * cache.slope", nth=2, of=2): {"gelu_tanh kernel: derivative left out": "return dy"},
        "square *= 6 *": {"gelu_tanh kernel: inner' not doubled": "square *= 3 *"},
        "dgate *= cache.slope": {"swiglu kernel: derivative left out": "pass"},
        "return dgate, dy * cache.activated": {
            "swiglu kernel: value and activation swapped": "return dgate, dy * cache.value"
        },
    },
    "kernels/cpu/rms_norm.py": {
        "dx[block] -= product": {"rms_norm kernel: part along xhat left in": "pass"},
        "dgain += column_sums(product)": {
            "rms_norm kernel: gain only of the last block": "dgain[...] = column_sums(product)"
        },
    },
    "kernels/cpu/rotary.py": {
        "dx, _ = rotate(dy, cos, -sin, layout)": {
            "rotary kernel: rotated forward again": "dx, _ = rotate(dy, cos, sin, layout)"
        }
    },
}
