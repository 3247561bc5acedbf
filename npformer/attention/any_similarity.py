"""Multi-head attention whose heads compare queries and keys by any similarity."""

from typing import Any, NamedTuple

import numpy as np

from npformer.attention.multi_head import MultiHeadAttention
from npformer.attention.similarity import Similarity
from npformer.functional.look_up import LookUpCache, look_up, look_up_backward
from npformer.layers.init import default_rng


class SimilarityAttentionCache(NamedTuple):
    """What stands in a MultiHeadCache as `attention`."""

    similarity: Any  # that of the similarity's pair
    look_up: LookUpCache

    @property
    def weights(self):
        """How much each query looks at each key, (B, H, T, S)."""
        return self.look_up.weights


class SimilarityAttention(MultiHeadAttention):
    """y = Concat(head_1 .. head_H) Wo, with head_h = softmax(similarity(query Wq_h, key Wk_h)) value Wv_h.

    similarity is "dot", "general", "concat" or "perceptron", its weights shared by the heads; width is that
    of the perceptron. Everything else is MultiHeadAttention's, to which "dot" is equal.
    Shapes: as there. Errors: UserError as there, and for a similarity that is none.
    Source: Vaswani et al. 2017, section 3.2; Luong et al. 2015, section 3.1.
    """

    def __init__(
        self,
        d_model,
        n_heads,
        *,
        similarity="dot",
        width=None,
        scale=True,
        rng=None,
        dtype=np.float32,
        **settings,
    ):
        rng = default_rng(rng)
        super().__init__(d_model, n_heads, scale=scale, rng=rng, dtype=dtype, **settings)
        self.similarity = Similarity(
            similarity, self.d_head, self.d_head, width=width, scaled=scale, rng=rng, dtype=dtype
        )

    def attend(self, q, k, v, mask=None, *, query_mask=None, rate=0.0, rng=None):
        """Returns (z, cache)."""
        scores, compared = self.similarity.forward(q, k)  # (B, H, T, S)
        z, looked = look_up(
            scores, v, mask, query_mask=query_mask, masking=self.masking, rate=rate, rng=rng
        )  # (B, H, T, L)
        return z, SimilarityAttentionCache(compared, looked)

    def attend_backward(self, dz, cache):
        """Returns (dq, dk, dv)."""
        dscores, dv = look_up_backward(dz, cache.look_up)
        dq, dk = self.similarity.backward(dscores, cache.similarity)
        return dq, dk, dv
