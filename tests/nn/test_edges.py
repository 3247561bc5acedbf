"""Sizes that are no whole numbers, and sequences without positions: one sentence, or the empty result."""

from functools import partial
from inspect import isclass, signature

import numpy as np
import pytest

from npformer import functional as F
from npformer import nn
from npformer.errors import UserError
from npformer.functional.tutorial_masks import Masking
from npformer.nn.attention.tutorial import TutorialAttention

# what these layers need besides their sizes
WITH = {
    nn.MultiHeadLatentAttention: {"rotary": nn.RotaryPositions(3, 3, rotated=2)},
    nn.LoRALinear: {"layer": nn.Linear(2, 2)},
    nn.Similarity: {"kind": "perceptron"},
}


def sizes_of(kind):
    """Return the names of the sizes of a class, and those of them that have no default."""
    parameters = signature(kind).parameters.values()
    sizes = [one for one in parameters if one.annotation in ("int", int, "int | None", int | None)]
    return [one.name for one in sizes], [one.name for one in sizes if one.default is one.empty]


# a Projection is a Linear, which speaks of n_in
LAYERS = (kind for kind in vars(nn).values() if isclass(kind) and issubclass(kind, nn.Module))
SIZED = [kind for kind in LAYERS if sizes_of(kind)[1] and kind is not nn.Projection]


@pytest.mark.parametrize("wrong", [2.0, 2.5, 0, -2, "2", True, [2], np.float32(2)], ids=repr)
@pytest.mark.parametrize("kind", SIZED, ids=lambda kind: kind.__name__)
def test_every_size_is_a_whole_number_of_1_or_more(kind, wrong):
    names, needed = sizes_of(kind)
    right = dict.fromkeys(needed, 2) | WITH.get(kind, {})
    kind(**right)
    for name in names:
        if name != "zero_id":
            with pytest.raises(UserError, match=f"^{name} is .*: it must be a whole number, 1 or more$"):
                kind(**right | {name: wrong})


@pytest.mark.parametrize("wrong", ["8", 2.5, -1, 9, True])
def test_the_id_whose_vector_is_0_is_in_the_table(wrong):
    with pytest.raises(UserError, match=f"^zero_id is {wrong!r}: there are 9 ids, counted from 0"):
        nn.Embedding(9, 4, zero_id=wrong)
    assert not nn.Embedding(9, 4, zero_id=8).weight.value[8].any()


def test_no_queries_have_no_results_and_no_gradients():
    layer = nn.MultiHeadAttention(8, 2)
    memory = np.ones((2, 3, 8), np.float32)
    y, cache = layer.forward(memory[:, :0], memory, memory)
    assert y.shape == (2, 0, 8)
    for gradient in layer.backward(y, cache):
        assert not gradient.any()


@pytest.mark.parametrize(
    "function", [F.softmax, F.log_softmax, lambda x: F.cross_entropy(x, np.zeros(2, int))]
)
def test_rows_without_entries_are_refused(function):
    with pytest.raises(
        UserError, match=r"at least one entry in each row, and got an array of shape \(2, 0\)"
    ):
        function(np.zeros((2, 0)))


