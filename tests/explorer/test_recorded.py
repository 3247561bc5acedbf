"""Recorded pages: their steps, their names in the cache tree, and bad input."""

import base64
import re

import numpy as np
import pytest
from page_steps import Steps
from recorded_models import DOG, MODELS, TEXTS, load, recorded_data_of

from npformer.errors import UserError
from npformer.explorer import explore, recorded
from npformer.explorer.recorded import recorded_data


def near(actual, expected):
    """Check that arrays are equal up to rounding, relative to their largest entry.

    A gradient that is 0 in exact arithmetic, as that of a bias of keys, consists of rounding errors alone.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    largest = np.abs(expected[finite]).max(initial=0)
    assert np.abs(actual[finite] - expected[finite]).max(initial=0) <= 1e-11 * largest + 1e-15


def test_the_gradient_of_weights_with_relative_positions():
    """A weight multiplies the value of its key, to which the vector of the key's distance is added."""
    steps = Steps(recorded_data(load("translator", positions="relative", max_distance=2), DOG))
    at = "encoder.1.self_attention"
    v, dz = steps.value(f"{at}.attention.v"), steps.grad(f"{at}.attention.z")  # (H, S, L), (H, T, L)
    vectors = steps.value(f"{at}.value_positions")  # (5, L)
    length = v.shape[1]
    expected = np.zeros((2, length, length))
    for t in range(length):
        for s in range(length):
            value = v[:, s] + vectors[max(-2, min(2, s - t)) + 2]
            expected[:, t, s] = (dz[:, t] * value).sum(-1)
    near(steps.grad(f"{at}.attention.weights"), expected)


@pytest.mark.parametrize("name", MODELS)
def test_every_step_is_explained_and_the_arrays_are_those_of_the_cache(name):
    kind, changes, *limits = MODELS[name]
    data = recorded_data_of(name)
    assert [step["path"] for step in data.head["steps"] if step["op"] == "recorded"] == []
    assert {step["line"] for step in data.head["steps"]} <= data.head["lines"].keys()
    assert len({step["path"] for step in data.head["steps"]}) == len(data.head["steps"])
    if limits:
        return
    model, steps, found = load(kind, **changes), Steps(data), 0
    model.model.astype(np.float64)
    settings = model.search_settings() if kind in ("translator", "marian") else {}
    cache = model.attention(TEXTS[kind], **settings).cache
    for path in steps.by_path:
        array = in_cache(cache, path)
        if array is not None:
            array = np.float64(array[0]) if array.ndim == steps.value(path).ndim + 1 else array
            near(array, steps.value(path))
            found += 1
    assert found > 15


def in_cache(cache, path):
    """Return the array of floats under a name in the cache tree, or None if there is none."""
    for part in path.split("."):
        if part.isdigit() and hasattr(cache, "__getitem__"):
            cache = cache[int(part)] if int(part) < len(cache) else None
        else:
            cache = getattr(cache, part, None)
    return cache if isinstance(cache, np.ndarray) and cache.dtype.kind == "f" else None


def test_a_whole_recorded_page_carries_its_numbers_and_the_model_stays_as_it_is():
    loaded, text = load("bert"), "the cat sees"
    before = loaded.model.state_dict()
    page = explore(loaded, text)
    numbers = np.frombuffer(base64.b64decode(re.search(r'id="weights">([^<]*)<', page.html)[1]), "<f4")
    wanted = np.concatenate([array.ravel() for array in recorded_data(loaded, text).arrays])
    np.testing.assert_array_equal(numbers, wanted.astype("f4"))
    assert (page.kind, page.head["architecture"]) == ("recorded", "bert")
    assert not any(parameter.has_grad for parameter in loaded.model.parameters())
    assert all((before[name] == value).all() for name, value in loaded.model.state_dict().items())
    assert "forward" not in vars(loaded.model.encoder.layers[0])


# Examples and targets


def test_a_language_model_predicts_the_next_token():
    data = recorded_data(load("gpt"), "the cat")
    assert data.head["example"]["source_tokens"] == list("the cat")
    assert data.head["example"]["predicted_tokens"] == [*"he cat", ""]
    assert recorded_data(load("gpt"), "ca").head["example"]["predicted_tokens"] == ["a", ""]  # the shortest
    steps = Steps(data)
    _, cross_entropy, _ = steps.by_path["loss"]
    assert steps.by_path["loss"][0]["note"] == {"real": [True] * 6 + [False], "tokens": 6}
    assert float(cross_entropy) == pytest.approx(load("gpt").loss("the cat"), rel=1e-12)


def test_a_masked_model_predicts_its_gaps():
    model = load("bert")
    example = recorded_data(model, "the [MASK] sees a dog").head["example"]
    best = model.fill("the [MASK] sees a dog", k=1)[0].words[0]
    assert example["predicted_tokens"] == ["", best, "", "", "", ""]
    given = recorded_data(model, "the [MASK] sees a dog", "the cat sees a dog").head["example"]
    assert given["predicted_tokens"] == ["", "cat", "", "", "", ""]
    whole = recorded_data(model, "the cat sees").head["example"]
    assert whole["predicted_tokens"] == ["the", "cat", "sees", "</S>"]


