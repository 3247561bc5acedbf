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
from npformer.data.loader import Batch, split_batch
from npformer.data.vocabulary import PAD


class Product(NamedTuple):
    """The shapes of a product y = left right: (..., M, K) by (..., K, N)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    transposed: bool = (
        False  # True if the right factor is stored as (..., N, K), like keys and tied embeddings
    )

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
    if isinstance(setup, GPTSetup):
        return gpt_products(setup, *batch.ids.shape)
    return translator_products(setup, batch, packed)


def gpt_products(setup: GPTSetup, size: int, length: int) -> Iterator[Product]:
    """Yield the products of a GPT, which has no padding. Attention counts all T × T scores.

    Args:
        setup: The setup of the model.
        size: The number of sentences, B.
        length: Their length, T.
    """
    rows = size * length
    for _ in range(setup.n_layers):
        yield linear(setup, rows, 1, 3)  # queries, keys and values
        yield from heads(setup, size, length, length)
        yield linear(setup, rows, 1, 1)
        yield from feed_forward(setup, rows)
    yield Product((rows, setup.d_model), (setup.d_model, setup.vocab_size), transposed=True)


def translator_products(setup: Setup, batch: Batch, packed: bool) -> Iterator[Product]:
    """Yield the products of a translator.

    Args:
        setup: The setup of the model.
        batch: The batch, for its shapes and its padding.
        packed: Count only real tokens in linear maps and logits.
    """
    size, longest = batch.source.shape
    sources, targets = batch.source.size, batch.target_in.size
    if packed:
        sources, targets = (batch.source != PAD).sum(), (batch.target_in != PAD).sum()
    for _ in range(setup.n_layers):
        yield linear(setup, sources, 1, 3)  # queries, keys and values
        yield from heads(setup, size, longest, longest)
        yield linear(setup, sources, 1, 1)  # the output projection of the merged heads
        yield from feed_forward(setup, sources)
    length = batch.target_in.shape[1]
    for _ in range(setup.n_layers):
        yield linear(setup, targets, 1, 3)
        yield from heads(setup, size, length, length)
        yield linear(setup, targets, 1, 1)
        yield linear(setup, targets, 1, 1)  # queries of cross-attention
        yield linear(setup, sources, 1, 2)  # its keys and values, of the encoder's output
        yield from heads(setup, size, length, longest)
        yield linear(setup, targets, 1, 1)
        yield from feed_forward(setup, targets)
    yield Product((int(targets), setup.d_model), (setup.d_model, setup.vocab_size), transposed=setup.tied)


def linear(setup: AnySetup, rows: int, wide_in: int, wide_out: int) -> Product:
    """Return the product of a linear map of all rows, with widths in multiples of d_model.

    Args:
        setup: The setup of the model.
        rows: The number of rows.
        wide_in: The width of the input, divided by d_model.
        wide_out: The width of the output, divided by d_model.
    """
    return Product((int(rows), wide_in * setup.d_model), (wide_in * setup.d_model, wide_out * setup.d_model))


def heads(setup: AnySetup, size: int, queries: int, keys: int) -> Iterator[Product]:
    """Yield the two products of all heads: the scores, and the weighted means of the values.

    Args:
        setup: The setup of the model.
        size: The number of sentences, B.
        queries: The number of queries, T.
        keys: The number of keys, S.
    """
    outer, width = (size, setup.n_heads), setup.d_model // setup.n_heads
    yield Product((*outer, queries, width), (*outer, width, keys), transposed=True)
    yield Product((*outer, queries, keys), (*outer, keys, width))


def feed_forward(setup: AnySetup, rows: int) -> Iterator[Product]:
    """Yield the products of both linear maps of the feed-forward network."""
    yield Product((int(rows), setup.d_model), (setup.d_model, setup.d_ff))
    yield Product((int(rows), setup.d_ff), (setup.d_ff, setup.d_model))


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