X = np.random.default_rng(0).standard_normal((2, 5, 8))
F64 = {"dtype": np.float64}
LATENT = F64 | {"rotary": nn.RotaryPositions(9, 6, rotated=2, **F64)}
# the layers, with what forward takes
LAYERS = {
    "Linear": (nn.Linear(8, 4, **F64), X),
    "LoRALinear": (nn.LoRALinear(nn.Linear(8, 4, **F64), 2), X),
    "MixtureOfExperts": (nn.MixtureOfExperts(8, 4, 3, **F64), X),
    "Similarity": (nn.Similarity("dot", 8, 8), X, X),
    "TiedProjection": (nn.TiedProjection(nn.Embedding(7, 8, **F64).weight), X),
    "Embedding": (nn.Embedding(7, 8, **F64), np.zeros((2, 5), int)),
    "InputEmbedding": (nn.InputEmbedding(7, 8, 9, **F64), np.zeros((2, 5), int)),
    "LayerNorm": (nn.LayerNorm(8, **F64), X),
    "RMSNorm": (nn.RMSNorm(8, **F64), X),
    "BatchNorm": (nn.BatchNorm(8, **F64), X),
    "AddNorm": (nn.AddNorm(8, **F64), X, X),
    "FeedForward": (nn.FeedForward(8, 16, **F64), X),
    "GatedFeedForward": (nn.GatedFeedForward(8, 16, **F64), X),
    "MultiHeadAttention": (nn.MultiHeadAttention(8, 2, **F64), X),
    "RelativeAttention": (nn.RelativeAttention(8, 2, **F64), X),
    "BucketedAttention": (nn.BucketedAttention(8, 2, **F64), X),
    "CappedAttention": (nn.CappedAttention(8, 2, **F64), X),
    "QKNormAttention": (nn.QKNormAttention(8, 2, **F64), X),
    "MultiHeadLatentAttention": (nn.MultiHeadLatentAttention(8, 2, d_latent=3, **LATENT), X),
    "SimilarityAttention": (nn.SimilarityAttention(8, 2, **F64), X),
    "LatentAttention": (nn.LatentAttention(8, 5, **F64), X),
    "BasicSelfAttention": (nn.BasicSelfAttention(), X),
    "GlobalAttention": (nn.GlobalAttention(nn.Similarity("dot", 8, 8)), X, X),
    "LocalMonotonic": (nn.LocalMonotonic(nn.Similarity("dot", 8, 8)), X, X),
    "LocalPredictive": (nn.LocalPredictive(nn.Similarity("dot", 8, 8), **F64), X, X),
    "HardAttention": (nn.HardAttention(nn.Similarity("dot", 8, 8)), X, X),
    "AttentionalState": (nn.AttentionalState(8, 8, **F64), X, X),
    "Recurrent": (nn.Recurrent(8, 6, **F64), X),
    "Bidirectional": (nn.Bidirectional(8, 6, **F64), X),
    "LearnedPositions": (nn.LearnedPositions(9, 8, **F64), 5),
    "RotaryPositions": (nn.RotaryPositions(9, 8, **F64), X[:, None]),
    "Dropout": (nn.Dropout(0.5), X, nn.Context(train=True, rng=np.random.default_rng(0))),
}


@pytest.mark.parametrize(
    "name", ["Linear", "TiedProjection", "LayerNorm", "RMSNorm", "FeedForward", "GatedFeedForward"]
)
def test_one_vector_is_a_row_without_other_axes(name):
    layer, x = LAYERS[name]
    np.testing.assert_allclose(layer(x[0, 0]), layer(x)[0, 0], rtol=1e-12)


NO_KEY, NO_ENTRY = "attention needs at least one key", "a softmax needs at least one entry in each row"
WITHOUT_TOKENS = {"MultiHeadAttention": NO_KEY, "SimilarityAttention": NO_ENTRY, "GlobalAttention": NO_ENTRY}
WITHOUT_TOKENS |= {"LocalMonotonic": NO_ENTRY, "HardAttention": NO_ENTRY}


@pytest.mark.parametrize("name", WITHOUT_TOKENS)
def test_a_memory_without_tokens_is_refused(name):
    with pytest.raises(UserError, match=WITHOUT_TOKENS[name]):
        LAYERS[name][0].forward(X, X[:, :0])


@pytest.mark.parametrize(
    "name", ["RelativeAttention", "LatentAttention", "BasicSelfAttention", "Recurrent", "Bidirectional"]
)
def test_an_empty_sentence_is_refused(name):
    with pytest.raises(UserError, match="needs at least one"):
        LAYERS[name][0].forward(X[:, :0])


WRONG = {
    "an axis less": lambda y: np.ones(y.shape[:-1]),
    "wider": lambda y: np.ones((*y.shape[:-1], y.shape[-1] + 1)),
    "a number": lambda y: 1.0,
    "one entry": lambda y: np.ones(1),
    "nothing": lambda y: None,
    "a list": lambda y: y.tolist(),
    "integers": lambda y: np.ones(y.shape, int),
    "more sentences": lambda y: np.ones((3, *y.shape[1:])),
    "one sentence for all": lambda y: np.ones((1, *y.shape[1:])),
}


NOT_FITTING = {  # an input, and what is said of it
    "narrower": (lambda x: x[..., :-1], r"\w+ of shape \(.*\) and got \("),
    "without axes": (lambda x: np.array(x.ravel()[0]), r"\w+ of shape \(.*\) and got \(\)"),
    "a list": (lambda x: x.tolist(), r"an array and \w+ is a list: convert it with np\.array"),
    "nothing": (lambda x: None, r"an array and \w+ is a NoneType"),
    "of another kind": (
        lambda x: x.astype(float if x.dtype.kind == "i" else int),
        r"(floats|integers) and \w+ has dtype",
    ),
    "truth values": (lambda x: x > 0, r"(floats|integers) and \w+ has dtype bool"),
}
ANY_SHAPE = {"narrower": ("Embedding", "InputEmbedding", "BasicSelfAttention", "Dropout")}
ANY_SHAPE["without axes"] = ("Embedding", "Dropout")


