class Negate:
    """Linear: needs no cache."""

    def forward(self, x):
        return 3.0 - 2.0 * x, None

    def backward(self, dy, cache):
        return -2.0 * dy
