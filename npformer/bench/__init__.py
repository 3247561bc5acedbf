"""The bench: how fast a training step is, beside PyTorch's and beside its own matrix products.

Each measurement runs in a process of its own (child.py), and the processes take turns (turns.py): two BLAS
libraries in one process slow each other down, and a machine that gets slower meanwhile slows both.
"""
