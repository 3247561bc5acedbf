"""Lesson 14: from a model to a sentence."""

from functools import cache
from typing import Any

import numpy as np

from npformer.generation import greedy
from npformer.generation.beam import best_continuations, length_norm
from npformer.learn.exercises.exercise import Exercise, Functions, Values
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn.attention import MultiHeadAttention

SOURCE = np.array([[5, 6, 7, 3], [8, 3, 0, 0], [4, 9, 3, 0]])


@cache
def _model() -> Any:
    """Return a small untrained model whose sentences end after 5, 2 and more than 6 tokens."""
    config = TransformerConfig(
        source_vocab=11,
        target_vocab=11,
        d_model=8,
        d_ff=8,
        n_heads=2,
        n_layers=1,
        max_length=16,
        dropout=0.0,
        tied="none",
    )
    return Transformer(config, rng=np.random.default_rng(834), dtype=np.float64)


def _sentences(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "greedy(model, source, max_length=6)": own.greedy(_model(), SOURCE, max_length=6),
        "greedy(model, source, max_length=2)": own.greedy(_model(), SOURCE, max_length=2),
    }


def _beams(own: Functions, rng: np.random.Generator) -> Any:
    so_far, log_probs = rng.standard_normal(3), np.log(rng.dirichlet(np.ones(6), 3))
    log_probs[1, 2] = -np.inf
    result: dict[str, Any] = {}
    for n in (1, 4, 17, 18):
        kept = list(own.best_continuations(so_far, log_probs, n))
        result[f"(row, word) of the {n} best"] = [(int(row), int(token)) for row, token, _ in kept]
        result[f"log-probability of the {n} best"] = np.array([float(total) for _, _, total in kept])
    return result


def _norms(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {"length_norm(n, 0.6)": np.array([float(own.length_norm(n, 0.6)) for n in (1, 2, 7, 30)])}


def _steps(own: Functions, rng: np.random.Generator) -> Any:
    layer = MultiHeadAttention(6, 2, rng=rng, dtype=np.float64)
    result: dict[str, Any] = {}
    kv_cache = None
    for t in range(3):
        y, kv_cache = own.decode_step(layer, rng.standard_normal((2, 1, 6)), kv_cache)
        result |= {f"y at position {t}": y, f"keys after {t}": kv_cache[0], f"values after {t}": kv_cache[1]}
    return result


DECODING = (
    Exercise(
        "greedy",
        14,
        "a sentence, the most probable word each time",
        '''
import numpy as np


def greedy(model, source, *, max_length):
    """The most probable next word, again and again, until the end symbol or max_length words.

    model   model.forward(source, target_in) -> (logits (B, T, V), cache), where target_in (B, T) starts with
            model.config.start_id; logits[:, -1] scores the word that comes next
    source  integers (B, S)
    Padding (id 0), the unknown word (1) and the start symbol (2) are never chosen; the end symbol is
    model.config.end_id. Returns a list of B lists of ids (Python ints), without start and end.
    """
''',
        (Values("", _sentences),),
        (
            "Keep an array of the words so far, (B, 1) at first, and let it grow by a column a step.",
            "Set the logits of the forbidden ids to -inf, then argmax over the last axis.",
            "When a row has ended, go on with the others: cut each row at its first end symbol afterwards.",
        ),
        {"greedy": greedy},
    ),
    Exercise(
        "best-continuations",
        14,
        "one step of beam search",
        '''
import numpy as np


def best_continuations(so_far, log_probs, n):
    """The n best continuations of all live hypotheses, best first.

    so_far     (R,) the log-probability of each hypothesis
    log_probs  (R, V) that of each next word; -inf for a word that is forbidden
    Returns a list of (row, word, so_far[row] + log_probs[row, word]); none that is -inf, and fewer than n
    where there are no more. Of equal ones the lower row, then the lower word comes first.
    """
''',
        (Values("", _beams),),
        (
            "All R · V sums compete with each other, whatever row they come from.",
            "total = (so_far[:, None] + log_probs).reshape(-1); np.argsort(-total, kind='stable') sorts.",
            "np.divmod(index, V) gives row and word back. Drop what is -inf.",
        ),
        {"best_continuations": best_continuations},
    ),
    Exercise(
        "length-norm",
        14,
        "so that long sentences are not punished",
        '''

def length_norm(length, length_penalty):
    """((5 + length) / 6) to the power length_penalty: what a log-probability is divided by.

    Returns a number: 1 for a length of 1.
    """
''',
        (Values("", _norms),),
        (
            "The formula is in the docstring; it has one trap, the brackets.",
            "First the fraction, then the power.",
            "((5 + length) / 6) ** ...",
        ),
        {"length_norm": length_norm},
    ),
    Exercise(
        "cached-step",
        14,
        "one new position, keys and values kept",
        '''
import numpy as np

from npformer.nn.attention import KVCache
from npformer.functional import attention, merge_heads


def decode_step(layer, x, kv_cache=None):
    """Self-attention for the position that comes next.

    layer  layer.project(x, x, x) -> ((q, k, v), _), each (B, H, 1, K); layer.output.forward(z) -> (y, _)
    x      (B, 1, D) the new position alone
    kv_cache  .k and .v (B, H, S, K) of the positions before; None at the first one
    Returns (y (B, 1, D), KVCache(k, v)), with the keys and values of all positions, the new one last.
    attention(q, k, v) -> (z, _) and merge_heads(z) do the rest.
    """
''',
        (Values("", _steps),),
        (
            "Only the query is new work: keys and values of the past are there already.",
            "np.concatenate([kv_cache.k, k], 2) puts the new key after the others; the same with v.",
            "attention of q to all keys, merge_heads, layer.output.forward.",
        ),
        {"decode_step": MultiHeadAttention.decode_step},
    ),
)
