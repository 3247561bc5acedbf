"""Repairs that are as correct as the declared one: patches for `patched`, by the name of the bug."""

OTHER_REPAIRS = {
    "embedding": """
-        self.weight.grad[cache.ids] += dy
+        tokens = cache.ids.reshape(-1, 1) == np.arange(len(self.weight.value))
+        self.weight.grad += tokens.T.astype(dy.dtype) @ dy.reshape(-1, dy.shape[-1])
""",
    "cross-entropy": """
-    drows = drows * (real[:, None] * (dloss / len(real)))
+    drows = drows * real[:, None] * dloss / int(np.count_nonzero(real))
""",
    # drops other entries
    "dropout": """
-        dropout_mask = rng.random(x.shape) >= self.p  # (...)
-        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
+        dropout_mask = rng.random(x.shape) < 1 - self.p
+        dropout_mask = dropout_mask.astype(x.real.dtype) / (1 - self.p)
""",
    # computes the active entries from the ReLU's output
    "shared-layer": """
-        dh = np.where(self.active, dh, 0)
+        dh = np.where(cache.outer.x.real > 0, dh, 0)
""",
    "language-model": """
-    return np.tril(np.ones((length, length), bool), 1)
+    return np.arange(length)[:, None] >= np.arange(length)
""",
    "positions": """
-    i = np.arange(0, d_model, 2)  # (D/2,)
+    i = np.arange(d_model // 2)
""",
    # draws a seed for every call
    "checkpointing": """
-        y, _ = self.layer.forward(x, Context(train, rng))
-        return y, CheckpointedCache(x, train, rng)
+        seed = int(rng.integers(2**32)) if rng is not None else 0
+        y, _ = self.layer.forward(x, Context(train, np.random.default_rng(seed)))
+        return y, CheckpointedCache(x, train, seed)

-        _, layer_cache = self.layer.forward(x, Context(train, rng))
+        _, layer_cache = self.layer.forward(x, Context(train, np.random.default_rng(rng)))
""",
    "precision": """
-        self.scale = 1 / np.sqrt(d_model)
+        self.scale = d_model**-0.5
""",
    # stops once no unfinished sentence can win
    "beam-search": """
-        if finished or not live:
+        if not live or (finished and max(log_prob for _, log_prob in finished) >= live[0][1]):
""",
    "local-attention": """
-        length = np.full((len(memory), 1), memory.shape[1])  # (B, 1): S tokens
+        length = np.count_nonzero(mask, axis=1).reshape(-1, 1)
""",
    "recurrent": """
-            dnew = np.where(step.real, dstate, 0)
+            dnew = dstate * step.real

-            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
+            before = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
+            dstate = np.where(step.real, before, dstate)
""",
    # the mean of all other draws, also of other sentences
    "hard-attention": """
-    return log_likelihood.mean(0)
+    return (log_likelihood.sum() - log_likelihood) / max(log_likelihood.size - 1, 1)
""",
    # uses the gradient of the length
    "latent-attention": """
-        dw = dweights / length
+        dlength = -(dweights * weights / length).sum(-1, keepdims=True)
+        dw = dweights / length + dlength
""",
    # the last rows of the table for as many queries as keys
    "relative": """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
-    return np.clip(away, -most, most) + most
+    away = np.arange(n_keys) - np.arange(n_keys)[:, None]
+    return (np.clip(away, -most, most) + most)[n_keys - n_queries :]
""",
    # rotates in the opposite direction
    "rotary-sign": """
-    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
+    first, second = np.stack([cos, sin], -1), np.stack([-sin, cos], -1)
""",
    "window": """
-    return (key <= query) & (key > query - window + 1)
+    return np.isin(query - key, np.arange(window))
""",
}
