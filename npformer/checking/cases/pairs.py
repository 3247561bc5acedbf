"""Cases of the pure pairs."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.checking.cases.case import FF, B, Case, D, H, S, T, V, floats, pair_case
from npformer.functional.masks import causal_mask, local_mask, padding_mask, query_mask
from npformer.functional.rotary import ROTARY_LAYOUTS
from npformer.functional.tutorial_masks import Masking


def pair_cases() -> Iterator[Case]:
    """Yield activations, softmaxes, dropout, the linear map, norms, rotations, heads and the losses."""
    x = floats(B, T, D)
    for name, pair in F.ACTIVATIONS.items():
        if name != "none":
            yield pair_case(name, pair, x)
    yield pair_case("sigmoid", (F.sigmoid, F.sigmoid_backward), x)
    yield pair_case("softmax", (F.softmax, F.softmax_backward), x)
    yield pair_case("log-softmax", (F.log_softmax, F.log_softmax_backward), x)
    yield pair_case("dropout", (F.dropout, F.dropout_backward), x, p=0.4, rng=5)
    yield pair_case("linear", (F.linear, F.linear_backward), x, floats(D, FF), floats(FF))
    yield pair_case("layer norm", (F.layer_norm, F.layer_norm_backward), x, floats(D), floats(D))
    yield pair_case("RMS norm", (F.rms_norm, F.rms_norm_backward), x, floats(D))
    for name, gated in F.GATED_ACTIVATIONS.items():
        yield pair_case(name, gated, x, x)
    yield from _rotary_cases()
    for n_repeats in (1, 3):
        repeat = (_repeating(n_repeats), F.repeat_heads_backward)
        yield pair_case(f"repeat heads, {n_repeats}", repeat, floats(B, 2, S, 3))
    yield from _residual_cases()
    targets = np.array([[4, 1, 0, 8], [2, 0, 0, 3]])  # 0 is padding
    options: dict[str, dict[str, Any]] = {
        "cross-entropy": {},
        "cross-entropy, padding": {"pad_id": 0},
        "cross-entropy, a part of 20 tokens": {"pad_id": 0, "tokens": 20},
        "cross-entropy, label smoothing": {"pad_id": 0, "smoothing": 0.1},
    }
    for name, settings in options.items():
        loss = (_at_targets(targets, settings), F.cross_entropy_backward)
        yield pair_case(name, loss, floats(B, T, V))
    q = F.smooth_targets(targets, V, 0.1)
    yield pair_case("KL divergence", (_at(F.kl_divergence, q), F.kl_divergence_backward), floats(B, T, V))
    yield pair_case("L2 distance", (_at(F.l2_distance, q), F.l2_distance_backward), floats(B, T, V))
    yield from similarity_cases()


def _rotary_cases() -> Iterator[Case]:
    """Yield rotary positions in both layouts: the same positions in all sentences, and different ones."""
    starts: dict[str, Any] = {"": 2, ", starts apart": np.array([0, 5])[:, None, None]}
    for layout in ROTARY_LAYOUTS:
        for name, start in starts.items():
            cos, sin = F.rotary_table(start + np.arange(T), D)
            pair = (_rotating(cos, sin, layout), F.rotate_backward)
            yield pair_case(f"rotary positions, {layout}{name}", pair, floats(B, H, T, D))


def _rotating(cos: Array, sin: Array, layout: str) -> Callable[[Array], Any]:
    return lambda x: F.rotate(x, cos, sin, layout)


def _repeating(n_repeats: int) -> Callable[[Array], Any]:
    return lambda x: F.repeat_heads(x, n_repeats)


def _residual_cases() -> Iterator[Case]:
    """Yield add and norm, and activation and dropout, which the layers compute as one pair each."""
    x = floats(B, T, D)
    add_norm = (F.add_norm, F.add_norm_backward)
    yield pair_case("add and norm", add_norm, x, x, floats(D), floats(D), p=0.4, rng=5)
    activation = (F.activation_dropout, F.activation_dropout_backward)
    for name in ("relu", "gelu_tanh"):
        yield pair_case(f"{name} and dropout", activation, x, activation=name, p=0.4, rng=5)


def similarity_cases() -> Iterator[Case]:
    """Yield the four similarities. Where the similarity allows it, keys and queries differ in width."""
    q, k, keys = floats(B, T, 3), floats(B, S, 3), floats(B, S, 2)
    yield pair_case("dot similarity", (F.dot_similarity, F.dot_similarity_backward), q, k)
    general = (F.general_similarity, F.general_similarity_backward)
    yield pair_case("general similarity", general, q, keys, floats(3, 2))
    concat = (F.concat_similarity, F.concat_similarity_backward)
    yield pair_case("concat similarity", concat, q, keys, floats(5))
    perceptron = (F.perceptron_similarity, F.perceptron_similarity_backward)
    yield pair_case("perceptron similarity", perceptron, q, keys, floats(3, D), floats(2, D), floats(D))


def _at_targets(targets: Array, settings: dict[str, Any]) -> Callable[[Array], Any]:
    return lambda logits: F.cross_entropy(logits, targets, **settings)


def _at(loss: Callable[..., Any], q: Array) -> Callable[[Array], Any]:
    return lambda logits: loss(logits, q)


SENTENCES = np.array([[5, 6, 7, 8, 3], [5, 6, 3, 0, 0]]), np.array([[2, 5, 6, 3], [2, 4, 0, 0]])


def _masks() -> dict[str, dict[str, Array]]:
    """Return settings of attention with masks, by name."""
    source, target = SENTENCES
    nothing = np.ones((B, 1, T, S), bool)
    nothing[0, 0, 1] = False  # a query that may attend to no key
    return {
        "no mask": {},
        "key padding": {"mask": padding_mask(source)},
        "query mask": {"mask": padding_mask(source) & query_mask(target)},
        "arbitrary mask": {"mask": np.random.default_rng(3).random((B, H, T, S)) > 0.4},
        "fully masked row": {"mask": nothing},
    }


def _masked_softmax(scores: Array, *, mask: Array) -> tuple[Array, tuple[Any, Any]]:
    """Return softmax(mask_scores(scores)), since a score of -inf is no number to differentiate."""
    masked, mask_cache = F.mask_scores(scores, mask)
    y, softmax_cache = F.softmax(masked)
    return y, (mask_cache, softmax_cache)


def _masked_softmax_backward(dy: Array, cache: tuple[Any, Any]) -> Array:
    mask_cache, softmax_cache = cache
    return F.mask_scores_backward(F.softmax_backward(dy, softmax_cache), mask_cache)


def attention_cases() -> Iterator[Case]:
    """Yield scaled dot-product attention with every mask, also with those of tutorials."""
    pair = (F.attention, F.attention_backward)
    qkv = (floats(B, H, T, 3), floats(B, H, S, 3), floats(B, H, S, 2))
    for name, settings in _masks().items():
        yield pair_case(f"attention, {name}", pair, *qkv, **settings)
    masked_softmax = (_masked_softmax, _masked_softmax_backward)
    settings = _masks()["arbitrary mask"]
    yield pair_case("softmax of masked scores", masked_softmax, floats(B, H, T, S), **settings)
    square = (floats(B, H, T, 3), floats(B, H, T, 3), floats(B, H, T, 2))
    probe = np.zeros(1)
    yield pair_case("attention, causal", pair, *square, mask=causal_mask(T, probe))
    yield pair_case("attention, window", pair, *square, mask=causal_mask(T, probe, window=2))
    yield pair_case("attention, local", pair, *square, mask=local_mask(T, 1, probe))
    yield pair_case("attention, dropout", pair, *qkv, p=0.3, rng=5)
    yield pair_case("attention, unscaled", pair, *qkv, scale=1.0)
    yield from _tutorial_cases(qkv)


def _tutorial_cases(qkv: tuple[Any, ...]) -> Iterator[Case]:
    """Yield attention with the masks of tutorials, and these masks alone."""
    source, target = SENTENCES
    masks = {"mask": padding_mask(source), "query_mask": query_mask(target)}
    pair = (F.tutorial_attention, F.tutorial_attention_backward)
    for name, masking in {
        "replace by -1e10": Masking(-1e10),
        "add -1e9": Masking(-1e9, "add"),
        "add -2": Masking(-2.0, "add"),
        "queries before": Masking(-(2.0**32) + 1, "replace", "before"),
    }.items():
        yield pair_case(f"attention of tutorials, {name}", pair, *qkv, masking=masking, **masks)
    fill = (F.fill_scores, F.fill_scores_backward)
    finite = Masking(-3.0, query="before")
    yield pair_case("scores filled with -3", fill, floats(B, H, T, S), masking=finite, **masks)
