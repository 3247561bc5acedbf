"""Chapter 14: decoding, from a model to a sentence."""

from functools import cache
from typing import Any

import numpy as np

from npformer.generation import greedy
from npformer.generation.beam import best_continuations, length_norm
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn.attention import MultiHeadAttention

SOURCE = np.array([[5, 6, 7, 3], [8, 3, 0, 0], [4, 9, 3, 0]])


@cache
def _model(seed: int, lowered: float = 0.0) -> Any:
    """Return a small untrained model.

    Args:
        seed: With 834 its sentences end after 5, 2 and more than 6 tokens. With 5 one would choose forbidden
            tokens, and tokens other than the end symbol after the end symbol. With 2244 the first sentence is
            empty, and the second one does not end.
        lowered: A number. The larger it is, the further below 0 are the logits.
    """
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
    model = Transformer(config, rng=np.random.default_rng(seed), dtype=np.float64)
    if lowered:  # the first number of every vector becomes positive, and is subtracted from each logit
        parameters = dict(model.named_parameters())
        parameters["decoder.layers.0.norm3.bias"].value[0] += 4
        parameters["output.weight"].value[0] = -lowered
    return model


def _sentences(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "greedy(model, source, max_length=6)": own.greedy(_model(834), SOURCE, max_length=6),
        "greedy(model, source, max_length=2)": own.greedy(_model(834), SOURCE, max_length=2),
        "greedy(model, source, max_length=6), another model": own.greedy(_model(5), SOURCE, max_length=6),
        "greedy(model, source, max_length=6), an empty sentence": own.greedy(
            _model(2244), SOURCE, max_length=6
        ),
        "greedy(model, source, max_length=6), logits below 0": own.greedy(_model(5, 9), SOURCE, max_length=6),
    }


def _beams(own: Functions, rng: np.random.Generator) -> Any:
    so_far, log_probs = rng.standard_normal(3), np.log(rng.dirichlet(np.ones(6), 3))
    log_probs[1, 2] = -np.inf
    result: dict[str, Any] = {}
    for n in (1, 4, 17, 18):
        kept = list(own.best_continuations(so_far, log_probs, n))
        result[f"(row, token) of the {n} best"] = [(int(row), int(token)) for row, token, _ in kept]
        result[f"log-probability of the {n} best"] = np.array([float(total) for _, _, total in kept])
    equal = np.log(np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]))
    kept = list(own.best_continuations(np.zeros(2), equal, 5))
    result["(row, token) of the 5 best of equal totals"] = [(int(row), int(token)) for row, token, _ in kept]
    return result


def _norms(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        f"length_norm(n, {power})": np.array([float(own.length_norm(n, power)) for n in (1, 2, 7, 30)])
        for power in (0.6, 1.5)
    }


def _steps(own: Functions, rng: np.random.Generator) -> Any:
    layer = MultiHeadAttention(6, 2, rng=rng, dtype=np.float64)
    result: dict[str, Any] = {}
    kv_cache = None
    for t in range(3):
        y, kv_cache = own.decode_step(layer, rng.standard_normal((2, 1, 6)), kv_cache)
        result |= {f"y at position {t}": y, f"keys after {t}": kv_cache[0], f"values after {t}": kv_cache[1]}
    return result


