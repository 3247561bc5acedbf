"""Latent attention over the tokens of a sentence: Liu et al. 2016, section 3."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.latent import (
    MEASURES,
    ORIENTATIONS,
    LatentAttendCache,
    latent_attend,
    latent_attend_backward,
)
from npformer.functional.linear import LinearCache, linear, linear_backward
from npformer.functional.masks import check_token_mask
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.init import default_rng, xavier_uniform
from npformer.nn.module import Module, Parameter
from npformer.validation import require_choice, require_counts


@cache_class
class LatentAttentionCache(NamedTuple):
    """The cache of LatentAttention."""

    latent_scores: LinearCache  # the cache of e · u
    active_scores: LinearCache  # the cache of e V
    attend: LatentAttendCache
    has_values: bool  # True if the caller gave values

    @property
    def latent(self) -> Array:
        """The latent weight l of each token, (B, S)."""
        return self.attend.latent

    @property
    def active(self) -> Array:
        """The matrix D of the positions to which each token points, (B, S, S)."""
        return self.attend.active

    @property
    def weights(self) -> Array:
        """The active weight w of each token, (B, S)."""
        return self.attend.weights


class LatentAttention(Module):
    """Latent attention: one vector o = Σ_j w_j v_j for each sentence. Two softmaxes give the weights w.

        l = softmax over j of u · e_j        the latent weights: the importance of each token
        row i of D = softmax(e_i V)          the positions to which token i points, one column of V for each
        w = D l, or Dᵀ l                     the active weights: the share of each token in o

    The values v are the embeddings e, unless the argument `values` gives other ones, as the paper allows.
    Shapes: e (B, S, D), values (B, S, L), mask bool (B, S) -> o (B, L). The mask is False at padding, whose
    weight is 0 in l, D and w.

    Args:
        d_model: The width of e.
        max_length: The largest length J of a sentence. The parameters are u, which is latent_weight (D, 1),
            and V, which is active_weight (D, J).
        orientation: "rows" is w = D l, as in the authors' program. "columns" is w = Dᵀ l, as in the paper,
            which writes A l with A = Dᵀ.
        measure: The norm by which w is divided. With "sum", the weights sum to 1. With "euclidean", their
            squares sum to 1, as in the authors' program.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If a setting is unknown, if a sentence has more than J tokens, or if the mask has another
            shape or dtype.

    Source: Liu et al. 2016, section 3.
    """

    def __init__(
        self,
        d_model: int,
        max_length: int,
        *,
        orientation: str = "rows",
        measure: str = "sum",
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_choice("orientation", orientation, ORIENTATIONS)
        require_choice("measure", measure, MEASURES)
        require_counts(d_model=d_model, max_length=max_length)
        rng = default_rng(rng)
        self.orientation, self.measure, self.max_length = orientation, measure, max_length
        self.latent_weight = Parameter(xavier_uniform(rng, (d_model, 1), dtype))
        self.active_weight = Parameter(xavier_uniform(rng, (d_model, max_length), dtype))

    def forward(
        self, e: Array, values: Array | None = None, *, mask: Array | None = None
    ) -> tuple[Array, LatentAttentionCache]:
        """Compute the weighted mean o of the values.

        Args:
            e: The embeddings, of shape (B, S, D).
            values: The values, of shape (B, S, L). The default is e.
            mask: Bool, of shape (B, S). True at tokens and False at padding. None if there is no padding.

        Returns:
            o, of shape (B, L), and the cache.
        """
        check_floats(e, ("B", "S", self.latent_weight.shape[0]), "LatentAttention", "e")
        if values is not None:
            check_floats(values, (*e.shape[:2], "L"), "LatentAttention", "values")
        check_token_mask(mask, e)
        length = e.shape[1]
        if length > self.max_length:
            raise UserError(
                f"a sentence has {length} tokens and this attention has {self.max_length} positions: "
                "create the layer with a larger max_length"
            )
        latent_scores, latent_cache = linear(e, self.latent_weight.value)  # (B, S, 1)
        active_scores, active_cache = linear(e, self.active_weight.value[:, :length])  # (B, S, S)
        has_values = values is not None
        o, attend_cache = latent_attend(
            latent_scores[..., 0],
            active_scores,
            e if values is None else values,
            mask,
            orientation=self.orientation,
            measure=self.measure,
        )
        return o, LatentAttentionCache(latent_cache, active_cache, attend_cache, has_values)

    def backward(self, do: Array, cache: LatentAttentionCache) -> Any:
        """Return de, of shape (B, S, D), or (de, dvalues) with dvalues (B, S, L) if values were given."""
        v = cache.attend.v  # (B, S, L)
        check_gradient(do, (*v.shape[:-2], v.shape[-1]), "LatentAttention")
        dlatent_scores, dactive_scores, dvalues = latent_attend_backward(do, cache.attend)
        # latent_scores = e · u
        de, dlatent_weight, _ = linear_backward(dlatent_scores[..., None], cache.latent_scores)
        self.latent_weight.accumulate(dlatent_weight)
        # active_scores = e V, with the first columns of V, one for each token of the sentence
        de_active, dactive_weight, _ = linear_backward(dactive_scores, cache.active_scores)
        self.active_weight.accumulate(dactive_weight, at=(slice(None), slice(dactive_scores.shape[-1])))
        de = de + de_active
        # if no values were given, e was also used as the values
        return (de, dvalues) if cache.has_values else de + dvalues
