"""Recorded pages in Chromium: the numbers that Python recorded, and the arithmetic shown for them."""

import base64
import math
import random

import hugging_face_folders as folders
import numpy as np
import pytest
from browser import open_page
from engine_page import javascript_modules
from marian_folders import marian_folder, sentences
from page_steps import Steps, wait_until_ready
from tiny_runs import CHARACTERS, bert_checkpoint, gpt_checkpoint
from word_translator import word_translator

import npformer
from npformer import nn
from npformer.explorer import explore_layer, recorded
from npformer.explorer.layer_data import data_of_layer
from npformer.explorer.page import make_page
from npformer.explorer.recorded import recorded_data
from npformer.interop import families
from npformer.interop.settings_file import Settings
from npformer.storage.checkpoint import save_checkpoint

pytestmark = pytest.mark.browser


def family_checkpoint(family, settings):
    """Return the checkpoint of a tiny GPT with the settings of a Hugging Face folder."""
    config = family.config_of(Settings(settings | {"vocab_size": len(CHARACTERS.tokens)}))
    return gpt_checkpoint(**config.to_dict())


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"rope_theta": 1e4, "original_max_position_embeddings": 8}
GPT_TEXT, BERT_TEXT, DOG = "the cat ate", "the [MASK] sees a dog", "the dog is tired"
MODELS = {
    "translator": (lambda: word_translator(norm="pre", final_norm=True), DOG),
    "relative": (lambda: word_translator(positions="relative", max_distance=2), DOG),
    "sequence": (lambda: word_translator(norm="n-dan", activation="gelu_tanh", tied="none"), DOG),
    "gpt2": (lambda: family_checkpoint(families.GPT2, folders.GPT2), "the cat"),
    "llama": (lambda: family_checkpoint(families.LLAMA, folders.LLAMA), GPT_TEXT),
    "llama 3.1": (
        lambda: family_checkpoint(families.LLAMA, folders.LLAMA | {"rope_parameters": LLAMA3}),
        GPT_TEXT,
    ),
    "qwen2": (lambda: family_checkpoint(families.QWEN2, folders.QWEN2), GPT_TEXT),
    "interleaved": (lambda: gpt_checkpoint(positions="rotary", rotary_layout="interleaved"), GPT_TEXT),
    "no bias": (lambda: gpt_checkpoint(n_heads=4, n_kv_heads=2, activation="geglu", bias=False), GPT_TEXT),
    "bert": (bert_checkpoint, BERT_TEXT),
    "distilbert": (lambda: bert_checkpoint(n_segments=0, activation="gelu_tanh"), BERT_TEXT),
    "large vocabulary": (
        lambda: word_translator(tied="output", output_bias=True, label_smoothing=0.1),
        DOG,
        {"LARGEST_VOCABULARY": 5, "MOST_PROBABLE": 1},
    ),
    "untied vocabulary": (
        lambda: gpt_checkpoint(tied=False, context=30),
        GPT_TEXT,
        {"LARGEST_VOCABULARY": 5, "MOST_PROBABLE": 1},
    ),
    "bert vocabulary": (bert_checkpoint, BERT_TEXT, {"LARGEST_VOCABULARY": 5, "MOST_PROBABLE": 1}),
    "marian": (marian_folder, sentences(5)[4]),
}


@pytest.fixture(params=MODELS)
def data(request, tmp_path, monkeypatch):
    """Return the data of the recorded page of a model."""
    make, text, *limits = MODELS[request.param]
    for name, limit in (limits[0] if limits else {}).items():
        monkeypatch.setattr(recorded, name, limit)
    if make is marian_folder:
        return recorded_data(npformer.load(make(tmp_path / "marian"), dtype="float64"), text)
    model = make()
    if not hasattr(model, "translate"):
        save_checkpoint(model, tmp_path / "run.safetensors")
        model = npformer.load(tmp_path / "run.safetensors")
    return recorded_data(model, text)


def test_the_page_has_the_recorded_numbers(data, chromium):
    steps = Steps(data)
    with open_page(chromium, make_page(*data).html) as page:
        wait_until_ready(page)
        assert set(page.evaluate("npformer.paths()")) == steps.by_path.keys()
        for path, (_, value, grad) in steps.by_path.items():
            script = "path => [npformer.values(path), npformer.gradients(path)].map(x => [...x].map(String))"
            found = [np.array(list(map(float, each))) for each in page.evaluate(script, path)]
            np.testing.assert_array_equal(found[0], value.astype("f4").ravel())
            np.testing.assert_array_equal(found[1], [] if grad is None else grad.astype("f4").ravel())


def test_the_page_of_a_layer(chromium):
    x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
    for layer, inputs in ((nn.FeedForward(8, 12), x), (nn.MultiHeadAttention(8, 2), x[:1])):
        with open_page(chromium, explore_layer(layer, inputs).html) as page:
            wait_until_ready(page)
            name = "x" if isinstance(layer, nn.FeedForward) else "query"
            found = page.evaluate("name => [...npformer.values(name)]", name)
            np.testing.assert_array_equal(np.array(found, "f4"), inputs.ravel())


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
    modules = javascript_modules()
    modules["harness.js"] = ("text/javascript", HARNESS)
    html = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="harness.js"></script>'
    with open_page(chromium, html, modules) as page:
        page.wait_for_function("() => Boolean(window.explain)")

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


def test_the_terms_of_any_number_add_up_to_it(data, explain):
    """1,000 numbers at random of each family, forward and backward: the page explains all of them."""
    steps = Steps(data)
    places = random_places(steps, 1000)
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
    assert explained > 600


def test_the_gradient_of_the_output_of_a_layer_was_given(explain):
    """It has no loss behind it, so no terms explain it; the gradients before it are explained."""
    rng = np.random.default_rng(0)
    data = data_of_layer(nn.FeedForward(4, 6, rng=rng), [rng.standard_normal((1, 3, 4))])
    steps = Steps(data)
    given, before = explain(data, [("outer.y", 0, "backward"), ("inner.y", 0, "backward")])
    assert given is None
    check_terms(before, steps.grad("inner.y"), "inner.y")
