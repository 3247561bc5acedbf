"""The models that read if-then recipes: padding, the influence of word order, sizes, mistakes."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.functional.latent import MEASURES, ORIENTATIONS
from npformer.models.if_then import BagOfWords, ProgramLoss, RecipeReader

IDS = np.array([[4, 5, 6, 5, 8], [7, 4, 6, 0, 0]])
TRIGGERS, ACTIONS = np.array([2, 0]), np.array([1, 3])
MODELS = {"latent": RecipeReader, "bag": BagOfWords}
every_model = pytest.mark.parametrize("kind", MODELS)


def make_model(kind, dtype=np.float64, **settings):
    """Return a small model for 9 tokens, 3 triggers and 4 actions, with biases that are not 0."""
    settings |= {"d_hidden": 4} if kind == "latent" else {}
    model = MODELS[kind](
        9, 3, 4, d_model=6, max_length=7, rng=np.random.default_rng(1), dtype=dtype, **settings
    )
    model.values += 0.1 * np.random.default_rng(2).standard_normal(model.values.shape).astype(dtype)
    return model


@every_model
def test_padding_changes_nothing(kind):
    model = make_model(kind)
    program, _ = model.forward(IDS)
    alone, _ = model.forward(IDS[1:, :3])
    further, _ = model.forward(np.pad(IDS, ((0, 0), (0, 2))))
    for padded, short, long in zip(program, alone, further, strict=True):
        np.testing.assert_allclose(padded[1:], short, rtol=1e-12)
        np.testing.assert_allclose(long, padded, rtol=1e-12)


@pytest.mark.parametrize("ids", [[[4]], [[4, 5, 5, 0]]], ids=["one word", "three words"])
def test_a_bag_is_the_mean_of_its_words(ids):
    model = make_model("bag")
    words = [word for word in ids[0] if word]
    mean = model.tokens.weight.value[words].mean(0, keepdims=True)
    program, _ = model.forward(np.array(ids))
    for logits, answer in zip(program, (model.trigger, model.action), strict=True):
        np.testing.assert_allclose(logits, answer(mean), rtol=1e-12)


@every_model
def test_the_embedding_of_padding_is_not_learned(kind):
    model = make_model(kind)
    loss = ProgramLoss(model)
    _, cache = loss.forward(IDS, TRIGGERS, ACTIONS)
    loss.backward(1.0, cache)
    assert (model.tokens.weight.grad[0] == 0).all()
    assert (model.tokens.weight.grad[[4, 5, 6, 7, 8]] != 0).any(-1).all()


@pytest.mark.parametrize(("name", "values"), [("orientation", ORIENTATIONS), ("measure", MEASURES)])
def test_the_settings_of_latent_attention_have_an_effect_on_both_answers(name, values):
    one, other = (make_model("latent", **{name: value}).forward(IDS)[0] for value in values)
    for logits, others in zip(one, other, strict=True):
        assert np.abs(logits - others).max() > 1e-4


def test_the_default_sizes():
    model = RecipeReader(9, 3, 4)
    assert model.tokens.weight.shape == (9, 32)
    assert model.trigger.attention.active_weight.shape == (2 * 32, 25)
    assert model.count_parameters() > RecipeReader(9, 3, 4, cell="gru").count_parameters()  # 4 gates, and 3
    bag = BagOfWords(9, 3, 4)
    assert bag.trigger.weight.shape == (32, 3)
    assert bag.max_length == 25


@every_model
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[4, 9]], r"ids\[0, 1\] is 9, outside the vocabulary of 9 tokens"),
        ([[4] * 8], "ids is 8 tokens long and the model's limit is 7"),
        ([[]], "give at least one sentence, of at least one token"),
        ([[4], [4, 5]], "ids holds lists that differ in length"),
    ],
)
def test_invalid_inputs_are_refused(kind, ids, message):
    ids = ids if len(ids) > 1 else np.array(ids, int)
    with pytest.raises(UserError, match=message):
        make_model(kind).forward(ids)
