"""Self-attention without parameters: every output is a mean of all inputs, and nothing is learned."""

from npformer.kernels import attention, attention_backward
from npformer.module import Module


class BasicSelfAttention(Module):
    """y_i = Σ_j w_ij x_j, with w_i = softmax over j of x_i · x_j: each is query, key and value.

    Shapes: x (B, T, D), mask bool broadcastable to (B, T, T) -> y (B, T, D).
    Source: "The components of the Transformer", after Bloem, Transformers from scratch.
    """

    def forward(self, x, mask=None):
        """Returns (y, cache)."""
        return attention(x, x, x, mask, scale=1.0)

    def backward(self, dy, cache):
        """Returns dx."""
        # x was query, key and value: three gradients add up
        dq, dk, dv = attention_backward(dy, cache)
        return dq + dk + dv
