"""Latent attention over the words of a sentence: Liu et al. 2016, section 3."""

from typing import NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.functional.latent import (
    MEASURES,
    ORIENTATIONS,
    LatentLookUpCache,
    latent_look_up,
    latent_look_up_backward,
)
from npformer.functional.linear import LinearCache, linear, linear_backward
from npformer.functional.masking import check_words
from npformer.layers.init import default_rng, xavier_uniform
from npformer.module import Module, Parameter
from npformer.settings import require_choice


class LatentAttentionCache(NamedTuple):
    """The cache of LatentAttention."""

    telling: LinearCache  # of e · u
    pointing: LinearCache  # of e V
    look_up: LatentLookUpCache
    given: bool  # whether the caller gave values

    @property
    def latent(self):
        """l: how telling each word is, (B, S)."""
        return self.look_up.latent

    @property
    def active(self):
        """D: which places each word points at, (B, S, S)."""
        return self.look_up.active

    @property
    def weights(self):
        """w: how much each word is read, (B, S)."""
        return self.look_up.weights


class LatentAttention(Module):
    """o = Σ_j w_j v_j: a whole sentence as one vector, its words weighted in two stages.

        l = softmax over j of u · e_j        latent weights: which words are telling
        row i of D = softmax(e_i V)          where in the sentence word i points: V has a column a place
        w = D l, or Dᵀ l                     active weights: which words are read

    orientation "rows" is w = D l, that of the authors' program; "columns" is w = Dᵀ l, that of the paper,
    which writes A l with A = Dᵀ. Either is divided by its length: with measure "sum" it sums to 1, as Dᵀ l
    does by itself; with "euclidean" its squares do, as in the program.
    u is latent_weight (D, 1) and V active_weight (D, J), J = max_length. v is e, unless values are given: the
    paper allows each stage an embedding of its own.
    Shapes: e (B, S, D), values (B, S, L), mask bool (B, S), False at the padding, whose weight is 0 in l, D
    and w -> o (B, L).
    Errors: UserError for settings that are none, more than J words, or a mask of another shape or dtype.
    Source: Liu et al. 2016, section 3.
    """

    def __init__(self, d_model, max_length, *, orientation="rows", measure="sum", rng=None, dtype=np.float32):
        require_choice("orientation", orientation, ORIENTATIONS)
        require_choice("measure", measure, MEASURES)
        rng = default_rng(rng)
        self.orientation, self.measure, self.max_length = orientation, measure, max_length
        self.latent_weight = Parameter(xavier_uniform(rng, (d_model, 1), dtype))
        self.active_weight = Parameter(xavier_uniform(rng, (d_model, max_length), dtype))

    def forward(self, e, values=None, *, mask=None):
        """Returns (o, cache)."""
        check_words(mask, e)
        length = e.shape[1]
        if length > self.max_length:
            raise UserError(
                f"a sentence has {length} words and this attention points at {self.max_length} places: "
                "make it with a larger max_length"
            )
        scores, telling = linear(e, self.latent_weight.value)  # (B, S, 1)
        places, pointing = linear(e, self.active_weight.value[:, :length])  # (B, S, S)
        given = values is not None
        o, looked = latent_look_up(
            scores[..., 0],
            places,
            values if given else e,
            mask,
            orientation=self.orientation,
            measure=self.measure,
        )
        return o, LatentAttentionCache(telling, pointing, looked, given)

    def backward(self, do, cache):
        """Returns de, or (de, dvalues) where values were given."""
        dscores, dplaces, dvalues = latent_look_up_backward(do, cache.look_up)
        # scores = e · u
        de, dlatent_weight, _ = linear_backward(dscores[..., None], cache.telling)
        self.latent_weight.grad += dlatent_weight
        # places = e V, in the columns of as many places as there are words
        dpointing, dactive_weight, _ = linear_backward(dplaces, cache.pointing)
        self.active_weight.grad[:, : dplaces.shape[-1]] += dactive_weight
        de = de + dpointing
        # without values, e is also what is read
        return (de, dvalues) if cache.given else de + dvalues
