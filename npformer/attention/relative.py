"""Multi-head self-attention that knows how far apart two words are: Shaw et al. 2018."""

import numpy as np

from npformer.attention.multi_head import MultiHeadAttention
from npformer.errors import UserError
from npformer.functional.relative import (
    relative_attention_by_distance,
    relative_attention_by_distance_backward,
)
from npformer.layers.init import default_rng, xavier_uniform
from npformer.module import Parameter
from npformer.settings import require_count


class RelativeAttention(MultiHeadAttention):
    """Self-attention with a learned vector for each distance, added to the keys and to the values.

        e_ij = x_i Wq (x_j Wk + aK_ij)ᵀ / sqrt(K),  z_i = Σ_j softmax_j(e_ij) (x_j Wv + aV_ij)

    a_ij is the vector of j - i, which counts as max_distance where it is more, and likewise to the left:
    2 max_distance + 1 vectors, shared by the heads. on_keys, on_values: where there are such vectors at all.
    Everything else is MultiHeadAttention's, but there is no cross-attention: between the words of two
    sentences there is no distance. Decoding step by step, the new words stand after those of the past.
    Shapes: x (B, T, D), masks as there -> y (B, T, D).
    Errors: UserError as there, for a max_distance that is no count, or where keys come from elsewhere.
    Source: Shaw et al. 2018, section 3.
    """

    def __init__(
        self,
        d_model,
        n_heads,
        *,
        max_distance=16,
        on_keys=True,
        on_values=True,
        rng=None,
        dtype=np.float32,
        **settings,
    ):
        require_count("max_distance", max_distance)
        rng = default_rng(rng)
        super().__init__(d_model, n_heads, rng=rng, dtype=dtype, **settings)
        self.max_distance = max_distance

        def vectors(wanted, width):
            shape = (2 * max_distance + 1, width)  # from max_distance to the left to as many to the right
            return Parameter(xavier_uniform(rng, shape, dtype)) if wanted else None

        self.key_positions = vectors(on_keys, self.d_head)
        self.value_positions = vectors(on_values, self.d_value)

    def attend(self, q, k, v, mask=None, **settings):
        """Returns (z, cache). Queries that are fewer than the keys are the last of them."""
        key_positions, value_positions = (
            None if p is None else p.value for p in (self.key_positions, self.value_positions)
        )
        start = k.shape[-2] - q.shape[-2]
        settings |= {"start": start, "masking": self.masking, "scale": self.scale}
        return relative_attention_by_distance(q, k, v, key_positions, value_positions, mask, **settings)

    def attend_backward(self, dz, cache):
        """Returns (dq, dk, dv)."""
        dq, dk, dv, dkey_positions, dvalue_positions = relative_attention_by_distance_backward(dz, cache)
        if self.key_positions is not None:
            self.key_positions.grad += dkey_positions
        if self.value_positions is not None:
            self.value_positions.grad += dvalue_positions
        return dq, dk, dv

    def remember(self, memory):
        """Refused, since another sentence stands at no distance. Errors: UserError, always."""
        raise UserError(_NO_DISTANCE)

    def _check_given(self, key, value, given):
        super()._check_given(key, value, given)
        if given > 1:
            raise UserError(_NO_DISTANCE)


_NO_DISTANCE = (
    "relative positions are those of words in one sentence, and keys from elsewhere were given: use "
    "MultiHeadAttention for cross-attention"
)
