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
from recorded_models import DOG, MODELS, TEXTS, load, recorded_data_of

from npformer import nn
from npformer.explorer import explore, explore_layer
from npformer.explorer.layer_data import data_of_layer
from npformer.explorer.page import make_page
from npformer.explorer.recorded import recorded_data, with_saved
from npformer.lenses import Output, attribution_of

pytestmark = pytest.mark.browser


NUMBERS = 1000 if os.environ.get("NPFORMER_NIGHTLY") else 250


@pytest.mark.parametrize("name", ["post-norm", "llama", "bert vocabulary", "marian"])
def test_the_page_has_the_recorded_numbers(name, chromium):
    data = recorded_data_of(name)
    steps = Steps(data)
    with open_page(chromium, make_page(*data).html) as page:
        wait_until_ready(page)
        check_numbers(page, steps)
        check_predictions(page, name)


def check_numbers(page, steps):
    """Compare all arrays and gradients on the page with those that were recorded."""
    assert set(page.evaluate("npformer.paths()")) == steps.by_path.keys()
    both = "[npformer.values(path), npformer.gradients(path)].map((x) => [...x].map(String))"
    found = page.evaluate(f"paths => paths.map((path) => {both})", list(steps.by_path))
    for (_, value, grad), texts in zip(steps.by_path.values(), found, strict=True):
        numbers = [np.array(each, float) for each in texts]
        np.testing.assert_array_equal(numbers[0], value.astype("f4").ravel())
        np.testing.assert_array_equal(numbers[1], [] if grad is None else grad.astype("f4").ravel())


def test_the_page_switches_between_its_sentences(chromium):
    """Each has its own numbers; the parameters, which all of them share, are on the page once."""
    loaded, texts = load("bert"), ["the cat sees", TEXTS["bert"], "a dog sees it"]
    pages = [recorded_data(loaded, text) for text in texts]
    numbers = [sum(array.size for array in page.arrays) for page in [*pages, with_saved(pages)]]
    # all but the rows of positions, of which each text has its own number
    assert sum(numbers[:-1]) - numbers[-1] > 1.9 * loaded.model.count_parameters()
    with open_page(chromium, explore(loaded, texts).html) as page:
        for index in (1, 2, 0):
            page.select_option("#saved", index=index)
            check_numbers(page, Steps(pages[index]))
            assert page.text_content("#source-text") == texts[index]
            best = pages[index].head["predictions"]["best"]
            assert np.shape(page.evaluate("npformer.predictions()"))[1::-1] == np.shape(best)
            page.reload()
            wait_until_ready(page)
            assert page.text_content("#source-text") == texts[index]
    with open_page(chromium, explore(load("translator"), [DOG, "a cat sees it"]).html) as page:
        page.select_option("#saved", "a cat sees it")  # a live page computes it
        assert page.evaluate("[npformer.loss(), npformer.set_sentence('a cat sees it')]") == (
            [page.evaluate("npformer.loss()")] * 2
        )
        page.evaluate("npformer.set_sentence('a dog')")
        assert page.evaluate("document.querySelector('#saved').selectedIndex") == -1


def check_predictions(page, name):
    """Compare the predictions of every layer and the parts of their logits with those of the package."""
    kind, changes, *_ = MODELS[name]
    loaded = load(kind, **changes)
    loaded.model.astype(np.float64)
    settings = loaded.search_settings() if kind in ("translator", "marian") else {}
    lens = loaded.lens(TEXTS[kind], k=1, **settings)
    found = page.evaluate("npformer.predictions()")  # at each position, after each layer
    assert [[token for token, _ in row] for row in found] == np.array(lens.predictions)[..., 0].T.tolist()
    p = np.array([[p for _, p in row] for row in found])
    assert np.abs(p - lens.probabilities[..., 0].T).max() <= 1e-12
    ids = loaded._reading(TEXTS[kind], **settings).ids
    outputs = [Output(*output) for output in enumerate(lens.ids[-1, :, 0].tolist())]
    expected = [attribution_of(loaded.model, ids, output, "") for output in outputs]
    kept = np.flatnonzero(np.any([[part.value for part in each.parts] for each in expected], axis=0))
    for position, each in enumerate(expected):
        parts = page.evaluate("position => npformer.attribution(position, 0)", position)
        for (label, path, value), part in zip(parts, (each.parts[i] for i in kept), strict=True):
            assert abs(value - part.value) <= 1e-12 * max(abs(each.total), 1.0)
            assert label == {"biases of the output": "bias"}.get(part.name, part.name.split()[-1])
            assert part.layer is None or f".{part.layer}." in path
            assert (".cross." in path) == part.name.startswith("cross")
    check_tab_of_predictions(page, expected)


def check_tab_of_predictions(page, expected):
    """Follow the part that adds most to its step, from the first position or the first gap."""
    page.click('#views button:text-is("Predictions")')
    position = page.evaluate("npformer.explorer.session.head.example.predicted_tokens.findIndex(Boolean)")
    is_sum = "All parts together are the logit" in page.text_content("#lens-parts")
    assert is_sum == (expected[position].total == expected[position].logit)
    largest = max(expected[position].parts, key=lambda part: abs(part.value))
    page.click('#views button:text-is("The model")')
    page.evaluate(
        """token => {
            const { overview } = npformer;
            Object.assign(overview, { chosen: overview.flow.blocks.at(-1).block, token, stage: Infinity });
            overview.update();
        }""",
        position,
    )
    place = page.text_content("#overview-told").split(", the most probable token is “")[0]
    page.click('#views button:text-is("Predictions")')
    assert page.text_content("#lens-told").startswith(place)
    page.click("#lens-told button")
    assert page.evaluate("npformer.explorer.view") == "steps"
    told = page.text_content("#row-norms").split("this part adds ")[1]
    assert float(told.split()[0].replace("−", "-")) == pytest.approx(largest.value, rel=1e-2)


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
