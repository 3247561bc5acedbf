"""Cases of relative positions: both computations, the layer with every option, and stacks."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.checking.cases.case import B, Case, D, H, S, T, floats, made, make_case, pair_case
from npformer.checking.cases.models import DROPPING, NARROW, TARGET_IN
from npformer.functional.masks import causal_mask, padding_mask, query_mask
from npformer.nn.attention import BucketedAttention, RelativeAttention

R = 5  # the number of vectors, for distances from -2 to 2, so that some tokens are farther apart


def relative_cases() -> Iterator[Case]:
    """Yield the two pairs with all masks, and the layer with every option."""
    pairs = {
        "relative attention": F.relative_attention,
        "by distance": F.relative_attention_by_distance,
    }
    inputs = (floats(B, H, T, 3), floats(B, H, S, 3), floats(B, H, S, 2), floats(R, 3), floats(R, 2))
    for name, pair in pairs.items():
        yield pair_case(f"{name}, dropout", pair, *inputs, p=0.3, rng=5)
        yield pair_case(f"{name}, last queries, unscaled", pair, *inputs, start=S - T, scale=1.0)
        masks = (np.arange(S) != 3) & (np.arange(T)[:, None] != 1)
        yield pair_case(f"{name}, masks", pair, *inputs, mask=masks)
        yield pair_case(f"{name}, causal", pair, *inputs, mask=causal_mask(S, np.zeros(1))[-T:])
    options: dict[str, dict[str, Any]] = {
        "separate": {},
        "on keys alone": {"on_values": False},
        "on values alone": {"on_keys": False},
        "on neither": {"on_keys": False, "on_values": False},
        "farther than the sentence": {"max_distance": 7},
        "unscaled": {"scale": False},
        "fused, d_head 4, d_value 5": {"fused": "qkv", **NARROW},
        "relu on q, k, v, no Wo": {"activation": "relu", "output": False},
        "dropout": {"dropout": 0.3},
    }
    mask = padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN)
    settings: dict[str, Any] = {"mask": mask, "query_mask": query_mask(TARGET_IN), **DROPPING}
    for name, option in options.items():
        attention = made(RelativeAttention, D, H, **({"max_distance": 2} | option))
        yield make_case(f"RelativeAttention, {name}", attention, floats(B, T, D), **settings)
    yield from bias_cases(settings)


def bias_cases(settings: dict[str, Any]) -> Iterator[Case]:
    """Yield the relative bias of T5 and its layer, on the input and the masks of `settings`."""
    few: dict[str, Any] = {"n_buckets": 4, "max_distance": 3}
    for both_sides in (True, False):
        buckets = F.relative_buckets(T, S, np.zeros(1), **few, both_sides=both_sides, start=S - T)
        name = "both sides" if both_sides else "one side"
        yield pair_case(f"relative bias, {name}", F.relative_bias, floats(4, H), buckets=buckets)
        layer = made(BucketedAttention, D, H, **few, both_sides=both_sides, dropout=0.3, scale=both_sides)
        yield make_case(f"BucketedAttention, {name}", layer, floats(B, T, D), **settings)
    yield make_case("BucketedAttention, a shared table", _with_shared_table, floats(B, T, D), **settings)


def _with_shared_table(rng: np.random.Generator) -> BucketedAttention:
    few: dict[str, Any] = {"n_buckets": 4, "max_distance": 3}
    first = made(BucketedAttention, D, H, **few)(rng)
    return made(BucketedAttention, D, H, **few, table=first.table)(rng)
