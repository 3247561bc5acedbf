"""Activation patching: effects of whole layers, of places that do not matter, and those of first order."""

from dataclasses import replace

import numpy as np
import pytest
from lens_models import MODELS, ids_of

from npformer import UserError
from npformer.lenses.patching import ACTIVATIONS, Effects, Patching, patching_of
from npformer.lenses.taps import Output, stacks, tap_layers, watchable
from npformer.models.gpt import GPT, GPTConfig
from npformer.plots import text_problems

every_model = pytest.mark.parametrize("name", MODELS)
OUTPUT, VERSUS = Output(4, 5), 3
CHANGED = 2  # the place at which the two texts differ


def texts_of(model):
    """Return the ids of a text, and of another one that differs at one place of the first input."""
    ids = ids_of(model)
    other = [each.copy() for each in ids]
    other[0][0, CHANGED] = 12
    return ids, other


def patched(name, what, model=None):
    model = MODELS[name]() if model is None else model
    ids, other = texts_of(model)
    tokens = [list("abcdef"), list("uvwxy")]
    labels = ("five", "three")
    return patching_of(model, ids, other, OUTPUT, VERSUS, tokens=tokens[: len(ids)], labels=labels, what=what)


@every_model
def test_a_whole_layer_at_all_positions_gives_the_other_run_to_the_bit(name):
    model = MODELS[name]()
    ids, other = texts_of(model)
    watched = watchable(model)
    for tap in tap_layers(next(iter(stacks(watched).values()))):
        watched.forward(*other)
        of_other = tap.y
        tap.patch = lambda y, of_other=of_other: of_other
        assert np.array_equal(watched(*ids), model(*other))
        tap.patch = None


@every_model
def test_the_scores_and_the_last_layer(name):
    model = MODELS[name]()
    found = patched(name, "layers", model)
    for ids, score in zip(texts_of(model), (found.score, found.other_score), strict=True):
        row = model(*ids)[0, OUTPUT.position]
        assert score == row[OUTPUT.token] - row[VERSUS]
    # nothing comes after the vector of this token
    last = list(found.effects.values())[-1].exact[-1]
    assert last[OUTPUT.position] == pytest.approx(found.other_score - found.score, abs=1e-5)
    assert np.abs(np.delete(last, OUTPUT.position)).max() < 1e-6


@pytest.mark.parametrize("what", ["layers", "attention", "feed-forward"])
def test_no_token_before_the_change_has_an_effect(what):
    exact = patched("gpt", what).effects[""].exact  # (L, T)
    assert np.abs(exact[:, :CHANGED]).max() == 0
    assert (
        np.abs(exact[:-1, CHANGED : OUTPUT.position + 1]).min() > 0
    )  # after the last layer nothing is mixed
    assert np.abs(exact[:, OUTPUT.position + 1 :]).max() == 0


@pytest.mark.parametrize("name", [name for name in MODELS if name != "shipped"])  # which would take seconds
@pytest.mark.parametrize("what", ACTIVATIONS)
def test_the_first_order_is_the_derivative_along_the_patch(name, what):
    """The exact effect of a patch that is a thousandth of the way, a thousand times."""
    model = MODELS[name]().astype(np.float64)
    ids, other = texts_of(model)
    embedding = (model.embedding if hasattr(model, "embedding") else model.source).tokens
    here, there = ids[0][0, CHANGED], other[0][0, CHANGED]  # `there` stands nowhere else
    whole = patched(name, what, model)
    # a text whose changed token is nearly the first one
    weight = embedding.weight.value
    weight[there] = weight[here] + 1e-3 * (weight[there] - weight[here])
    near = patched(name, what, model)
    assert whole.effects.keys() == near.effects.keys()
    for effects in near.effects.values():
        scale = np.abs(effects.exact).max()
        np.testing.assert_allclose(effects.first_order, effects.exact, atol=3e-2 * scale)


def test_the_only_head_at_all_tokens_is_its_attention_at_all_tokens():
    model = GPT(GPTConfig(vocab_size=17, d_model=16, n_layers=1, n_heads=1, context=12), dtype=np.float64)
    found = patched("", "heads", model).effects[""]
    by_token = patched("", "attention", model).effects[""]
    assert found.columns == ["head 0"]
    # the score depends on the attention of its own token alone, after which nothing mixes tokens
    assert found.exact[0, 0] == pytest.approx(by_token.exact[0, OUTPUT.position], abs=1e-12)


def test_more_places_than_a_batch(monkeypatch):
    whole = patched("gpt", "layers").effects[""].exact
    monkeypatch.setattr("npformer.lenses.patching.BATCH", 4)
    np.testing.assert_allclose(patched("gpt", "layers").effects[""].exact, whole, atol=1e-5)


@pytest.mark.parametrize(
    ("n", "words"), [(5, "have 6 and 5 tokens: .* the same number of tokens"), (6, "are the same tokens")]
)
def test_texts_that_cannot_be_compared(n, words):
    model = MODELS["gpt"]()
    (ids,) = ids_of(model)
    with pytest.raises(UserError, match=words):
        patching_of(model, [ids], [ids[:, :n]], OUTPUT, None, tokens=[list("abcdef")], labels=("a", None))


def test_an_unknown_activation():
    with pytest.raises(
        UserError, match=r"^what is 'x': choose one of layers, attention, feed-forward, heads$"
    ):
        patched("gpt", "x")


def table(difference):
    effects = Effects(["layer 0", "layer 1"], ["a", "猫"], np.array([[0.5, -0.25], [1, 0]]), np.zeros((2, 2)))
    found = Patching("x", None, 0, 1.0, 1.0 + difference, {"": effects})
    assert not text_problems(replace(found, target="$$").plot())
    return found.table().splitlines()


def test_the_table_is_in_percent_of_the_difference():
    assert table(2.0) == [
        "logit of 'x': +1.000 for the text, +3.000 for the other one",
        "effect of each patch in each layer, in percent of the difference",
        "",
        "layer    0   1",
        "a       25  50",
        "猫     -12   0",
    ]
