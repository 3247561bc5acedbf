"""Cases of the pure pairs."""

from collections.abc import Callable, Iterator
from itertools import product
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
    x, width = floats(B, T, D), floats(D)
    for name, pair in F.ACTIVATIONS.items():
        if name != "none":
            yield pair_case(name, pair, x)
    yield pair_case("sigmoid", F.sigmoid, x)
    yield pair_case("tanh", F.tanh, x)
    is_token = np.arange(T) < np.array([[T], [T - 1]])
    yield pair_case("mean pool", _at(F.mean_pool, is_token), x)
    yield pair_case("cosine similarity", F.cosine_similarity, x, x)
    yield pair_case("softmax", F.softmax, x)
    yield pair_case("log-softmax", F.log_softmax, x)
    yield pair_case("dropout", F.dropout, x, p=0.4, rng=5)
    yield pair_case("linear", F.linear, x, floats(D, FF), floats(FF))
    yield pair_case("layer norm", F.layer_norm, x, width, width)
    yield pair_case("RMS norm", F.rms_norm, x, width)
    yield pair_case("soft cap", (F.soft_cap, F.soft_cap_backward), x, cap=1.5)
    images, kernel = floats(2, 3, 4, 6), floats(D, 3, 2, 3)
    yield pair_case("patch embedding", F.patch_embedding, images, kernel, width)
    for name, size in {"each head": D, "all heads": H * D}.items():
        yield pair_case(
            f"QK-norm of {name}", (F.qk_norm, F.qk_norm_backward), floats(B, H, T, D), floats(size)
        )
    for name, gated in F.GATED_ACTIVATIONS.items():
        yield pair_case(name, gated, x, x)
    yield from rotary_cases()
    for n_repeats in (1, 3):
        pair = (_repeating(n_repeats), F.repeat_heads_backward)
        yield pair_case(f"repeat heads, {n_repeats}", pair, floats(B, 2, S, 3))
    joining = (F.join_shared, F.join_shared_backward)
    yield pair_case("join shared", joining, floats(B, 1, S, 2), floats(B, H, S, 3))
    # add and norm, and activation and dropout, which the layers compute as one pair each
    yield pair_case("add and norm", F.add_norm, x, x, width, width, p=0.4, rng=5)
    for name in ("relu", "gelu_tanh"):
        yield pair_case(f"{name} and dropout", F.activation_dropout, x, activation=name, p=0.4, rng=5)
    yield from expert_cases()
    yield from loss_cases()
    yield from memory_cases()
    yield from answer_cases()
    yield from similarity_cases()


def loss_cases() -> Iterator[Case]:
    """Yield the losses of single tokens."""
    targets = np.array([[4, 1, 0, 8], [2, 0, 0, 3]])  # 0 is padding
    options: dict[str, dict[str, Any]] = {
        "": {},
        ", padding": {"pad_id": 0},
        ", a part of 20 tokens": {"pad_id": 0, "tokens": 20},
        ", label smoothing": {"pad_id": 0, "smoothing": 0.1},
    }
    for name, settings in options.items():
        yield pair_case(f"cross-entropy{name}", _at(F.cross_entropy, targets, **settings), floats(B, T, V))
    smooth = F.smooth_targets(targets, V, 0.1)
    yield pair_case("KL divergence", _at(F.kl_divergence, smooth), floats(B, T, V))
    yield pair_case("L2 distance", _at(F.l2_distance, smooth), floats(B, T, V))


def memory_cases() -> Iterator[Case]:
    """Yield the attention whose memory has a fixed size."""
    q, k, v, beta = floats(B, 7, 3), floats(B, 7, 3), floats(B, 7, 2), floats(B, 7)
    for chunk in (3, 7):  # three chunks, the last of them shorter, and one
        yield pair_case(f"linear attention, chunks of {chunk}", F.linear_attention, q, k, v, chunk=chunk)
        yield pair_case(f"delta rule, chunks of {chunk}", F.delta_rule, q, k, v, beta, chunk=chunk)
        gated = (F.gated_delta_rule, F.gated_delta_rule_backward)
        yield pair_case(f"gated delta rule, chunks of {chunk}", gated, q, k, v, beta, beta, chunk=chunk)


def expert_cases() -> Iterator[Case]:
    """Yield the router of a mixture of experts, the sum of their outputs, and the balance of their loads."""
    for name, (k, renormalize) in {"two of four": (2, True), "one of four": (1, False)}.items():
        router = _routing(k, renormalize), F.route_backward
        yield pair_case(f"router, {name}", router, floats(T, 4))
    yield pair_case("sum of experts", F.combine, floats(T, 2), floats(T, 2, D))
    chosen = np.array([[0, 2], [1, 2], [2, 0], [0, 2]])
    balance = (lambda logits: F.load_balancing(logits, chosen)), F.load_balancing_backward
    yield pair_case("load balancing", balance, floats(T, 4))


