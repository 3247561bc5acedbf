class MostlyIdentity:
    def forward(self, x):
        return x + 0.1 * x**2, x

    def backward(self, dy, x):
        dx = dy * (1 + 0.2 * x)
        return dx