@pytest.mark.parametrize(
    ("kind", "source", "target", "message"),
    [
        ("gpt", "", None, "the text '' is empty: write at least one word"),
        ("gpt", "a", None, "the text has a single token, and nothing follows it"),
        ("gpt", "xyz", None, "the text has the character 'x', which the model has not seen"),
        ("gpt", "the cat", "the dog", "a language model reads one text"),
        ("gpt", "a" * 49, None, "the text has 49 tokens"),
        ("gpt", [], None, "there is no sentence to explore: give at least one"),
        ("bert", ["the [MASK]", "the cat"], "the cat", "a translation belongs to one sentence: leave it out"),
        ("bert", "the [MASK]", "the cat sees", "the text has 3 tokens and the filled text 4: write one word"),
        ("translator", " ", None, "the sentence ' ' is empty"),
        ("translator", DOG, "", "the translation '' is empty"),
        ("translator", "the " * 60, None, "the sentence has 61 tokens"),
        ("translator", DOG, "le " * 60, "the translation has 61 tokens"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(kind, source, target, message, monkeypatch):
    monkeypatch.setattr("npformer.explorer.why_not_live", lambda model: "it is recorded")
    with pytest.raises(UserError, match=message):
        explore(load(kind), source, target)


# Large models


def test_of_a_large_vocabulary_the_page_carries_the_tokens_of_the_example(monkeypatch):
    model = load("translator", label_smoothing=0.0)
    data = recorded_data(model, DOG, "le chien est")
    assert data.head["source_words"] == list(model.codec.source.tokens)
    assert data.head["target_words"] == list(model.codec.target.tokens)
    whole = Steps(data)
    monkeypatch.setattr(recorded, "LARGEST_VOCABULARY", 5)
    monkeypatch.setattr(recorded, "MOST_PROBABLE", 1)
    data = recorded_data(model, DOG, "le chien est")
    assert not {"source_words", "target_words"} & data.head.keys()
    part = Steps(data)
    labels = part.by_path["logits"][0]["note"]["labels"]
    words = list(model.codec.target.tokens)
    columns = [words.index(label) for label in labels]
    assert {"le", "chien", "est", "</S>"} <= set(labels) < set(words)
    assert {words[index] for index in whole.value("logits").argmax(-1)} <= set(labels)
    for path in ("logits", "loss.log_probs"):
        near(part.value(path), whole.value(path)[:, columns])
        near(part.grad(path), whole.grad(path)[:, columns])
    assert not any(step["op"] == "recorded" for step, _, _ in part.all)
    near(part.value("output.weight"), whole.value("output.weight")[:, columns])
    near(part.grad("output.weight"), whole.grad("output.weight")[:, columns])
    table, value, _ = part.by_path["source.tokens.weight"]
    assert table["note"]["labels"] == sorted({*DOG.split(), "</S>"}, key=model.codec.source.tokens.index)
    assert value.shape == (5, 8)
    near(value[part.by_path["source.tokens.y"][0]["note"]["ids"]], whole.value("source.tokens.y") / 8**0.5)
    near(
        part.grad("encoder.0.self_attention.attention.q"), whole.grad("encoder.0.self_attention.attention.q")
    )


@pytest.mark.parametrize(
    ("room", "matrices", "gradients"), [(2.0, True, True), (1.0, True, False), (0.9, False, False)]
)
def test_parameters_that_have_no_room_are_left_out(room, matrices, gradients, monkeypatch):
    model = load("translator")
    monkeypatch.setattr(recorded, "LARGEST_PARAMETERS", room * model.model.count_parameters())
    steps = Steps(recorded_data(model, DOG))
    path = "encoder.0.feed_forward.inner"
    assert (f"{path}.weight" in steps.by_path) is matrices
    if matrices:
        assert (steps.grad(f"{path}.weight") is not None) is gradients
    assert steps.by_path[f"{path}.y"][0]["op"] == ("add_bias" if matrices else "recorded")
    assert (f"{path}.product" in steps.by_path) is matrices
    assert steps.grad(f"{path}.bias") is not None


def test_a_very_large_model_is_computed_without_gradients_of_parameters(monkeypatch):
    model = load("gpt")
    precise = Steps(recorded_data(model, "the cat ate"))
    monkeypatch.setattr(recorded, "LARGEST_PRECISE", 100)
    steps = Steps(recorded_data(model, "the cat ate"))
    parameters = [(value, grad) for step, value, grad in steps.all if step["op"] == "parameter"]
    assert parameters
    assert all(grad is None for _, grad in parameters)
    assert {value.ndim for value, _ in parameters} == {1, 2}  # the vectors, and the rows of the positions
    assert steps.by_path["layers.0.norm1.y"][0]["op"] == "scale_and_shift"
    unknown = steps.by_path["layers.0.feed_forward.inner.y"][0]
    assert (unknown["op"], unknown["note"]) == ("recorded", {"missing": True})
    near(
        steps.grad("layers.0.self_attention.attention.weights"),
        precise.grad("layers.0.self_attention.attention.weights"),
    )
    assert not any(parameter.has_grad for parameter in model.model.parameters())
