"""The floor: exactly the matrix products of a training step."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from bench_toys import GPT_TOY, TIED, TOY

from npformer.bench import floor
from npformer.kernels import plain_pairs


class Recorded(np.ndarray):
    """An array that records every matrix product in which it is a factor."""

    products: ClassVar[list] = []

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **settings):
        plain = [x.view(np.ndarray) if isinstance(x, Recorded) else x for x in inputs]
        if out is not None:
            settings["out"] = tuple(x.view(np.ndarray) if isinstance(x, Recorded) else x for x in out)
        if ufunc is np.matmul:
            self.products.append(tuple(x.shape for x in plain))
        result = getattr(ufunc, method)(*plain, **settings)
        return result.view(Recorded) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function, types, args, settings):  # np.where would return a plain array
        result = super().__array_function__(function, types, args, settings)
        return result.view(Recorded) if isinstance(result, np.ndarray) else result


def recorded_products(setup, batch, packed):
    """Return the shapes of all products of the model with the plain pairs, forward and backward."""
    model = setup.model_class(setup.config())
    settings = {"train": True, "rng": np.random.default_rng(0)} | ({"packed": True} if packed else {})
    model._convert(lambda array: array.view(Recorded))  # position tables
    for parameter in model.parameters():  # whose values are views of a new array
        parameter.value = parameter.value.view(Recorded)
    Recorded.products.clear()
    with plain_pairs():
        logits, cache = model.forward(*batch.inputs, **settings)
        model.backward(np.ones_like(logits), cache)
    return Counter(map(normal_form, Recorded.products))


def normal_form(shapes):
    """Return batch axes, then sorted extents: equal for a product, its transpose and flattened rows."""
    left, right = shapes
    if len(right) == 2:  # all axes before the last are rows
        left = (int(np.prod(left[:-1])), left[-1])
    return (*left[:-2], *sorted((left[-2], left[-1], right[-1])))


@pytest.mark.parametrize(
    ("setup", "packed"),
    [(TOY, False), (TOY, True), (TIED, False), (TIED, True), (GPT_TOY, False)],
    ids=["untied", "untied, packed", "tied", "tied, packed", "GPT"],
)
def test_the_floor_has_the_products_of_the_step_and_no_other(setup, packed):
    batch = setup.batch()
    counted = Counter(
        normal_form((product.left, product.right))
        for product in floor.products(setup, batch, packed=packed)
        if not (packed and len(product.left) > 2)  # unpacking makes plain arrays, which do not record
    )
    assert recorded_products(setup, batch, packed) == Counter({form: 3 * n for form, n in counted.items()})


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("outer", [(), (2, 3)])
def test_the_floor_computes_what_it_should(turned, outer):
    product = floor.Product((*outer, 5, 7), (*outer, 7, 4), turned)
    part = floor.WorkerProducts([product], "numpy")
    a, b, dy = (part.arrays[key].copy() for key in part.keys(product)[:3])
    part.multiply()
    y, da, db = (part.arrays[key] for key in part.keys(product)[3:])
    b, db = (b.swapaxes(-1, -2), db.swapaxes(-1, -2)) if turned else (b, db)
    np.testing.assert_allclose(y, a @ b, rtol=1e-5)
    np.testing.assert_allclose(da, dy @ b.swapaxes(-1, -2), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(db, a.swapaxes(-1, -2) @ dy, rtol=1e-5, atol=1e-6)
