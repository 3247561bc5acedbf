import numpy as np

from npformer.nn import Parameter


class SpectralFilter:
    """A learned real filter in Fourier space: the FFT takes complex numbers, the real part does not."""

    def __init__(self):
        self.h = Parameter(np.random.default_rng(103).normal(size=4))

    def forward(self, x):
        f = np.fft.rfft(x, axis=-1)
        return np.fft.irfft(f * self.h.value, n=x.shape[-1], axis=-1), f

    def backward(self, dy, f):
        n = dy.shape[-1]
        g = np.fft.rfft(dy, axis=-1)
        w = np.array([1.0, 2.0, 2.0, 1.0]) / n
        self.h.grad += (w * (np.conj(f) * g).real).reshape(-1, 4).sum(0)
        return np.fft.irfft(g * self.h.value, n=n, axis=-1)
