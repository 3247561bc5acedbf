"""The logit lens: a layer's predictions are those of a model without the layers after it."""

import numpy as np
import pytest
from family_models import CONFIGS, random_model
from lens_models import GPT_SIZES, MODELS, ids_of

from npformer import UserError
from npformer.functional.softmax import softmax
from npformer.lenses.attribution import Attributions
from npformer.lenses.logit_lens import Lens, layer_logits, lens_of
from npformer.lenses.patching import patching_of
from npformer.lenses.taps import Output, last_stack, watchable
from npformer.models.gpt import GPTConfig
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator

every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_a_layer_predicts_as_a_model_that_ends_after_it(name):
    model, ids = MODELS[name](), ids_of(MODELS[name]())
    rows = list(layer_logits(model, ids))
    assert np.array_equal(rows[-1], model(*ids)[0])  # to the bit
    for count, row in enumerate(rows):
        shorter = watchable(model)
        last_stack(shorter).layers = last_stack(shorter).layers[:count]
        assert np.array_equal(row, shorter(*ids)[0])


@pytest.mark.parametrize("family", [family for family in CONFIGS if "head" not in family and family != "vit"])
def test_the_last_row_is_the_output_of_models_of_every_family(family):
    model = random_model(CONFIGS[family])
    ids = ids_of(model)
    assert np.array_equal(list(layer_logits(model, ids))[-1], model(*ids)[0])


def test_what_is_kept():
    model = MODELS["gpt"]()
    ids = ids_of(model)
    found = lens_of(model, ids, list("abcdef"), lambda token: f"<{token}>", k=3)
    p = softmax(model(*ids))[0][0]  # (T, V)
    for position in range(6):
        order = np.argsort(-p[position])[:3]
        assert found.ids[-1, position].tolist() == order.tolist()
        assert found.predictions[-1][position] == [f"<{token}>" for token in order]
        np.testing.assert_allclose(found.probabilities[-1, position], p[position, order], rtol=1e-6)
    assert found.rows == ["embedding", "layer 0", "layer 1", "layer 2"]
    assert repr(found) == "<lens: 3 layers, 6 tokens>"


FOUR = Lens(
    tokens=["a", " b", "c"],
    predictions=[[["x"], ["y"], ["z"]], [["x"], ["q"], ["z"]], [["x"], ["y"], ["w"]], [["x"], ["y"], ["z"]]],
    ids=np.array([[[1], [2], [3]], [[1], [4], [3]], [[1], [2], [5]], [[1], [2], [3]]]),
    probabilities=np.full((4, 3, 1), 0.25),
)


def test_the_row_that_decides_is_the_first_after_the_last_change():
    assert FOUR.decided.tolist() == [0, 2, 3]


def test_the_table_tells_each_change():
    assert FOUR.table().splitlines() == [
        "reads  predicts  p     decided by  before",
        "a      x         0.25  embedding",
        "' b'   y         0.25  layer 1     y, q",
        "c      z         0.25  layer 2     z, w",
    ]
    assert FOUR.table(1).splitlines()[1:] == [
        "embedding  y 0.25",
        "layer 0    q 0.25",
        "layer 1    y 0.25",
        "layer 2    y 0.25",
    ]


@pytest.mark.parametrize("position", [-1, 3])
def test_there_is_no_such_position(position):
    with pytest.raises(UserError, match=rf"^position is {position}: there are 3 positions, counted from 0$"):
        FOUR.table(position)


def test_a_model_without_such_layers():
    model = RecurrentTranslator(RecurrentConfig(source_vocab=9, target_vocab=9, d_model=4))
    with pytest.raises(UserError, match=r"and this is a RecurrentTranslator: give another model$"):
        next(layer_logits(model, [np.array([[1, 2]]), np.array([[1]])]))


def explanations(model, ids):
    """Yield a function for each way to explain what a model predicts, the lens, attribution and patching."""
    labels = {"tokens": [["a", "b"]], "labels": ("a", None)}
    yield lambda: lens_of(model, ids, ["a", "b"], str)
    yield lambda: Attributions(model, ids)
    yield lambda: patching_of(model, ids, [ids[0] + 1], Output(1, 2), None, **labels)


def test_logits_that_are_not_finite_are_refused():
    model = MODELS["gpt"]()
    model.parameters()[0].value[...] = np.nan
    for explain in explanations(model, [np.array([[1, 2]])]):
        with pytest.raises(UserError, match="the model's logits are not finite"):
            explain()


@pytest.mark.parametrize("family", ["vit", "bert with classes of texts", "gpt without a head"])
def test_a_model_without_logits_of_tokens_is_refused(family):
    config = CONFIGS.get(family) or GPTConfig(**GPT_SIZES, head=False)
    model, ids = random_model(config), [np.array([[1, 2]])]
    for explain in explanations(model, ids):
        with pytest.raises(UserError, match="computes no logits of tokens"):
            explain()
