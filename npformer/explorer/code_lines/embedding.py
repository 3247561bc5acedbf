"""The source lines of the embedding: the vectors of tokens and positions."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_EMBEDDING_LESSON = "02_embeddings.py"

LINES: dict[str, StepLines] = {
    "embed": StepLines(
        Quote("functional/embedding.py", "embedding", ("y = table[ids] * scale  # (..., D)",)),
        Quote(
            "functional/embedding.py",
            "embedding_backward",
            ("xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)",),
        ),
        _EMBEDDING_LESSON,
        _EMBEDDING_LESSON,
    ),
    "add_positions": StepLines(
        Quote("nn/embedding.py", "InputEmbedding.forward", ("x = x + p",)),
        Quote(
            "nn/embedding.py",
            "InputEmbedding.backward",
            ("self.positions.backward(dx, cache.positions)", "self.tokens.backward(dx, cache.tokens)"),
        ),
        "03_positions.py",
        "03_positions.py",
    ),
    "constant": StepLines(
        Quote(
            "nn/positions.py",
            "FixedPositions.__init__",
            ("self.table = sinusoids(max_length, d_model, layout).astype(dtype)",),
        ),
        None,
        "03_positions.py",
        "03_positions.py",
    ),
}
