class RowMax:
    """max over the last axis; a tie shares the gradient."""

    def forward(self, x):
        m = x.max(-1, keepdims=True)
        hit = x == m
        return m[..., 0], hit / hit.sum(-1, keepdims=True)

    def backward(self, dy, share):
        return dy[..., None] * share
