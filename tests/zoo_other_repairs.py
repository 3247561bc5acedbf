"""Repairs of the zoo's bugs that are as right as the package's own: patches, as in each specimen."""

OTHER_REPAIRS = {
    "embedding": """
-        self.weight.grad[cache.ids] += dy
+        words = cache.ids.reshape(-1, 1) == np.arange(len(self.weight.value))
+        self.weight.grad += words.T.astype(dy.dtype) @ dy.reshape(-1, dy.shape[-1])
""",
    "cross-entropy": """
-    drows = drows * (real[:, None] * (dloss / len(real)))
+    drows = drows * real[:, None] * dloss / int(np.count_nonzero(real))
""",
    # the ReLU's own output says where it let through
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
    # a seed of its own for every call
    "checkpointing": """
-        y, _ = self.layer.forward(x, train=train, rng=rng)
-        return y, CheckpointedCache(x, train, rng)
+        seed = int(rng.integers(2**32)) if rng is not None else 0
+        y, _ = self.layer.forward(x, train=train, rng=np.random.default_rng(seed))
+        return y, CheckpointedCache(x, train, seed)

-        _, layer_cache = self.layer.forward(x, train=train, rng=rng)
+        _, layer_cache = self.layer.forward(x, train=train, rng=np.random.default_rng(rng))
""",
    "precision": """
-        self.scale = 1 / np.sqrt(d_model)
+        self.scale = d_model**-0.5
""",
    # stops once nothing that lives can win
    "beam-search": """
-        if finished or not live:
+        if not live or (finished and max(log_prob for _, log_prob in finished) >= live[0][1]):
""",
    "local-attention": """
-        length = np.full((len(memory), 1), memory.shape[1])  # (B, 1): S words
+        length = np.count_nonzero(mask, axis=1).reshape(-1, 1)
""",
    "recurrent": """
-            dnew = np.where(step.real, dstate, 0)
+            dnew = dstate * step.real

-            dstate = dh + self.recall.backward(drecalled, step.recall)
+            before = dh + self.recall.backward(drecalled, step.recall)
+            dstate = np.where(step.real, before, dstate)
""",
    # what the others got, of whatever sentence
    "hard-attention": """
-    return log_likelihood.mean(0)
+    return (log_likelihood.sum() - log_likelihood) / max(log_likelihood.size - 1, 1)
""",
    # by the length's own gradient
    "latent-attention": """
-        dw = dweights / length
+        dlength = -(dweights * weights / length).sum(-1, keepdims=True)
+        dw = dweights / length + dlength
""",
    # the last rows of what all queries would see
    "relative": """
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
-    return np.clip(away, -most, most) + most
+    away = np.arange(n_keys) - np.arange(n_keys)[:, None]
+    return (np.clip(away, -most, most) + most)[n_keys - n_queries :]
""",
}
