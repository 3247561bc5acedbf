"""Hidden trials of the exercises whose public trials have fixed inputs: the same calls, with drawn numbers.

All other exercises draw their inputs in any case, so that another seed is enough.
"""

from typing import Any, TypeAlias

import numpy as np

from npformer.data.subwords import Pieces
from npformer.learn.exercises.exercise import Functions
from npformer.learn.exercises.topics.tools import without_like
from npformer.models.gpt import GPTConfig
from npformer.models.transformer import Transformer, TransformerConfig

Results: TypeAlias = dict[str, Any]


def _ids(rng: np.random.Generator, length: int) -> list[int]:
    """Return a list of ids from 4 to 19: none is that of padding, of the start or of the end."""
    return [int(each) for each in rng.integers(4, 20, length)]


def padded(own: Functions, rng: np.random.Generator) -> Results:
    """Pad rows of drawn lengths."""
    rows = [_ids(rng, int(length)) for length in rng.permutation(6)[:4]]
    pad_id = int(rng.integers(30, 40))
    return {f"pad({rows})": own.pad(rows), f"pad({rows}, pad_id={pad_id})": own.pad(rows, pad_id)}


def truncated(own: Functions, rng: np.random.Generator) -> Results:
    """Truncate drawn ids with and without an end symbol, at lengths below, at and above theirs."""
    result = {}
    for ending in ([3], []):
        ids = _ids(rng, 6) + ending
        for length in (2, 5, len(ids), len(ids) + 2):
            result[f"truncate({ids}, {length})"] = own.truncate(list(ids), length)
    return result


def tables(own: Functions, rng: np.random.Generator) -> Results:
    """Compute tables of sinusoids of drawn sizes."""
    sizes = [(int(length), 2 * int(half)) for length, half in rng.integers((3, 1), (15, 8), (3, 2))]
    return {f"sinusoids({length}, {width})": own.sinusoids(length, width) for length, width in sizes}


def causal(own: Functions, rng: np.random.Generator) -> Results:
    """Compute causal masks of drawn lengths."""
    mask = without_like(own.causal_mask)
    return {f"causal_mask({length})": mask(length) for length in map(int, rng.permutation(range(2, 12))[:3])}


