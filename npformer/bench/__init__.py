"""The benchmark: the speed of a training step beside PyTorch's and beside its own matrix products.

Each measurement runs in its own process, because two BLAS libraries in one process slow each other down. The
processes take turns (measure.py), so that all of them are affected if the machine becomes slower meanwhile.
"""
