"""Chapters 6 and 7: masks, and multi-head attention."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.masks import causal_mask, local_mask, padding_mask
from npformer.learn.exercises.exercise import Functions, Gradients, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import layer_trial, output_and_cache, pair_trial, without_like
from npformer.nn.attention import MultiHeadAttention, MultiHeadCache

IDS = np.array([[5, 8, 2, 3, 0, 0], [4, 3, 0, 0, 0, 0], [7, 7, 9, 4, 6, 3]])
RAGGED = np.arange(7) < np.array([5, 7, 3])[:, None, None]  # (3, 1, 7)


def _causal(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    mask = without_like(own.causal_mask)
    return {"causal_mask(6)": mask(6), "causal_mask(1)": mask(1)}


def _padding(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {"mask": own.padding_mask(IDS), "mask with pad_id 3": own.padding_mask(IDS, 3)}


def _local(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    mask = without_like(own.local_mask)
    return {"local_mask(7, 2)": mask(7, 2), "local_mask(4, 0)": mask(4, 0)}


def _split(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {"split_heads(x, 2)": own.split_heads(rng.standard_normal((3, 5, 8)), 2)}


def _merge_trial() -> Gradients:
    """Return a gradient check of merge_heads_backward with the package's merge_heads."""

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        pair = (lambda x: (F.merge_heads(x), x.shape[1]), own.split_heads)
        return pair, rng.standard_normal((3, 2, 5, 4))

    return Gradients("as the backward pass of merging", make)


