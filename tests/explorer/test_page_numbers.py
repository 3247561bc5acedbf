"""The numbers of a whole page, after what a reader may do: they are those of the package."""

import math
import random

import numpy as np
import pytest
from browser import open_page
from page_numbers import arrays_of, shown_number
from pass_record import PassRecord, compare
from word_translator import word_translator

from npformer.explorer import explore
from npformer.training.optimizer import Adam

pytestmark = pytest.mark.browser

SOURCE, TARGET = "the dog is tired", "le chien est fatigué"
OTHER = ("a cat sees it", "un chat était large")


@pytest.fixture(scope="module")
def translator():
    return word_translator()


@pytest.fixture
def page(chromium, translator):
    with open_page(chromium, explore(translator, SOURCE, TARGET).html) as opened:
        yield opened


@pytest.fixture
def model(translator):
    """Return the model in float64: the page computes the same numbers from the same float32."""
    return word_translator().model.astype(np.float64)


def ids_of(translator, source=SOURCE, target=TARGET):
    """Return source, target_in and target_out of two texts."""
    config, words = translator.model.config, translator.translator
    source_ids, target_ids = words.source_codec.encode(source), words.target_codec.encode(target)
    return [*source_ids, config.end_id], [config.start_id, *target_ids], [*target_ids, config.end_id]


def test_the_page_begins_with_its_sentence(page, model, translator):
    record = PassRecord(model, ids_of(translator))
    compare(record, arrays_of(page))
    assert page.evaluate("npformer.loss()") == pytest.approx(float(record.values["loss"]), rel=1e-12)


def test_another_sentence(page, model, translator):
    page.evaluate("texts => npformer.set_sentence(...texts)", OTHER)
    compare(PassRecord(model, ids_of(translator, *OTHER)), arrays_of(page))


def test_changes(page, model, translator):
    changes = {
        "heads": {"decoder.0.cross": [1]},
        "masks": {"decoder.0.self_attention": [[0, 2, True], [3, 0, False]]},
        "values": {"encoder.0.feed_forward.inner.y": [[2, 1.5]]},
    }
    page.evaluate("edits => npformer.edit(edits)", changes)
    compare(PassRecord(model, ids_of(translator), **changes), arrays_of(page))
    page.evaluate("npformer.edit({})")
    compare(PassRecord(model, ids_of(translator)), arrays_of(page))


@pytest.mark.parametrize(
    ("optimizer", "lr", "tolerance"), [("gradient descent", 0.01, 1e-12), ("adam", 0.001, 1e-9)]
)
def test_five_steps(page, model, translator, optimizer, lr, tolerance):
    """Adam divides by the root of the squared gradients, which amplifies rounding where they are nearly 0."""
    adam = Adam(model)
    for _ in range(5):
        page.evaluate("([lr, optimizer]) => npformer.step(lr, { optimizer })", [lr, optimizer])
        PassRecord(model, ids_of(translator))
        if optimizer == "adam":
            adam.step(lr)
        else:
            model.values -= lr * model.grads
    compare(PassRecord(model, ids_of(translator)), arrays_of(page), tolerance)


def random_pair(rng, translator):
    """Return a sentence and a translation of random words of the vocabularies."""
    codecs = translator.translator.source_codec, translator.translator.target_codec
    return [" ".join(rng.choices(codec.tokens[4:], k=rng.randint(1, 8))) for codec in codecs]


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


@pytest.mark.slow
def test_twenty_sentences_with_changes_and_training(page, model, translator):
    """Each as it is, with random changes, and without them after 5 steps of gradient descent."""
    rng, initial = random.Random(0), model.values.copy()
    for _ in range(20):
        pair = random_pair(rng, translator)
        ids = ids_of(translator, *pair)
        changes = random_changes(rng, ids)
        page.evaluate("texts => npformer.set_sentence(...texts)", pair)
        compare(PassRecord(model, ids), arrays_of(page))
        page.evaluate("edits => npformer.edit(edits)", changes)
        compare(PassRecord(model, ids, **changes), arrays_of(page))
        page.evaluate("npformer.edit({})")
        for _ in range(5):
            page.evaluate("npformer.step(0.01)")
            PassRecord(model, ids)
            model.values -= 0.01 * model.grads
        compare(PassRecord(model, ids), arrays_of(page))
        page.evaluate("for (let i = 0; i < 5; i++) npformer.explorer.session.undo()")
        model.values[...] = initial


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


@pytest.mark.slow
def test_the_arithmetic_of_a_thousand_numbers(page):
    """The unrounded terms add up to the number to 1e-12, and what is rounded says so."""
    rng = random.Random(1)
    places = [(rng.choice(("forward", "backward")), rng.random(), rng.random()) for _ in range(1000)]
    found = page.evaluate(EXPLAINED, places)
    assert len({each["op"] for each in found}) > 15
    for each in found:
        number, total = float(each["number"]), float(each["sum"])
        terms = [shown_number(term) for term in each["terms"]]
        largest = max([1.0, *map(abs, terms)]) if math.isfinite(number) else 1.0
        assert number == total or abs(number - total) <= 1e-12 * largest, each
        assert shown_number(each["shown"]) == pytest.approx(number, rel=5e-3, abs=5e-4), each
        if each["equation"]:
            assert " ≈ " in each["equation"], each
            assert shown_number(each["equation"].rsplit(" ≈ ")[1]) == shown_number(each["shown"]), each
    assert sum(bool(each["equation"]) for each in found) > 500
