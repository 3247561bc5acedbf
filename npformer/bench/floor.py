"""The floor of a training step: the time of its matrix products alone.

Every product y = a b of the forward pass leads to two products in the backward pass, one for each gradient:
da = dy bᵀ and db = aᵀ dy. The rest of a step's time goes into softmax, norms, dropout, the loss, Adam, and
copying arrays. The floor has two versions. In the padded one, padding is multiplied like tokens, as in
PyTorch. In the packed one, linear maps and logits are computed for real tokens only, and attention for padded
sentences.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module, to_backend
from npformer.bench.own_step import wait_for
from npformer.bench.setups import AnySetup, GPTSetup, Setup
from npformer.data.loader import split_batch
from npformer.data.vocabulary import PAD


class Product(NamedTuple):
    """The shapes of a product y = left right: (..., M, K) by (..., K, N)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    transposed: bool = False  # True for a right factor stored as (..., N, K), like keys and tied embeddings

    @property
    def operations(self) -> int:
        """The number of multiplications and additions of the product and of its two gradients."""
        return 3 * 2 * int(np.prod(self.left)) * self.right[-1]


def products(setup: AnySetup, batch: Any, *, packed: bool = False) -> Iterator[Product]:
    """Yield the products of one forward pass over a batch, in order.

    Args:
        setup: The setup of the model.
        batch: The batch, for its shapes and its padding.
        packed: Count only real tokens in linear maps and logits.
    """
    d, n_heads = setup.d_model, setup.n_heads

    def linear(rows: int, n_in: int, n_out: int) -> Product:
        return Product((rows, n_in), (n_in, n_out))

    def heads(queries: int, keys: int) -> Iterator[Product]:
        """Yield the two products of all heads: the scores, and the weighted means of the values."""
        outer, width = (len(batch.target_out), n_heads), d // n_heads
        yield Product((*outer, queries, width), (*outer, width, keys), transposed=True)
        yield Product((*outer, queries, keys), (*outer, keys, width))

    def self_attention(rows: int, length: int) -> Iterator[Product]:
        yield linear(rows, d, 3 * d)  # queries, keys and values
        yield from heads(length, length)
        yield linear(rows, d, d)  # the output projection of the merged heads

    def feed_forward(rows: int) -> Iterator[Product]:
        yield linear(rows, d, setup.d_ff)
        yield linear(rows, setup.d_ff, d)

    # the rows of the linear maps, and the length of the longest sentence, of each side
    sides = [
        (int((ids != PAD).sum()) if packed and isinstance(setup, Setup) else ids.size, ids.shape[1])
        for ids in batch.inputs
    ]
    *encoder, (rows, length) = sides  # a GPT is a decoder without an encoder
    for sources, longest in encoder:
        for _ in range(setup.n_layers):
            yield from self_attention(sources, longest)
            yield from feed_forward(sources)
    for _ in range(setup.n_layers):
        yield from self_attention(rows, length)
        for sources, longest in encoder:
            yield linear(rows, d, d)  # queries of cross-attention
            yield linear(sources, d, 2 * d)  # its keys and values, of the encoder's output
            yield from heads(length, longest)
            yield linear(rows, d, d)
        yield from feed_forward(rows)
    tied = isinstance(setup, GPTSetup) or setup.tied
    yield Product((rows, d), (d, setup.vocab_size), transposed=tied)


def floor_step(setup: AnySetup, *, workers: int, backend: str, packed: bool) -> Callable[[], None]:
    """Return a function that computes all products of a step, each worker those of its share of the batch.

    All arrays of one shape share memory, which stays in the processor's cache if it fits. So the products are
    at least as fast as inside a step, and the floor is not too high.

    Args:
        setup: The model and its batch.
        workers: The number of threads.
        backend: "numpy" or "cupy".
        packed: Count only real tokens in linear maps and logits.
    """
    shares = split_batch(setup.batch(), workers)
    parts = [WorkerProducts(list(products(setup, share, packed=packed)), backend) for share in shares]
    pool = ThreadPoolExecutor(max(1, workers - 1))

    def step() -> None:
        waiting = [pool.submit(part.multiply) for part in parts[1:]]
        parts[0].multiply()
        for future in waiting:
            future.result()
        wait_for(next(iter(parts[0].arrays.values())))

    return step


class WorkerProducts:
    """The products of one worker, with the arrays that they need."""

    def __init__(self, products: Sequence[Product], backend: str) -> None:
        self.products = products
        self.arrays: dict[tuple[str, tuple[int, ...]], Any] = {}
        rng = np.random.default_rng(0)
        for product in products:
            for key in self.keys(product):
                if key not in self.arrays:
                    numbers = rng.standard_normal(key[1], dtype=np.float32)
                    self.arrays[key] = to_backend(numbers, backend)

    @staticmethod
    def keys(product: Product) -> list[tuple[str, tuple[int, ...]]]:
        """Return the names and shapes of the arrays of a product: factors a, b, dy; results y, da, db."""
        a, b = product.left, product.right
        y = (*a[:-1], b[-1])
        b = (*b[:-2], b[-1], b[-2]) if product.transposed else b
        return [("a", a), ("b", b), ("dy", y), ("y", y), ("da", a), ("db", b)]

    def multiply(self) -> None:
        """Compute every product and the two products of its gradients."""
        for product in self.products:
            a, b, dy, y, da, db = (self.arrays[key] for key in self.keys(product))
            xp = array_module(a)
            b_transposed = b.swapaxes(-1, -2)
            if product.transposed:
                b, b_transposed = b_transposed, b
            xp.matmul(a, b, out=y)
            xp.matmul(dy, b_transposed, out=da)
            left, right = (dy, a) if product.transposed else (a, dy)
            xp.matmul(left.swapaxes(-1, -2), right, out=db)