DECODING = exercises(
    r'''
=== 14 greedy: greedy search: the most probable next token
import numpy as np


def greedy(model, source, *, max_length):
    """Translate by greedy search: choose the most probable next token at each step.

    A sentence ends with the end symbol, or after max_length tokens.
    model   model.forward(source, target_in) returns (logits (B, T, V), cache). target_in (B, T) starts with
            model.config.start_id. logits[:, -1] are the scores of the next token.
    source  integers (B, S)
    Never choose padding (id 0), the unknown token (1) or the start symbol (2). The end symbol is
    model.config.end_id. Returns a list of B lists of ids (Python ints), without start and end symbols.
    """
    # solution
    end = model.config.end_id
    tokens = np.full((len(source), 1), model.config.start_id)
    for _ in range(max_length):
        logits = model.forward(source, tokens)[0][:, -1].copy()
        logits[:, :3] = -np.inf
        best = logits.argmax(-1)
        tokens = np.concatenate([tokens, best[:, None]], 1)
    return [row[: row.index(end)] if end in row else row for row in tokens[:, 1:].tolist()]
--- Begin with an array (B, 1) of start symbols, and append one column of tokens in each step.
--- Set the logits of the three forbidden ids to -inf. Then use argmax over the last axis.
--- If a sentence has ended, continue with the others. At the end, cut each row at its first end symbol.

=== 14 best-continuations: one step of beam search
import numpy as np


def best_continuations(so_far, log_probs, n):
    """Return the n most probable continuations of all unfinished hypotheses, the best one first.

    so_far     (R,), the log-probability of each hypothesis
    log_probs  (R, V), the log-probability of each next token, -inf for a forbidden token
    Returns a list of tuples (row, token, total) with total = so_far[row] + log_probs[row, token]. Leave out
    totals of -inf, so the list may have fewer than n tuples. If totals are equal, the lower row comes first,
    and in the same row the lower token comes first.
    """
    # solution
    total = so_far[:, None] + log_probs
    flat = total.reshape(-1)
    order = np.argsort(-flat, kind="stable")[:n].tolist()
    result = []
    for i in order:
        if flat[i] > -np.inf:
            row, token = divmod(i, log_probs.shape[1])
            result.append((row, token, float(flat[i])))
    return result
--- Compare all R · V sums with each other, not only those of the same row.
--- total = (so_far[:, None] + log_probs).reshape(-1). np.argsort(-total, kind='stable') returns the indices
    from the largest sum to the smallest.
--- np.divmod(index, V) turns an index into row and token. Leave out the sums that are -inf.

=== 14 length-norm: the length normalization of beam search

def length_norm(length, length_penalty):
    """Return ((5 + length) / 6) to the power length_penalty.

    Beam search divides the log-probability of a sentence by this number, so that long sentences are not at
    a disadvantage. Returns a number, which is 1 for a length of 1.
    """
    # solution
    return ((5 + length) / 6) ** length_penalty
--- The formula is in the docstring. Be careful with the parentheses.
--- Compute the fraction first, and then the power.
--- ((5 + length) / 6) ** ...

=== 14 cached-step: one step of decoding with a KV cache
import numpy as np

from npformer import functional as F
from npformer.nn.attention import KVCache


def decode_step(layer, x, kv_cache=None):
    """Compute self-attention for one new position.

    layer     layer.project(x, x, x) returns ((q, k, v), _), each (B, H, 1, K).
              layer.output.forward(z) returns (y, _).
    x         (B, 1, D), the vector of the new position only
    kv_cache  .k and .v (B, H, S, K), the keys and values of the earlier positions; None at the first position
    F.attention(q, k, v) returns (z, _), and F.merge_heads(z) concatenates the heads.
    Returns (y, KVCache(k, v)). y has the shape (B, 1, D). The KVCache contains the keys and values of all
    positions, the new one last.
    """
    # solution
    (q, k, v), _ = layer.project(x, x, x)
    if kv_cache is not None:
        k = np.concatenate([kv_cache.k, k], 2)
        v = np.concatenate([kv_cache.v, v], 2)
    z, _ = F.attention(q, k, v)
    y, _ = layer.output.forward(F.merge_heads(z))
    return y, KVCache(k, v)
--- Project x to get its query, key and value. The keys and values of the earlier positions are in kv_cache.
--- np.concatenate([kv_cache.k, k], 2) appends the new key to the earlier ones. Do the same with v.
--- Then call F.attention with q and all keys and values, then F.merge_heads, then layer.output.forward.
''',
    {
        "greedy": Task(greedy, Values("", _sentences, hidden=hidden_inputs.sentences)),
        "best-continuations": Task(best_continuations, Values("", _beams)),
        "length-norm": Task(length_norm, Values("", _norms, hidden=hidden_inputs.norms)),
        "cached-step": Task(MultiHeadAttention.decode_step, Values("", _steps)),
    },
)
