"""The four similarities of functional.similarity behind one interface, with their weights."""

import math
from typing import Any

import numpy as np

from npformer.errors import UserError
from npformer.functional.similarity import (
    concat_similarity,
    concat_similarity_backward,
    dot_similarity,
    dot_similarity_backward,
    general_similarity,
    general_similarity_backward,
    perceptron_similarity,
    perceptron_similarity_backward,
)
from npformer.layers.init import default_rng, xavier_uniform
from npformer.module import Module, Parameter

SIMILARITIES: dict[str, tuple[Any, Any]] = {
    "dot": (dot_similarity, dot_similarity_backward),
    "general": (general_similarity, general_similarity_backward),
    "concat": (concat_similarity, concat_similarity_backward),
    "perceptron": (perceptron_similarity, perceptron_similarity_backward),
}


class Similarity(Module):
    """score_ts = how alike query t and key s are, in one of four ways.

        "dot"         q · k, which has no weights and takes one width only
        "general"     q · weight k
        "concat"      weight · [q; k]
        "perceptron"  v · tanh(q query_weight + k key_weight); `width` is that of the tanh, d_key unless given

    scaled divides by the square root of the keys' width, as the Transformer does.
    Shapes: q (..., T, d_query), k (..., S, d_key) -> scores (..., T, S). The cache is that of the pair.
    Errors: UserError for a kind that is none of these, or widths that do not fit it.
    Source: Luong et al. 2015, section 3.1; Bahdanau et al. 2015, section A.1.2 (perceptron).
    """

    def __init__(self, kind, d_query, d_key, *, width=None, scaled=False, rng=None, dtype=np.float32):
        _check(kind, d_query, d_key, width)
        rng = default_rng(rng)
        self.kind, self.d_query, self.d_key = kind, d_query, d_key
        self.scale = 1 / math.sqrt(d_key) if scaled else None
        shapes = _shapes(kind, d_query, d_key, d_key if width is None else width)
        self.names = tuple(shapes)  # of its weights, in the order in which the pair takes them
        for name, shape in shapes.items():
            setattr(self, name, Parameter(xavier_uniform(rng, shape, dtype)))

    @property
    def weights(self):
        """Its parameters, in the order in which the pair takes them."""
        return [getattr(self, name) for name in self.names]

    def forward(self, q, k):
        """Returns (scores, cache)."""
        pair, _ = SIMILARITIES[self.kind]
        scores, cache = pair(q, k, *[weight.value for weight in self.weights])
        return scores if self.scale is None else scores * self.scale, cache

    def backward(self, dscores, cache):
        """Returns (dq, dk)."""
        _, pair_backward = SIMILARITIES[self.kind]
        # scores = pair(q, k, weights) scale
        dscores = dscores if self.scale is None else dscores * self.scale
        dq, dk, *dweights = pair_backward(dscores, cache)
        for weight, dweight in zip(self.weights, dweights, strict=True):
            weight.grad += dweight
        return dq, dk


def _shapes(kind, d_query, d_key, width) -> dict[str, tuple[int, ...]]:
    """The shapes of a similarity's weights, by their names."""
    if kind == "general":
        return {"weight": (d_query, d_key)}
    if kind == "concat":
        return {"weight": (d_query + d_key,)}
    if kind == "perceptron":
        return {"query_weight": (d_query, width), "key_weight": (d_key, width), "v": (width,)}
    return {}


def _check(kind, d_query, d_key, width):
    if kind not in SIMILARITIES:
        raise UserError(f"the similarity is {kind!r}: choose one of {', '.join(SIMILARITIES)}")
    if kind == "dot" and d_query != d_key:
        raise UserError(
            f"a dot product takes queries and keys of one width, and theirs are {d_query} and {d_key}: "
            'use "general"'
        )
    if kind != "perceptron" and width is not None:
        raise UserError(f'the similarity "{kind}" has no width to choose: only "perceptron" has')
