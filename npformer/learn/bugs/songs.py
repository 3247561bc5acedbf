"""The toy of the specimens about positions: sentences that repeat their first tokens, and shared trials."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import attention, rotary_table, rotate
from npformer.functional.masks import causal_mask
from npformer.learn.bugs.specimen import Names, Run, Trial
from npformer.learn.bugs.toys import Chain, Residual, cut, learn, learn_tokens
from npformer.learn.bugs.trials import (
    all_float32,
    equal,
    float32_stays,
    gradients,
    no_leak,
    normal,
    results_of,
)
from npformer.nn import Embedding, Linear

LENGTH, VOCAB_SIZE, PERIOD = 9, 12, 3
LATER = 10  # the position of the first token of a sentence that does not begin the text


class SongModel(Chain):
    """A model with embeddings, one layer of attention with a residual connection, and logits.

    Args:
        attention: The class of the layer of attention, which takes its width and rng.
        rng: The generator of the initial values.
    """

    def __init__(self, attention: Any, rng: np.random.Generator) -> None:
        super().__init__(
            Embedding(VOCAB_SIZE, 16, rng=rng, dtype=np.float64),
            Residual(attention(16, rng=rng)),
            Linear(16, VOCAB_SIZE, rng=rng, dtype=np.float64),
        )

    def decode_step(self, ids: Array, kv_cache: Any) -> tuple[Any, Any]:
        """Return (logits, kv_cache) after one more token. Shapes: ids (B, 1) -> logits (B, 1, V)."""
        tokens, attention, output = self.layers
        x, _ = tokens.forward(ids)
        h, kv_cache = attention.layer.decode_step(x, kv_cache)
        return output.forward(x + h)[0], kv_cache


def learn_songs(attention: Any, **facts: dict[str, Any]) -> Run:
    """Train a model on continuing sentences in which a few tokens repeat periodically.

    Args:
        attention: The class of the layer of attention.
        facts: The arguments of `share_right` for each number that the texts need, by its name.
    """
    rng = np.random.default_rng(3)
    model = SongModel(attention, rng)

    def songs(batch: int) -> Any:
        return np.tile(rng.integers(0, VOCAB_SIZE, (batch, PERIOD)), LENGTH // PERIOD)  # (B, LENGTH)

    losses = learn(model, lambda _: learn_tokens(model, *cut(songs(16))), steps=200, lr=0.01)
    ids = songs(64)
    return Run(losses, {name: share_right(model, ids, **settings) for name, settings in facts.items()})


def share_right(model: Any, ids: Array, word_by_word: bool = False, **settings: Any) -> float:
    """Return the percentage of right tokens in the model's continuation of the first PERIOD tokens.

    Args:
        model: The model.
        ids: The sentences, (B, LENGTH).
        word_by_word: True to decode with a KV cache, False to run the whole prefix at each step.
        settings: Keyword arguments of the model's forward.
    """
    written, kv_cache = ids[:, :PERIOD], None
    if word_by_word:
        for t in range(PERIOD - 1):
            _, kv_cache = model.decode_step(ids[:, t : t + 1], kv_cache)
    while written.shape[1] < LENGTH:
        if word_by_word:
            logits, kv_cache = model.decode_step(written[:, -1:], kv_cache)
        else:
            logits, _ = model.forward(written, **settings)
        written = np.concatenate([written, logits[:, -1:].argmax(-1)], 1)
    return 100 * float((written == ids)[:, PERIOD:].mean())


# ---------------------------------------------------------------------------------------------------------
# Trials


def word_by_word(make: Callable[[Names], Any]) -> Callable[[Names], Any]:
    """Return a comparison of every output of forward with that of decode_step for the same token.

    Args:
        make: make(own) returns a layer of width 6.
    """

    def compared(own: Names) -> Any:
        layer, x, kv_cache = make(own), normal(2, 6, 6), None
        whole, pairs = layer.forward(x)[0], {}
        for t in range(6):
            y, kv_cache = layer.decode_step(x[:, t : t + 1], kv_cache)
            pairs[f"y of token {t}"] = (y, whole[:, t : t + 1])
        return pairs

    return compared


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare the output of forward with that of the package's functions."""
    layer, x = own.RotaryAttention(6), normal(2, 5, 6)
    q, k, v = np.split(layer.query_key_value.forward(x)[0], 3, -1)
    cos, sin = rotary_table(np.arange(5), 6, base=100.0)
    right, _ = attention(rotate(q, cos, sin)[0], rotate(k, cos, sin)[0], v, causal_mask(5, x))
    return {"y": (layer.forward(x)[0], right)}


def move_sentence(own: Names) -> dict[str, Any]:
    """Compare the output at the beginning of a text with that at a later position."""
    layer, x = own.RotaryAttention(6), normal(2, 5, 6)
    return {"y of a sentence that begins later": (layer.forward(x, LATER)[0], layer.forward(x)[0])}


LAYER_GRADIENTS = gradients(
    "gradient check of the layer", lambda own: (own.RotaryAttention(6), normal(2, 5, 6))
)
NO_LEAK = no_leak(
    "no output depends on a later token", lambda own: (own.RotaryAttention(6).forward, normal(1, 4, 6))
)
AS_IN_THE_PACKAGE = equal("forward gives the same as the functions of the package", compare_with_package)
FLOAT32_STAYS = float32_stays(
    lambda own: (own.RotaryAttention(6, dtype=np.float32), normal(2, 4, 6)), "y", "dx"
)


def float32_with_decoding(make: Callable[[Names], Any]) -> Trial:
    """Return a trial of the dtype of a layer, in decoding too. make(own) returns the layer in float32."""

    def results(own: Names) -> dict[str, Any]:
        layer, x = make(own), normal(2, 4, 6).astype(np.float32)
        results = results_of(layer, [x], ("y", "dx"), np.ones_like)
        return {**results, "y of decode_step": layer.decode_step(x[:, :1])[0]}

    return all_float32("float32 stays float32", results)