def padding(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the masks of drawn ids."""
    ids = rng.integers(0, 4, (3, 7))
    return {
        f"padding_mask(ids, {pad_id}) of ids {ids.tolist()}": own.padding_mask(ids, pad_id)
        for pad_id in (0, 2)
    }


def local(own: Functions, rng: np.random.Generator) -> Results:
    """Compute local masks of drawn lengths and radii."""
    mask = without_like(own.local_mask)
    sizes = [(int(length), int(radius)) for length, radius in rng.integers((4, 0), (12, 4), (3, 2))]
    return {f"local_mask({length}, {radius})": mask(length, radius) for length, radius in sizes}


def window_masks(own: Functions, rng: np.random.Generator) -> Results:
    """Compute causal masks with drawn windows."""
    sizes = [(int(length), int(window)) for length, window in rng.integers((3, 1), (10, 7), (4, 2))]
    return {f"causal_mask({length}, {window})": own.causal_mask(length, window) for length, window in sizes}


def shifted(own: Functions, rng: np.random.Generator) -> Results:
    """Shift drawn targets."""
    target = rng.integers(3, 20, (3, 5))
    start = int(rng.integers(20, 30))
    return {f"target_in with start {start}": own.shifted_right(target, start)}


def smooth(own: Functions, rng: np.random.Generator) -> Results:
    """Smooth drawn targets by a drawn number."""
    smoothing, vocab = float(rng.uniform(0.05, 0.4)), int(rng.integers(5, 12))
    targets = rng.integers(0, vocab, (2, 4))
    return {
        f"smooth_targets(targets, {vocab}, {smoothing:.3f})": own.smooth_targets(targets, vocab, smoothing)
    }


def rates(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the rates of the paper's schedule with drawn settings."""
    d_model, steps, factor = int(rng.integers(16, 600)), int(rng.integers(3, 40)), float(rng.uniform(0.5, 3))
    schedule = own.warmup(d_model, steps, factor)
    name = f"the rates of warmup({d_model}, {steps}, {factor:.3f})"
    return {name: np.array([schedule(step) for step in (1, 2, steps - 1, steps, steps + 1, 5 * steps)])}


def _cosine_settings(rng: np.random.Generator) -> tuple[float, int, int, list[int]]:
    """Return a peak, the steps of the schedule and of its warmup, and steps at which to look."""
    peak, warmup, rest = float(rng.uniform(0.1, 2)), int(rng.integers(2, 8)), int(rng.integers(5, 30))
    total = warmup + rest
    return (
        peak,
        total,
        warmup,
        [1, warmup - 1, warmup, warmup + 1, warmup + rest // 2, total - 1, total, total + 9],
    )


def cosine_rates(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the rates of a schedule with drawn settings."""
    peak, total, warmup, steps = _cosine_settings(rng)
    schedule = own.cosine(peak, total, warmup)
    name = f"the rates of cosine({peak:.3f}, {total}, {warmup})"
    return {name: np.array([schedule(step) for step in steps if step])}


def rates_with_a_floor(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the rates of a schedule with drawn settings and a drawn floor."""
    peak, total, warmup, steps = _cosine_settings(rng)
    floor = peak * float(rng.uniform(0.05, 0.4))
    schedule = own.cosine(peak, total, warmup, floor)
    name = f"the rates of cosine({peak:.3f}, {total}, {warmup}, {floor:.3f})"
    return {name: np.array([schedule(step) for step in steps if step])}


def sentences(own: Functions, rng: np.random.Generator) -> Results:
    """Translate drawn ids with a model of drawn weights."""
    sizes: dict[str, Any] = {"source_vocab": 11, "target_vocab": 11, "d_model": 8, "d_ff": 8, "n_heads": 2}
    config = TransformerConfig(**sizes, n_layers=1, max_length=16, dropout=0.0, tied="none")
    model = Transformer(config, rng=rng, dtype=np.float64)
    source = rng.integers(4, 11, (4, 5))
    return {f"greedy(model, source, max_length={n})": own.greedy(model, source, max_length=n) for n in (3, 8)}


def norms(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the length norm for drawn lengths and powers."""
    lengths = [int(each) for each in rng.integers(1, 60, 5)]
    return {
        f"length_norm(n, {power:.3f})": np.array([float(own.length_norm(n, power)) for n in lengths])
        for power in rng.uniform(0.3, 2, 2)
    }


def joined(own: Functions, rng: np.random.Generator) -> Results:
    """Join the pieces of drawn words."""
    pieces = Pieces(
        ["er", "lo", "low", "▁low", "es", "est", "▁lower", "we", "ne", "new", "ea", *"▁lowernsta"]
    )
    words = ["▁" + "".join(rng.choice(list("lowernsta"), 6)) for _ in range(6)]
    words += ["▁low" + "".join(rng.choice(["er", "est", "ne", "we"], 2)) for _ in range(4)]
    return {f"the pieces of {word}": own.join_pieces(pieces, word) for word in words}


def scores(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the BLEU of drawn lines, each of which shares a beginning with its reference."""
    lines = []
    for _ in range(3):
        common = [str(each) for each in rng.choice(list("abcdefg"), 6)]
        ends = [[str(each) for each in rng.choice(list("uvwxyz"), int(n))] for n in rng.integers(0, 5, 2)]
        lines.append((" ".join(common + ends[0]), " ".join(common + ends[1])))
    translations, references = map(list, zip(*lines, strict=True))
    return {f"BLEU of {translations}": float(own.bleu(translations, references))}


def sizes(own: Functions, rng: np.random.Generator) -> Results:
    """Compute the size of the KV cache for drawn settings."""
    heads, layers, window = int(rng.integers(1, 4)), int(rng.integers(1, 7)), int(rng.integers(4, 20))
    config = GPTConfig.preset(
        "small", d_model=12 * heads, n_heads=2 * heads, n_layers=layers, n_kv_heads=heads
    )
    length, batch = int(rng.integers(20, 60)), int(rng.integers(1, 9))
    result = {}
    for name, width in (("no window", None), (f"window {window}", window)):
        found = own.cache_bytes(config.replace(window=width), length, batch, 4)
        result[f"cache_bytes(config, {length}, {batch}, 4) with {name}"] = float(found)
    return result
