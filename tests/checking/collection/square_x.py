class Cube:
    def forward(self, x):
        return x**3, x

    def backward(self, dy, x):
        return 3 * x**2 * dy
