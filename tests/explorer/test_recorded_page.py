"""Recorded pages in Chromium: the numbers that Python recorded, and the arithmetic shown for them."""

import base64
import math
import os
import random

import numpy as np
import pytest
from browser import open_page
from engine_page import open_modules
from page_steps import Steps, wait_until_ready
from recorded_models import MODELS, recorded_data_of

from npformer import nn
from npformer.explorer import explore_layer
from npformer.explorer.layer_data import data_of_layer
from npformer.explorer.page import make_page

pytestmark = pytest.mark.browser


NUMBERS = 1000 if os.environ.get("NPFORMER_NIGHTLY") else 250


@pytest.mark.parametrize("name", ["post-norm", "llama", "bert vocabulary", "marian"])
def test_the_page_has_the_recorded_numbers(name, chromium):
    data = recorded_data_of(name)
    steps = Steps(data)
    with open_page(chromium, make_page(*data).html) as page:
        wait_until_ready(page)
        assert set(page.evaluate("npformer.paths()")) == steps.by_path.keys()
        both = "[npformer.values(path), npformer.gradients(path)].map((x) => [...x].map(String))"
        found = page.evaluate(f"paths => paths.map((path) => {both})", list(steps.by_path))
        for (_, value, grad), texts in zip(steps.by_path.values(), found, strict=True):
            numbers = [np.array(each, float) for each in texts]
            np.testing.assert_array_equal(numbers[0], value.astype("f4").ravel())
            np.testing.assert_array_equal(numbers[1], [] if grad is None else grad.astype("f4").ravel())


def test_the_page_of_a_layer(chromium):
    x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
    for layer, inputs in ((nn.FeedForward(8, 12), x), (nn.MultiHeadAttention(8, 2), x[:1])):
        with open_page(chromium, explore_layer(layer, inputs).html) as page:
            wait_until_ready(page)
            name = "x" if isinstance(layer, nn.FeedForward) else "query"
            found = page.evaluate("name => [...npformer.values(name)]", name)
            np.testing.assert_array_equal(np.array(found, "f4"), inputs.ravel())
            assert "it computes no other texts" in page.text_content("#overview")


HARNESS = """
import { recordedTape, isExplained } from "/state/recorded.js";
import { terms } from "/arithmetic/terms.js";
window.explain = (head, numbers, places) => {
  const bytes = Uint8Array.from(atob(numbers), (c) => c.charCodeAt(0));
  const tape = recordedTape(head, new Float64Array(bytes.buffer));
  return places.map(([path, index, direction]) => {
    const step = tape.names.get(path);
    if (!isExplained(tape, step, direction)) return null;
    const { terms: list, scale, number: sum } = terms(tape, step, index, direction);
    const known = list.every(({ factors }) => factors.every(({ step, index, value, grad, name }) =>
      !step || name || (grad ? step.grad : step.data)[index] === value));
    const number = (direction === "forward" ? step.data : step.grad)[index];
    return { number: String(number), sum: String(sum), known,
      values: list.map(({ value }) => String(value * scale.value)) };
  });
};
"""


@pytest.fixture(scope="module")
def explain(chromium):
    """Return a function that explains the numbers at some places of the data of a page."""
    with open_modules(chromium, HARNESS, "window.explain") as page:

        def run(data, places):
            numbers = np.concatenate([np.float64(array).ravel() for array in data.arrays])
            text = base64.b64encode(numbers.tobytes()).decode()
            return page.evaluate("arguments => explain(...arguments)", [data.head, text, places])

        yield run


def random_places(steps, count):
    """Return paths of random steps, the index of a number of each, and a direction."""
    rng = random.Random(0)
    chosen = [rng.choice(steps.all) for _ in range(count)]
    return [
        (step["path"], rng.randrange(value.size), rng.choice(("forward", "backward")))
        for step, value, _ in chosen
    ]


def check_terms(found, array, place):
    """Check that the terms of a number add up to it, and that each factor is the entry that it says it is."""
    number, total = float(found["number"]), float(found["sum"])
    if not math.isinf(number):
        values = [float(value) for value in found["values"]]
        largest = max(map(abs, [number, *values]), default=0.0)
        assert abs(number - total) <= 1e-12 * max(np.abs(array[np.isfinite(array)]).max(), largest), place
        assert abs(sum(values) - total) <= 1e-12 * largest, place
    else:
        assert number == total, place
    assert found["known"], place


@pytest.mark.parametrize("name", MODELS)
def test_the_terms_of_any_number_add_up_to_it(name, explain):
    """Numbers at random of each kind of model, forward and backward: the page explains all of them."""
    data = recorded_data_of(name)
    steps = Steps(data)
    places = random_places(steps, NUMBERS)
    explained = 0
    for place, found in zip(places, explain(data, places), strict=True):
        path, _, direction = place
        step, value, grad = steps.by_path[path]
        if grad is None and direction == "backward":
            assert step["op"] == "constant", place
            continue
        assert found is not None, place
        check_terms(found, value if direction == "forward" else grad, place)
        explained += float(found["number"]) != 0
    assert explained > 0.6 * NUMBERS


def test_the_gradient_of_the_output_of_a_layer_was_given(explain):
    """It has no loss behind it, so no terms explain it; the gradients before it are explained."""
    rng = np.random.default_rng(0)
    data = data_of_layer(nn.FeedForward(4, 6, rng=rng), [rng.standard_normal((1, 3, 4))])
    steps = Steps(data)
    given, before = explain(data, [("outer.y", 0, "backward"), ("inner.y", 0, "backward")])
    assert given is None
    check_terms(before, steps.grad("inner.y"), "inner.y")