def _routing(k: int, renormalize: bool) -> Callable[[Array], Any]:
    return lambda logits: F.route(logits, k, renormalize=renormalize)


def answer_cases() -> Iterator[Case]:
    """Yield LoRA, whose weight is frozen, and the losses of whole answers, whose references are given."""
    rng = np.random.default_rng(4)
    weight, margins = rng.standard_normal((D, FF)), rng.standard_normal(B + 1)
    low_rank = (lambda x, a, b: F.lora_linear(x, a, b, weight, scale=0.5)), F.lora_linear_backward
    yield pair_case("LoRA", low_rank, floats(B, T, D), floats(D, 2), floats(2, FF))
    preference = (lambda chosen, rejected: F.dpo(chosen, rejected, margins, beta=0.7)), F.dpo_backward
    yield pair_case("DPO", preference, floats(B + 1), floats(B + 1))
    old, reference = rng.standard_normal((2, S, T))
    advantages, mask = np.array([1.2, -0.7, 0.0, 0.4, -1.5]), rng.random((S, T)) > 0.3
    policy = (
        (lambda log_probs: F.grpo(log_probs, old, reference, advantages, mask, beta=0.3)),
        F.grpo_backward,
    )
    yield pair_case("GRPO", policy, floats(S, T))


def rotary_cases() -> Iterator[Case]:
    """Yield the rotation by positions, of all columns of queries and keys and of two of them."""
    starts: dict[str, Any] = {"": 2, ", starts apart": np.array([0, 5])[:, None, None]}
    for layout, (name, start) in product(ROTARY_LAYOUTS, starts.items()):
        cos, sin = F.rotary_table(start + np.arange(T), D)
        pair = (_rotating(cos, sin, layout), F.rotate_backward)
        yield pair_case(f"rotary positions, {layout}{name}", pair, floats(B, H, T, D))
        cos, sin = F.rotary_table(start + np.arange(T), 2)
        pair = (_rotating(cos, sin, layout), F.rotate_backward)
        yield pair_case(f"rotary positions of two columns, {layout}{name}", pair, floats(B, H, T, D))


def _rotating(cos: Array, sin: Array, layout: str) -> Callable[[Array], Any]:
    return lambda x: F.rotate(x, cos, sin, layout)


def _repeating(n_repeats: int) -> Callable[[Array], Any]:
    return lambda x: F.repeat_heads(x, n_repeats)


def _at(loss: Callable[..., Any], q: Array, **settings: Any) -> tuple[Any, Any]:
    return lambda logits: loss(logits, q, **settings), getattr(F, f"{loss.__name__}_backward")


def similarity_cases() -> Iterator[Case]:
    """Yield the four similarities. Where the similarity allows it, keys and queries differ in width."""
    q, k, keys = floats(B, T, 3), floats(B, S, 3), floats(B, S, 2)
    yield pair_case("dot similarity", F.dot_similarity, q, k)
    yield pair_case("general similarity", F.general_similarity, q, keys, floats(3, 2))
    yield pair_case("concat similarity", F.concat_similarity, q, keys, floats(5))
    weights = (floats(3, D), floats(2, D), floats(D))
    yield pair_case("perceptron similarity", F.perceptron_similarity, q, keys, *weights)


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
    qkv = (floats(B, H, T, 3), floats(B, H, S, 3), floats(B, H, S, 2))
    for name, settings in _masks().items():
        yield pair_case(f"attention, {name}", F.attention, *qkv, **settings)
    masked_softmax = (_masked_softmax, _masked_softmax_backward)
    settings = _masks()["arbitrary mask"]
    yield pair_case("softmax of masked scores", masked_softmax, floats(B, H, T, S), **settings)
    square = (floats(B, H, T, 3), floats(B, H, T, 3), floats(B, H, T, 2))
    probe = np.zeros(1)
    yield pair_case("attention, causal", F.attention, *square, mask=causal_mask(T, probe))
    yield pair_case("attention, window", F.attention, *square, mask=causal_mask(T, probe, window=2))
    yield pair_case("attention, local", F.attention, *square, mask=local_mask(T, 1, probe))
    yield pair_case("attention, dropout", F.attention, *qkv, p=0.3, rng=5)
    yield pair_case("attention, unscaled", F.attention, *qkv, scale=1.0)
    source, target = SENTENCES
    masks = {"mask": padding_mask(source), "query_mask": query_mask(target)}
    for name, masking in {
        "replace by -1e10": Masking(-1e10),
        "add -1e9": Masking(-1e9, "add"),
        "add -2": Masking(-2.0, "add"),
        "queries before": Masking(-(2.0**32) + 1, "replace", "before"),
    }.items():
        how = {"masking": masking, **masks}
        yield pair_case(f"attention of tutorials, {name}", F.tutorial_attention, *qkv, **how)
    finite = {"masking": Masking(-3.0, query="before"), **masks}
    yield pair_case("scores filled with -3", F.fill_scores, floats(B, H, T, S), **finite)
