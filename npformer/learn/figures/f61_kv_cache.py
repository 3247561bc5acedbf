"""F61: the bytes of a KV cache against the length of the text, for several numbers of key heads."""

from collections.abc import Sequence

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError, quantity
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.gpt import GPT, GPTConfig
from npformer.plots import curves

POINTS = 8  # lengths above 0 for which a text is read


@figure("F61", "The bytes of a KV cache", "course", "FW")
def kv_cache_bytes(
    *,
    key_heads: Sequence[int] = (8, 2, 1),
    n_heads: int = 8,
    d_model: int = 128,
    n_layers: int = 4,
    longest: int = 256,
) -> Drawing:
    """Draw the bytes of the KV caches of GPTs that differ only in the number of key heads.

    Args:
        key_heads: The numbers of heads of keys and values, one for each curve.
        n_heads: The number of query heads.
        d_model: The width of the models.
        n_layers: The number of layers.
        longest: The length of the longest text, a multiple of 8.
    Raises:
        UserError: If a setting is impossible.
    """
    if longest < POINTS or longest % POINTS:
        raise UserError(f"longest is {longest}: it must be a multiple of {POINTS} above 0")
    lengths = np.arange(POINTS + 1) * (longest // POINTS)  # (P,)
    config = GPTConfig.preset(
        "gpt-shakespeare", n_heads=n_heads, d_model=d_model, n_layers=n_layers, context=longest
    )
    measured = [_bytes_of_caches(config.replace(n_kv_heads=number), lengths) for number in key_heads]
    picture = curves(
        np.array(measured) / 1024,
        lengths,
        labels=[_name(number, n_heads) for number in key_heads],
        xlabel="tokens of the text",
        ylabel="KiB of the KV cache",
        legend=True,
    )
    return Drawing(picture, _caption(config, key_heads, measured))


def _bytes_of_caches(config: GPTConfig, lengths: Array) -> list[int]:
    """Let a GPT read a text of each length, and return the bytes of its KV caches. Shapes: lengths (P,)."""
    model, found = GPT(config, rng=np.random.default_rng(0)), []
    for length in lengths.tolist():
        kv_cache = model.empty_kv_cache(length)
        if length:
            model.decode_step(np.zeros((1, length), int), 0, kv_cache)
        found.append(sum(each.nbytes for each in kv_cache))
    return found


def _name(key_heads: int, n_heads: int) -> str:
    """Return the name of a curve."""
    kind = {n_heads: "multi-head", 1: "multi-query"}.get(key_heads, "grouped")
    return f"{quantity(key_heads, 'key head')} ({kind})"


def _caption(config: GPTConfig, key_heads: Sequence[int], measured: Sequence[Sequence[int]]) -> str:
    sizes = [
        f"{found[-1]:,} bytes with {_name(number, config.n_heads)}"
        for number, found in zip(key_heads, measured, strict=True)
    ]
    return (
        f"The KV caches of GPTs with {quantity(config.n_layers, 'layer')} and "
        f"{quantity(config.n_heads, 'query head')} of width {config.d_head}, in float32: the size of their "
        f"arrays after one text of each length. After {quantity(config.context, 'token')} there are "
        f"{'; '.join(sizes)}. The bytes are proportional to the length and to the number of key heads."
    )