def _merged(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {"merge_heads(x)": own.merge_heads(rng.standard_normal((3, 2, 5, 4)))}


def _multi_head(rng: np.random.Generator) -> Any:
    return MultiHeadAttention(6, 2, rng=rng, dtype=np.float64)


def _forward_trial(label: str, query: Any, memory: Any, mask: Any) -> Values:
    """Return a trial of the output of multi_head, and of the gradients that its cache gives."""

    def run(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
        layer = _multi_head(rng)
        inputs = [None if shape is None else rng.standard_normal(shape) for shape in (query, memory)]
        y, cache = output_and_cache("multi_head", own.multi_head(layer, *inputs, mask), MultiHeadCache)
        result = {"y": y, "n_inputs of the cache": cache.n_inputs}
        gradients: list[Any] = [None, None]  # if y or n_inputs is wrong, which is reported first
        if np.shape(y) == query and cache.n_inputs == 2 - (memory is None):
            dx = layer.backward(rng.standard_normal(query), cache)
            gradients = [dx[0] if isinstance(dx, tuple) else dx, np.array(layer.query.weight.grad)]
        return result | dict(zip(("dquery with your cache", "the gradient of Wq"), gradients, strict=True))

    return Values(label, run)


def multi_head(layer: Any, query: Any, memory: Any = None, mask: Any = None) -> tuple[Any, Any]:
    """Do what MultiHeadAttention.forward does if keys and values have one input: the solution."""
    n_inputs, memory = (1, query) if memory is None else (2, memory)
    (q, k, v), projections = layer.project(query, memory, memory)  # (B, H, T, K), (B, H, S, K), (B, H, S, K)
    z, attention = F.attention(q, k, v, mask)  # (B, H, T, K)
    y, output = layer.output.forward(F.merge_heads(z))  # (B, T, D)
    return y, MultiHeadCache(projections, attention, output, n_inputs)


HEADS = exercises(
    r'''
=== 6 causal-mask: the mask that hides later positions
import numpy as np


def causal_mask(length):
    """Return the mask with which position t may attend to the positions 0 .. t, itself included.

    Returns a bool array (length, length). Rows are queries and columns are keys. An entry is True if the
    query may attend to the key.
    """
    # solution
    position = np.arange(length)
    return position[None, :] <= position[:, None]
--- Compare the position of the query with the position of the key.
--- With position = np.arange(length), position[:, None] is a column of queries and position[None, :] is a
    row of keys. A comparison of the two broadcasts to a square.
--- An entry is True if the query's position is greater than or equal to the key's position.

=== 6 padding-mask: the mask that hides padding
import numpy as np


def padding_mask(ids, pad_id=0):
    """Return the mask that is True at tokens and False at padding.

    ids  integers (B, S)
    Returns a bool array (B, 1, 1, S), which broadcasts to scores (B, H, T, S). An entry is True if the
    queries may attend to the key.
    """
    # solution
    return (ids != pad_id)[:, None, None, :]
--- One comparison distinguishes tokens from padding. Then only the shape has to change.
--- x[:, None, None, :] inserts two axes of length 1 between the first and the last axis.
--- Compute ids != pad_id, and insert two axes.

=== 6 local-mask: the mask of a window around each position
import numpy as np


def local_mask(length, width):
    """Return the mask with which position t may attend to the positions t - width .. t + width.

    Returns a bool array (length, length). An entry is True if the query (row) may attend to the key (column).
    """
    # solution
    position = np.arange(length)
    distance = position[:, None] - position[None, :]
    return np.abs(distance) <= width
--- The mask depends on the distance between the two positions.
--- position[:, None] - position[None, :] is a square of these distances. Some of them are negative.
--- An entry is True if the absolute value of the distance is at most width.

=== 6 mask-scores-backward: the backward pass of masking scores
import numpy as np


def mask_scores_backward(dscores, cache):
    """Return the gradient of masked = where(mask, scores, -1e9) with respect to the scores.

    dscores  the gradient of the masked scores, of shape (B, T, S)
    cache    .mask, bool, broadcastable to (B, T, S), True where a query may attend to a key
    Returns the gradient of the scores before the mask was applied.
    """
    mask = cache.mask
    # solution
    return np.where(mask, dscores, 0)
--- If a score was replaced by -1e9, does the result depend on it?
--- The gradient of a replaced score is 0. The gradient of every other score stays the same.
--- np.where(mask, ..., 0).

=== 7 split-heads: splitting the model's width into heads

def split_heads(x, n_heads):
    """Split the last axis into heads, so that each head has its own matrix.

    x  (B, T, H·K): the first K numbers of a token belong to head 0, the next K to head 1, and so on
    Returns an array (B, H, T, K).
    """
    # solution
    B, T, D = x.shape
    return x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)
--- First split the last axis into two axes, then move an axis. If you only reshape, the numbers of different
    tokens are mixed.
--- x.reshape(B, T, H, K) splits the last axis.
--- Then swap axes 1 and 2.

=== 7 merge-heads: concatenating the heads

def merge_heads(x):
    """Return the paper's Concat(head_1 .. head_H). This is the inverse of splitting into heads.

    x  (B, H, T, K)
    Returns an array (B, T, H·K). The first K numbers of a token are those of head 0.
    """
    # solution
    B, H, T, K = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * K)
--- Before you reshape, the axes of heads and numbers, H and K, must be next to each other.
--- Swap the axes of heads and positions. This gives the shape (B, T, H, K).
--- Then reshape to (B, T, H·K).

=== 7 multi-head: multi-head attention, forward
from npformer import functional as F
from npformer.nn.attention import MultiHeadCache


def multi_head(layer, query, memory=None, mask=None):
    """Compute y = Concat(heads) Wo with heads = attention(query Wq, memory Wk, memory Wv).

    layer   layer.project(query, key, value) returns ((q, k, v), projections): the queries, keys and values of
            all heads, (B, H, T, K) and (B, H, S, K), and a cache.
            layer.output is the linear layer Wo. layer.output.forward(x) returns (y, its cache).
    query   (B, T, D)
    memory  (B, S, D), the input of keys and values; None in self-attention, where it is the query
    mask    bool, broadcastable to (B, H, T, S), True where a query may attend to a key; or None
    F.attention(q, k, v, mask) returns (z, its cache), and F.merge_heads(z) concatenates the heads.
    Returns (y, cache). y has the shape (B, T, D). The cache is MultiHeadCache(projections, the cache of
    attention, the cache of layer.output, n_inputs). n_inputs is 1 in self-attention, and 2 with a memory.
    """
    # solution
    n_inputs, memory = (1, query) if memory is None else (2, memory)
    (q, k, v), projections = layer.project(query, memory, memory)
    z, attended = F.attention(q, k, v, mask)
    y, output = layer.output.forward(F.merge_heads(z))
    return y, MultiHeadCache(projections, attended, output, n_inputs)
--- There are three steps: the projections, the attention of all heads, and the output layer. Each returns a
    result and a cache. Keep all caches.
--- If memory is None, it is the query, and n_inputs is 1. layer.project(query, memory, memory) gives q, k
    and v.
--- F.attention(q, k, v, mask) gives z (B, H, T, K). Concatenate its heads, and pass them to
    layer.output.forward.

=== 7 multi-head-backward: the backward pass of multi-head attention
from npformer import functional as F


def multi_head_backward(layer, dy, cache):
    """Compute the backward pass of multi-head attention.

    In self-attention, y = Concat(heads) Wo with heads = attention(x Wq, x Wk, x Wv).
    layer  .n_heads, and .output, a Linear layer. layer.output.backward(dy, cache.output) adds the gradients
           of its parameters and returns dx.
           layer.project_backward(dq, dk, dv, cache) is the backward pass of the projections x Wq, x Wk, x Wv.
           It adds the gradients of their parameters and returns a list of three gradients: those of the
           inputs query, key and value.
    dy     the gradient of y, of shape (B, T, D)
    cache  .output and .attention; F.attention_backward(dz, cache.attention) returns (dq, dk, dv), each of
           shape (B, H, T, K). F.split_heads(x, n_heads) splits (B, T, H·K) into (B, H, T, K).
    Returns dx (B, T, D) in self-attention, where x is query, key and value. In cross-attention
    (cache.n_inputs == 2), the memory is key and value. Then return (dquery, dmemory).
    """
    # solution
    dz = layer.output.backward(dy, cache.output)
    dheads = F.split_heads(dz, layer.n_heads)
    dq, dk, dv = F.attention_backward(dheads, cache.attention)
    dquery, dkey, dvalue = layer.project_backward(dq, dk, dv, cache)
    if cache.n_inputs == 2:
        return dquery, dkey + dvalue
    return dquery + dkey + dvalue
--- The order of the backward pass is: output layer, concatenation of the heads, attention, projections.
--- The backward pass of concatenating the heads is splitting: F.split_heads(dz, layer.n_heads), where dz is
    the gradient that layer.output.backward returns.
--- project_backward returns three gradients. In self-attention x was used three times, so return their sum.
    In cross-attention the gradients of key and value are added to give dmemory.
''',
    {
        "causal-mask": Task(causal_mask, Values("", _causal, hidden=hidden_inputs.causal)),
        "padding-mask": Task(padding_mask, Values("", _padding, hidden=hidden_inputs.padding)),
        "local-mask": Task(local_mask, Values("", _local, hidden=hidden_inputs.local)),
        "mask-scores-backward": Task(
            F.fill_scores_backward,
            pair_trial(
                "",
                lambda scores: F.fill_scores(scores, RAGGED, F.Masking(-1e9)),
                "mask_scores_backward",
                (3, 4, 7),
            ),
        ),
        "split-heads": Task(F.split_heads, Values("", _split), _merge_trial()),
        "merge-heads": Task(F.merge_heads, Values("", _merged)),
        "multi-head": Task(
            multi_head,
            _forward_trial("self-attention", (3, 5, 6), None, None),
            _forward_trial("causal mask", (3, 5, 6), None, causal_mask(5, np.zeros(1))),
            _forward_trial("cross-attention", (3, 5, 6), (3, 7, 6), RAGGED[:, None]),
        ),
        "multi-head-backward": Task(
            MultiHeadAttention.backward,
            layer_trial("self-attention", _multi_head, "multi_head_backward", (3, 5, 6)),
            layer_trial("cross-attention", _multi_head, "multi_head_backward", (3, 5, 6), (3, 4, 6)),
        ),
    },
)
