"""Bug: in decoding, the one query counts as the first position, so every distance is wrong."""

from typing import Any

import numpy as np

from npformer.functional import relative_attention
from npformer.functional.masks import causal_mask
from npformer.language import say
from npformer.learn.bugs.songs import float32_with_decoding, learn_songs, word_by_word
from npformer.learn.bugs.specimen import Names, Specimen
from npformer.learn.bugs.trials import equal, gradients, normal


def layer_of(own: Names, dtype: Any = np.float64) -> Any:
    """Return the file's layer."""
    return own.RelativeAttention(6, 2, dtype=dtype)


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare the forward pass on a whole sentence with the package's relative attention."""
    layer, x = layer_of(own), normal(2, 5, 6)
    q, k, v = np.split(layer.query_key_value.forward(x)[0], 3, -1)
    right, _ = relative_attention(q, k, v, layer.positions.value, mask=causal_mask(5, x))
    return {"y": (layer.forward(x)[0], right)}


def last_queries(own: Names) -> Any:
    """Check the distances of queries that are the last of the keys."""
    whole = own.distances(6, 6, 2)
    return {f"distances({n}, 6, 2)": (own.distances(n, 6, 2), whole[-n:]) for n in (6, 2, 1)}


def nearest(own: Names) -> dict[str, Any]:
    """Check that the vector of distance 0 alone makes the last token's key win."""
    layer, x = layer_of(own), normal(1, 4, 6)
    layer.positions.value[2] += 1e3 * layer.query_key_value.forward(x)[0][0, -1, :6]
    _, kv_cache = layer.decode_step(x[:, :1])
    for t in (1, 2):
        _, kv_cache = layer.decode_step(x[:, t : t + 1], kv_cache)
    y, (_, v) = layer.decode_step(x[:, 3:], kv_cache)
    return {say("y of a token that attends only to itself"): (y, v[:, -1:])}


BUG = Specimen(
    summary="training is correct, but decoding token by token is wrong",
    symptom="""
    A model learns sentences that repeat their first three tokens. After {bug[steps]} steps its loss is
    {bug[last]:.2f}, with and without the bug. Then it gets the first three tokens of a sentence and generates
    the others. If forward reads the complete sentence for each new token, {bug[whole]:.0f} % of the generated
    tokens are correct. decode_step reads only the new token and keeps the keys and values of the earlier
    tokens in a KV cache. It should give the same result, but only {bug[right]:.0f} % of its tokens are
    correct.
    """,
    train=lambda own: learn_songs(own.RelativeAttention, whole={}, right={"word_by_word": True}),
    trials=(
        gradients("gradient check of the layer", lambda own: (layer_of(own), normal(2, 5, 6))),
        equal("forward gives the same as the package", compare_with_package),
        equal("decode_step gives the same as forward", word_by_word(layer_of)),
        equal("the distances of the last queries of a sentence", last_queries),
        equal("in decode_step, a token that attends only to itself reads its own value", nearest),
        float32_with_decoding(lambda own: layer_of(own, np.float32)),
    ),
    english_hints=(
        "Training and forward are correct. Both forward and decode_step call attend. How do their arguments "
        "differ?",
        "Call layer.decode_step with x[:, :1], then x[:, 1:2], and so on. Compare each y with "
        "layer.forward(x)[0]. Which is the first token with a difference?",
        "Print distances(4, 4, 2) and then distances(1, 4, 2). In decode_step, the only query is the last "
        "token of the sentence.",
    ),
    story="""
    distances assumed that the queries are at the positions 0, 1, and so on. This is true in forward. In
    decode_step there is only one query, which is the newest token, but distances treated it as the first
    token of the sentence. So all keys seemed to be to the right of the query, at distances that never occur
    in causal training. {bug[right]:.0f} % of the generated tokens were correct. With your repair it is
    {right[right]:.0f} %. The loss and the gradients cannot show this bug, because training does not use
    decode_step. Absolute positions can have the same bug, if the next token gets the wrong row of the table.
    So can a KV cache that removes old tokens. To find it, compare decoding token by token with the forward
    pass of the complete sentence.
    """,
    repair="""
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - np.arange(n_keys - n_queries, n_keys)[:, None]  # (T, S)
""",
)
