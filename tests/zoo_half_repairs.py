"""Repairs of the zoo's bugs that look plausible and do not take them out: patches, as in each specimen."""

HALF_REPAIRS = {
    # by the sentences, not by their words: right where each has one
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
    # sentence by sentence: right where no sentence has a word twice
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
    # right at rate 0.5
    "dropout": [
        """
-        keep = keep.astype(x.real.dtype)  # the precision of x
+        keep = keep.astype(x.real.dtype) * (1 / self.rate)
""",
        """
-        return x * keep, DropoutCache(keep)
+        return x * keep / (1 - self.rate), DropoutCache(keep)
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
    # a stack of activations: right while every forward has its backward, in reverse order
    "shared-layer": [
        """
-        self.active = np.empty(0, bool)
+        self.active = []

-        self.active = h.real > 0  # where the ReLU lets through
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
        # right on paper; but a hidden score of thousands leaves 0 / 0
        """
-    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = weights / weights.sum(-1, keepdims=True)

-    dsoft = dweights if mask is None else np.where(mask, dweights, 0)
-    dscores = softmax_backward(dsoft, soft) / math.sqrt(q.shape[-1])  # (..., T, S)
+    dscores = softmax_backward(dweights, weights) / math.sqrt(q.shape[-1])
""",
        # the same, and backward does not know of it
        """
-    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = weights / weights.sum(-1, keepdims=True)
""",
    ],
    # now a word does not see itself
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
    # before the positions, and still from the vectors
    "padding": [
        """
-        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
+        mask = (self.input.words.forward(ids)[0].real.sum(-1) != 0)[:, None, None, :]
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
        # queries from the target, and keys and values too: the source is not read at all
        """
-        h, cross = self.cross.forward(memory, x)
+        h, cross = self.cross.forward(x, x)
""",
        # a causal mask stops the leak and leaves the two exchanged
        """
-        h, cross = self.cross.forward(memory, x)
+        h, cross = self.cross.forward(memory, x, mask=causal_mask(target_in.shape[1], x))
""",
    ],
    "checkpointing": [
        # the same mask at every call
        """
-        y, _ = self.layer.forward(x, train=train, rng=rng)
+        y, _ = self.layer.forward(x, train=train, rng=np.random.default_rng(0))

-        _, layer_cache = self.layer.forward(x, train=train, rng=rng)
+        _, layer_cache = self.layer.forward(x, train=train, rng=np.random.default_rng(0))
""",
        # right for one backward pass
        """
-        y, _ = self.layer.forward(x, train=train, rng=rng)
-        return y, CheckpointedCache(x, train, rng)
+        import copy
+        before = copy.deepcopy(rng)
+        y, _ = self.layer.forward(x, train=train, rng=rng)
+        return y, CheckpointedCache(x, train, before)
""",
    ],
    "accumulation": [
        # by the sentences, not by the words
        """
-        share = 1 / len(batches)
+        share = len(ids) / sum(len(other) for other, _ in batches)
""",
        # padding counts
        """
-        share = 1 / len(batches)
+        share = ids.size / sum(other.size for other, _ in batches)
""",
    ],
    # hidden at the end, and kept in float64 in between
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

-    words, log_prob = max(finished, key=lambda pair: pair[1])
+    words, log_prob = finished[0]
""",
    ],
    "local-attention": [
        # as long as the longest sentence of the batch
        """
-        length = np.full((len(memory), 1), memory.shape[1])  # (B, 1): S words
+        length = np.full((len(memory), 1), mask.sum(-1).max())
""",
        # never into the padding, and still at the wrong word
        """
-        p, predicted = predict_position(queries, self.position.value, self.v.value, length)  # (B, T)
+        p, predicted = predict_position(queries, self.position.value, self.v.value, length)
+        p = np.where(p.real > mask.sum(-1, keepdims=True) - 1, mask.sum(-1, keepdims=True) - 1, p)
""",
    ],
    "recurrent": [
        # padding is read on the way back
        """
-            dnew = np.where(step.real, dstate, 0)
+            dnew = dstate
""",
        # what was handed out at padding is lost
        """
-            dstate = dh + self.recall.backward(drecalled, step.recall)
+            dheld = np.where(step.real, 0, dstate - dstates[:, t])
+            dstate = dh + self.recall.backward(drecalled, step.recall) + dheld
""",
        """
-            dstate = dh + self.recall.backward(drecalled, step.recall)
+            dstate = dstate + dh + self.recall.backward(drecalled, step.recall)
""",
    ],
    "hard-attention": [
        # right on average, and all noise
        """
-    return log_likelihood.mean(0)
+    return np.zeros_like(log_likelihood)
""",
        # 0 / 0 where there are no others
        """
-    return log_likelihood.mean(0)
+    return (log_likelihood.sum(0) - log_likelihood) / (len(log_likelihood) - 1)
""",
        # right for two draws
        """
-        dlog_prob = -reward / log_likelihood.size
+        dlog_prob = -2 * reward / log_likelihood.size
""",
        # each draw still has its part in it
        """
-    return log_likelihood.mean(0)
+    return 0.9 * log_likelihood.mean(0)
""",
    ],
    "latent-attention": [
        # weights that are all alike
        """
-        dw = dweights / length
+        dw = (dweights - dweights.mean(-1, keepdims=True)) / length
""",
        # the sum counted once, the quotient not
        """
-        dw = dweights / length
+        dw = dweights - (dweights * weights).sum(-1, keepdims=True)
""",
        # over the batch
        """
-        dw = dweights / length
+        dw = (dweights - (dweights * weights).sum()) / length
""",
    ],
    "relative": [
        # right word by word, and every query of a whole sentence is then the last
        """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - np.full(n_queries, n_keys - 1)[:, None]
""",
        # one too far
        """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - (np.arange(n_queries)[:, None] + n_keys - n_queries + (n_queries < n_keys))
""",
        # the other way round, and only where there is one query
        """
-        y, _, _ = self.attend(q, k, v, np.ones((1, k.shape[1]), bool))
+        y, _, _ = self.attend(q, k[:, ::-1], v[:, ::-1], np.ones((1, k.shape[1]), bool))
""",
    ],
}
