"""The numbers of a whole page, after what a reader may do: they are those of the package."""

import copy
import math
import os
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from browser import open_page
from page_numbers import arrays_of, shown_number
from page_steps import wait_until_ready
from pass_record import NO_TARGET, PassRecord, compare
from tiny_runs import CHARACTERS
from word_translator import word_translator

from npformer.explorer import explore
from npformer.training.optimizer import Adam

pytestmark = pytest.mark.browser

NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))
LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "n_kv_heads": 1, "bias": False}
CHANGES = {
    "translator": {
        "heads": {"decoder.0.cross": [1]},
        "masks": {"decoder.0.self_attention": [[0, 2, True], [3, 0, False]]},
        "values": {"encoder.0.feed_forward.inner.y": [[2, 1.5]]},
    },
    "gpt": {
        "heads": {"layers.1.self_attention": [1]},
        "masks": {"layers.0.self_attention": [[0, 2, True], [3, 0, False]]},
        "values": {"layers.0.feed_forward.outer.y": [[2, 1.5]]},
    },
}


class Shown(NamedTuple):
    """A model, its page with the first of two examples, and how the ids of an example are computed."""

    loaded: Any
    kind: str
    examples: list
    ids_of: Any
    html: str

    def model(self):
        """Return the model in float64, with the numbers of float32 that the page carries."""
        return copy.deepcopy(self.loaded.model).astype(np.float32).astype(np.float64)

    def record(self, example=0, model=None, **changes):
        """Return the pass of an example by the package."""
        return PassRecord(model or self.model(), self.ids_of(*self.examples[example]), **changes)


def ids_of_pair(translator, source, target):
    """Return source, target_in and target_out of two texts."""
    config, codecs = translator.model.config, translator.codec
    source_ids, target_ids = codecs.source.encode(source), codecs.target.encode(target)
    return [*source_ids, config.end_id], [config.start_id, *target_ids], [*target_ids, config.end_id]


def ids_of_text(text):
    ids = CHARACTERS.encode(text)
    return [], ids, [*ids[1:], NO_TARGET]


@pytest.fixture(scope="module", params=["translator", "gpt2", "llama"])
def shown(request, loaded_gpt):
    if request.param == "translator":
        loaded = word_translator()
        examples = [("the dog is tired", "le chien est fatigué"), ("a cat sees it", "un chat était large")]
        return Shown(
            loaded,
            "translator",
            examples,
            lambda *texts: ids_of_pair(loaded, *texts),
            explore(loaded, *examples[0]).html,
        )
    loaded = loaded_gpt(context=60, **LLAMA if request.param == "llama" else {})
    return Shown(
        loaded, "gpt", [("the cat\nate",), ("a dog",)], ids_of_text, explore(loaded, "the cat\nate").html
    )


@pytest.fixture
def page(chromium, shown):
    with open_page(chromium, shown.html) as opened:
        wait_until_ready(opened)
        yield opened


def set_texts(page, texts):
    page.evaluate("texts => npformer.set_sentence(...texts)", texts)


def change(page, edits):
    page.evaluate("edits => npformer.edit(edits)", edits)


def test_the_numbers_of_an_example_of_changes_and_of_another_example(page, shown):
    record = shown.record()
    compare(record, arrays_of(page))
    assert page.evaluate("npformer.loss()") == pytest.approx(float(record.values["loss"]), rel=1e-12)
    change(page, CHANGES[shown.kind])
    compare(shown.record(**CHANGES[shown.kind]), arrays_of(page))
    change(page, {})
    compare(record, arrays_of(page))
    set_texts(page, shown.examples[1])
    compare(shown.record(1), arrays_of(page))


# Random sentences of a translator, and random numbers of its page

of_a_translator = pytest.mark.parametrize("shown", ["translator"], indirect=True)


