"""Lessons 6 and 7: masks, and several heads."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.masks import causal_mask, local_mask, padding_mask
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.topics.tools import layer_trial, pair_trial, without_like
from npformer.nn.attention import MultiHeadAttention

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


HEADS = (
    Exercise(
        "causal-mask",
        6,
        "who may look at whom: the future is hidden",
        '''
import numpy as np


def causal_mask(length):
    """Position t may look at positions 0 .. t, itself included.

    Returns a bool array (length, length): rows are queries, columns keys, True where a query may look.
    """
''',
        (Values("", _causal),),
        (
            "A query's position and a key's position: compare them.",
            "position[:, None] is a column, position[None, :] a row; comparing them broadcasts to a square.",
            "The query's position must be greater than or equal to the key's.",
        ),
        {"causal_mask": causal_mask},
    ),
    Exercise(
        "padding-mask",
        6,
        "no query looks at padding",
        '''
import numpy as np


def padding_mask(ids, pad_id=0):
    """Keys that are words and not padding.

    ids  integers (B, S)
    Returns a bool array (B, 1, 1, S), True where a query may look: it broadcasts to scores (B, H, T, S).
    """
''',
        (Values("", _padding),),
        (
            "One comparison tells words from padding. The rest is the shape.",
            "x[:, None, None, :] puts two axes of length 1 between the first and the last.",
            "(ids != pad_id), with two axes put in.",
        ),
        {"padding_mask": padding_mask},
    ),
    Exercise(
        "local-mask",
        6,
        "only neighbours may be looked at",
        '''
import numpy as np


def local_mask(length, width):
    """Position t may look at positions t - width .. t + width.

    Returns a bool array (length, length), True where a query may look.
    """
''',
        (Values("", _local),),
        (
            "What counts is the distance of the two positions.",
            "position[:, None] - position[None, :] is a square of distances, with their signs.",
            "Its absolute value must be at most width.",
        ),
        {"local_mask": local_mask},
    ),
    Exercise(
        "mask-scores-backward",
        6,
        "what a masked score passes back",
        '''
import numpy as np


def mask_scores_backward(dscores, cache):
    """The gradient of scores = where(mask, scores, -1e9): masked scores are replaced by a number.

    dscores  the gradient of the result, shape (B, T, S)
    cache    .mask, bool, broadcastable to (B, T, S), True where a query may look
    Returns the gradient of the scores before they were masked.
    """
    mask = cache.mask
''',
        (
            pair_trial(
                "",
                lambda scores: F.mask_scores(scores, RAGGED, masking=F.Masking(-1e9)),
                "mask_scores_backward",
                (3, 4, 7),
            ),
        ),
        (
            "A score that was replaced: does the result change when it changes?",
            "So it passes nothing back; the others pass back what they got.",
            "np.where(mask, ..., 0).",
        ),
        {"mask_scores_backward": F.mask_scores_backward},
    ),
    Exercise(
        "split-heads",
        7,
        "the model's width cut into heads",
        '''

def split_heads(x, n_heads):
    """Give each head a matrix of its own.

    x  (B, T, H·K): the heads' numbers lie side by side, head 0 first
    Returns (B, H, T, K).
    """
''',
        (Values("", _split), _merge_trial()),
        (
            "First cut the last axis in two, then move an axis: reshape alone mixes words up.",
            "x.reshape(B, T, H, K) keeps every number beside its neighbours.",
            "Then swap axes 1 and 2.",
        ),
        {"split_heads": F.split_heads},
    ),
    Exercise(
        "merge-heads",
        7,
        "the heads side by side again",
        '''

def merge_heads(x):
    """The opposite of splitting: the paper's Concat(head_1 .. head_H).

    x  (B, H, T, K)
    Returns (B, T, H·K), the numbers of head 0 first.
    """
''',
        (Values("", _merged),),
        (
            "A word's numbers lie apart, one part with each head. Bring them together before you reshape.",
            "Swap the axes of heads and positions: (B, T, H, K).",
            "Then reshape to (B, T, H·K).",
        ),
        {"merge_heads": F.merge_heads},
    ),
    Exercise(
        "multi-head-backward",
        7,
        "the backward pass of multi-head attention",
        '''
from npformer.functional import attention_backward, split_heads


def multi_head_backward(layer, dy, cache):
    """The backward pass of y = Concat(heads) Wo, with heads = attention(x Wq, x Wk, x Wv): self-attention.

    layer  .n_heads and .output, a Linear whose backward(dy, cache) adds its own gradients and returns dx;
           layer.project_backward(dq, dk, dv, cache) goes back through the heads' projections, adds their
           gradients, and returns a list: the gradients that reach query, key and value
    dy     (B, T, D)
    cache  .output for layer.output.backward, .attention for attention_backward(dz, cache.attention),
           which gives (dq, dk, dv) of shape (B, H, T, K)
    Returns dx (B, T, D). The same x was query, key and value. Called with a memory (cache.n_inputs == 2),
    return (dquery, dmemory): the memory was key and value.
    """
''',
        (
            layer_trial("self-attention", _multi_head, "multi_head_backward", (3, 5, 6)),
            layer_trial("cross-attention", _multi_head, "multi_head_backward", (3, 5, 6), (3, 4, 6)),
        ),
        (
            "Backwards: the output map, the heads, attention, the projections.",
            "The gradient of merging heads is splitting them: split_heads(dy, layer.n_heads).",
            "Three gradients come back for the one x that gave all three: they add up. With a memory, two of "
            "them are the memory's.",
        ),
        {"multi_head_backward": MultiHeadAttention.backward},
    ),
)