@pytest.mark.parametrize("wrong", NOT_FITTING)
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "LearnedPositions"])
def test_forward_says_in_one_sentence_what_is_wrong_with_each_input(name, wrong):
    (layer, *inputs), (change, sentence) = LAYERS[name], NOT_FITTING[wrong]
    if name not in ANY_SHAPE.get(wrong, ()):
        for index, x in enumerate(inputs):
            if isinstance(x, np.ndarray):
                with pytest.raises(UserError, match=rf"^({name}|Recurrent) takes {sentence}"):
                    layer.forward(*inputs[:index], change(x), *inputs[index + 1 :])


@pytest.mark.parametrize("name", [n for n in LAYERS if "mask" in signature(LAYERS[n][0].forward).parameters])
def test_a_mask_fits_the_tokens_and_is_no_mask_without_padding(name):
    layer, *inputs = LAYERS[name]
    for wrong in (np.ones((2, 5), int), np.ones((3, 5), bool), np.ones((2, 4), bool)):
        with pytest.raises(UserError, match=r"^mask "):
            layer.forward(*inputs, mask=wrong)
    shape = (2, 1, 1, 5) if isinstance(layer, nn.MultiHeadAttention) else (2, 1, 5)
    if not isinstance(layer, nn.MultiHeadAttention | nn.BasicSelfAttention):
        shape = (2, 5)
        with pytest.raises(UserError, match=r"^mask has shape \(5,\) and the tokens \(2, 5\)"):
            layer.forward(*inputs, mask=np.ones(5, bool))
    y, masked = layer.forward(*inputs)[0], layer.forward(*inputs, mask=np.ones(shape, bool))[0]
    np.testing.assert_allclose(masked, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("kind", "given", "setting", "source"),
    [
        (nn.CappedAttention, (8, 2), "cap", 50),  # Gemma 2
        (nn.QKNormAttention, (8, 2), "eps", 1e-6),  # Qwen3
        (nn.RelativeAttention, (8, 2), "max_distance", 16),  # Shaw et al. 2018
        (nn.LocalMonotonic, (nn.Similarity("dot", 8, 8),), "reach", 10),  # Luong et al. 2015
        (nn.LocalPredictive, (nn.Similarity("dot", 8, 8),), "reach", 10),
    ],
)
def test_the_default_of_a_setting_is_that_of_its_source(kind, given, setting, source):
    assert getattr(kind(*given), setting) == source


def test_linear_maps_have_a_bias_unless_they_are_told_otherwise():
    layers = [nn.Linear(8, 4), nn.Projection(8, [4], [2]), nn.FeedForward(8, 4), nn.MultiHeadAttention(8, 2)]
    for layer in layers:
        names = {name for name, _ in layer.named_parameters()}
        assert {name.replace("weight", "bias") for name in names if name.endswith("weight")} < names


@pytest.mark.parametrize("kind", ["MultiHead", "Relative", "Bucketed", "Capped", "Similarity", "Tutorial"])
def test_scores_are_divided_by_the_root_of_the_width_of_a_head(kind):
    tutorial = partial(TutorialAttention, masking=Masking())
    kind = tutorial if kind == "Tutorial" else getattr(nn, f"{kind}Attention")
    scaled, plain = (kind(8, 2, scale=s, rng=np.random.default_rng(0), **F64) for s in (True, False))
    plain.query.weight.value[...] /= 2  # √4
    np.testing.assert_allclose(plain(3 * X), scaled(3 * X), rtol=1e-12)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", LAYERS)
def test_backward_says_in_one_sentence_what_is_wrong_with_dy(name, wrong):
    layer, *inputs = LAYERS[name]
    y, cache = layer.forward(*inputs)
    y = np.stack([y, y]) if name == "LearnedPositions" else y  # dy has an axis for the sentences
    if name in ("LearnedPositions", "RotaryPositions") and "sentence" in wrong:
        return  # any number of them
    with pytest.raises(UserError, match=rf"^({name}|Linear|Embedding)\.backward takes .*dy (of|is|has) "):
        layer.backward(WRONG[wrong](y), cache)
    layer.backward(np.ones(y.shape), cache)