def random_changes(rng, ids):
    """Return a head that is off, some cells of a mask, and values of a hidden layer, at random."""
    source, target, _ = ids
    layer = rng.randrange(2)
    masks = {
        f"encoder.{layer}.self_attention": (len(source), len(source)),
        f"decoder.{layer}.self_attention": (len(target), len(target)),
        f"decoder.{layer}.cross": (len(target), len(source)),
    }
    name = rng.choice(sorted(masks))
    queries, keys = masks[name]
    cells = [[rng.randrange(queries), rng.randrange(keys), rng.random() < 0.5] for _ in range(3)]
    return {
        "heads": {rng.choice(sorted(masks)): [rng.randrange(2)]},
        "masks": {name: list({(t, s): [t, s, allowed] for t, s, allowed in cells}.values())},
        "values": {f"encoder.{layer}.feed_forward.inner.y": [[rng.randrange(12 * len(source)), 1.5]]},
    }


@of_a_translator
def test_random_sentences_with_changes_and_training(page, shown):
    """Each as it is, with random changes, and without them after 5 steps of an optimizer.

    Adam divides by the root of the squared gradients, which amplifies rounding where they are nearly 0.
    """
    rng, codecs = random.Random(0), (shown.loaded.codec.source, shown.loaded.codec.target)
    for number in range(20 if NIGHTLY else 4):
        pair = [" ".join(rng.choices(codec.tokens[4:], k=rng.randint(1, 8))) for codec in codecs]
        ids, model = shown.ids_of(*pair), shown.model()
        changes = random_changes(rng, ids)
        set_texts(page, pair)
        compare(PassRecord(model, ids), arrays_of(page))
        change(page, changes)
        compare(PassRecord(model, ids, **changes), arrays_of(page))
        change(page, {})
        optimizer, lr, tolerance = (("gradient descent", 0.01, 1e-12), ("adam", 0.001, 1e-9))[number % 2]
        adam = Adam(model)
        for _ in range(5):
            page.evaluate("([lr, optimizer]) => npformer.step(lr, { optimizer })", [lr, optimizer])
            PassRecord(model, ids)
            if optimizer == "adam":
                adam.step(lr)
            else:
                model.values -= lr * model.grads
        compare(PassRecord(model, ids), arrays_of(page), tolerance)
        page.evaluate("for (let i = 0; i < 5; i++) npformer.explorer.session.undo()")


# what the page shows as the arithmetic of numbers at random
EXPLAINED = """places => {
    const { explorer } = npformer, text = (selector) => document.querySelector(selector)?.textContent ?? "";
    document.getElementById("every-term").open = true;
    return places.map(([direction, position, part]) => {
        explorer.setDirection(direction);
        explorer.goToPosition(Math.floor(position * explorer.timeline.length));
        explorer.index = Math.floor(part * explorer.result.data.length);
        explorer.changed();
        document.getElementById("every-term").dispatchEvent(new Event("toggle"));
        const sum = text("#every-term p").match(/(?:The sum|it) is (\\S+)\\.$/)[1];
        const cells = [...document.querySelectorAll("#every-term tbody td:last-child")];
        return { path: explorer.result.path, direction, op: explorer.moment.step.op,
            number: String(explorer.numbers[explorer.index]), sum, shown: text("#arithmetic output"),
            equation: text("#arithmetic .equation"), terms: cells.map((cell) => cell.textContent) };
    });
}"""


@of_a_translator
def test_the_arithmetic_of_numbers_at_random(page):
    """The unrounded terms add up to the number to 1e-12, and what is rounded says so."""
    rng, count = random.Random(1), 1000 if NIGHTLY else 250
    places = [(rng.choice(("forward", "backward")), rng.random(), rng.random()) for _ in range(count)]
    found = page.evaluate(EXPLAINED, places)
    assert len({each["op"] for each in found}) > 14
    for each in found:
        number, total = float(each["number"]), float(each["sum"])
        terms = [shown_number(term) for term in each["terms"]]
        largest = max([1.0, *map(abs, terms)]) if math.isfinite(number) else 1.0
        assert number == total or abs(number - total) <= 1e-12 * largest, each
        assert shown_number(each["shown"]) == pytest.approx(number, rel=5e-3, abs=5e-4), each
        if each["equation"]:
            assert " ≈ " in each["equation"], each
            assert shown_number(each["equation"].rsplit(" ≈ ")[1]) == shown_number(each["shown"]), each
    assert sum(bool(each["equation"]) for each in found) > count / 2
