"""Learners' repairs of bugs: patches for `patched`. Each key names the bug, and says what the patch does.

Each half repair passes the first trial of the bug, the check that most developers would have written, and no
more than two of the other trials find it.
"""

# look plausible and do not remove the bug
HALF_REPAIRS = {
    "embedding: works sentence by sentence, which is right if none contains a token twice": """
-        self.weight.grad[cache.ids] += dy
+        for ids, drow in zip(cache.ids, dy, strict=True):
+            self.weight.grad[ids] += drow
""",
    "cross-entropy: divides only the loss by all tokens": """
-    loss = (losses * real).sum() / real.sum()
+    loss = (losses * real).sum() / len(real)
""",
    "dropout: scales rightly for p = 0.5": """
-        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
+        dropout_mask = dropout_mask.astype(x.real.dtype) * (1 / self.p)
""",
    "tied-weights: forgets a token that occurs twice": """
-        self.weight.grad[...] = dtable
+        self.weight.grad[ids] += dx
""",
    "split-heads: gives each head every H-th column": """
-    return x.reshape(batch, n_heads, length, width // n_heads)
+    return x.reshape(batch, length, width // n_heads, n_heads).transpose(0, 3, 1, 2)

-    return x.reshape(batch, length, n_heads * width)
+    return x.transpose(0, 2, 3, 1).reshape(batch, length, n_heads * width)
""",
    "attention: is right in exact arithmetic, but a hidden score of several thousand gives 0 / 0": """
-    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = soft if mask is None else np.where(mask, soft, 0)
+    weights = weights / weights.sum(-1, keepdims=True)

-    dsoft = dweights if mask is None else np.where(mask, dweights, 0)
-    dscores = softmax_backward(dsoft, soft) / math.sqrt(q.shape[-1])  # (..., T, S)
+    dscores = softmax_backward(dweights, weights) / math.sqrt(q.shape[-1])
""",
    "padding: asks the vectors, before the positions are added": """
-        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
+        mask = (self.input.tokens.forward(ids)[0].real.sum(-1) != 0)[:, None, None, :]
""",
    "checkpointing: draws the same dropout mask at every call": """
-        y, _ = self.layer.forward(x, Context(train, rng))
+        y, _ = self.layer.forward(x, Context(train, np.random.default_rng(0)))

-        _, layer_cache = self.layer.forward(x, Context(train, rng))
+        _, layer_cache = self.layer.forward(x, Context(train, np.random.default_rng(0)))
""",
    "checkpointing: is right for one backward pass": """
-        y, _ = self.layer.forward(x, Context(train, rng))
-        return y, CheckpointedCache(x, train, rng)
+        import copy
+        before = copy.deepcopy(rng)
+        y, _ = self.layer.forward(x, Context(train, rng))
+        return y, CheckpointedCache(x, train, before)
""",
    "accumulation: divides by the number of sentences, not of tokens": """
-        share = 1 / len(batches)
+        share = len(ids) / sum(len(other) for other, _ in batches)
""",
    "accumulation: counts padding": """
-        share = 1 / len(batches)
+        share = ids.size / sum(other.size for other, _ in batches)
""",
    "beam-search: waits for one more sentence": """
-        if finished or not live:
+        if len(finished) >= 2 or not live:
""",
    "hard-attention: is right on average, but with a large variance": """
-    return log_likelihood.mean(0)
+    return np.zeros_like(log_likelihood)
""",
    "hard-attention: gives 0 / 0 for a single draw": """
-    return log_likelihood.mean(0)
+    return (log_likelihood.sum(0) - log_likelihood) / (len(log_likelihood) - 1)
""",
    "latent-attention: has the gradient of the sum, but not of the quotient": """
-        dw = dweights / length
+        dw = dweights - (dweights * weights).sum(-1, keepdims=True)
""",
    "relative: is right in decoding, but every query of a whole sentence counts as the last": """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - np.full(n_queries, n_keys - 1)[:, None]
""",
    "relative: reverses the keys for a single query": """
-        y, _, _ = self.attend(q, k, v, np.ones((1, k.shape[1]), bool))
+        y, _, _ = self.attend(q, k[:, ::-1], v[:, ::-1], np.ones((1, k.shape[1]), bool))
""",
    "rotary-sign: is a reflection": """
-    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
+    first, second = np.stack([cos, sin], -1), np.stack([sin, -cos], -1)
""",
    "rotary-decoding: is right for the first two tokens": """
-        (q, k, v), _, _ = self.project(x)
-        if kv_cache is not None:
+        (q, k, v), _, _ = self.project(x, 0 if kv_cache is None else 1)
+        if kv_cache is not None:
""",
    "window: is one position too wide": """
-    return (key <= query) & (key > query - window + 1)
+    return (key <= query) & (key >= query - window)
""",
}

# as correct as the declared repair, and with other results or in another way
OTHER_REPAIRS = {
    "dropout: drops other entries": """
-        dropout_mask = rng.random(x.shape) >= self.p  # (...)
-        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
+        dropout_mask = rng.random(x.shape) < 1 - self.p
+        dropout_mask = dropout_mask.astype(x.real.dtype) / (1 - self.p)
""",
    "checkpointing: draws a seed for every call": """
-        y, _ = self.layer.forward(x, Context(train, rng))
-        return y, CheckpointedCache(x, train, rng)
+        seed = int(rng.integers(2**32)) if rng is not None else 0
+        y, _ = self.layer.forward(x, Context(train, np.random.default_rng(seed)))
+        return y, CheckpointedCache(x, train, seed)

-        _, layer_cache = self.layer.forward(x, Context(train, rng))
+        _, layer_cache = self.layer.forward(x, Context(train, np.random.default_rng(rng)))
""",
    "beam-search: stops once no unfinished sentence can win": """
-        if finished or not live:
+        if not live or (finished and max(log_prob for _, log_prob in finished) >= live[0][1]):
""",
    "hard-attention: subtracts the mean of all other draws, also of other sentences": """
-    return log_likelihood.mean(0)
+    return (log_likelihood.sum() - log_likelihood) / max(log_likelihood.size - 1, 1)
""",
    "relative: takes the last rows of the table for as many queries as keys": """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
-    return np.clip(away, -most, most) + most
+    away = np.arange(n_keys) - np.arange(n_keys)[:, None]
+    return (np.clip(away, -most, most) + most)[n_keys - n_queries :]
""",
    "rotary-sign: rotates in the opposite direction": """
-    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
+    first, second = np.stack([cos, sin], -1), np.stack([-sin, cos], -1)
""",
}
