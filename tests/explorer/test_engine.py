"""The explorer's engine in a browser: all its numbers, forward and backward, are those of the package."""

import math
import random
from dataclasses import fields

import numpy as np
import pytest
from engine_page import check, check_slopes, check_terms, open_engine
from pass_record import PassRecord, compare
from tiny import tiny_model

from npformer.data.dataset import builtin_dataset
from npformer.explorer.code_lines import code_of_steps
from npformer.explorer.model_data import explorer_name
from npformer.generation.greedy import greedy
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.training.optimizer import Adam

pytestmark = pytest.mark.browser

# source, target_in and target_out of one pair of sentences
PAIR = ([4, 5, 6, 7, 10, 3], [2, 4, 7, 5, 8], [4, 7, 5, 8, 3])
PADDED = ([8, 9, 3, 0, 0], [2, 6, 4, 5, 0, 0], [6, 4, 5, 3, 0, 0])

PRE = {"norm": "pre", "final_norm": True}
SHARED = {"source_vocab": 11, "target_vocab": 11}
RELATIVE = {"positions": "relative", "max_distance": 2}

# the settings that change what is computed, each with every value, and those that act on each other together
OPTIONS = {
    "the paper's order": {},
    "post-norm with a final norm": {"final_norm": True, "norm_eps": 0.01},
    "pre-norm": PRE,
    "norm before and after the sum": {"norm": "n-dan"},
    "norm around the sublayer": {"norm": "n-dna", "final_norm": True},
    "post-norm as a sequence": {"norm": "-dan"},
    "norm of the output": {"norm": "-dna", "final_norm": True},
    "output tied": {"tied": "output"},
    "all tied": {"tied": "all", **SHARED, "output_bias": True},
    "untied with a bias": {"output_bias": True},
    "no smoothing": {"label_smoothing": 0.0},
    "much smoothing": {"label_smoothing": 0.5},
    "no activation": {"activation": "none"},
    "gelu": {"activation": "gelu", "projection_activation": "swish"},
    "gelu_tanh": {"activation": "gelu_tanh", "projection_activation": "gelu_tanh"},
    "swish": {"activation": "swish", "projection_activation": "gelu"},
    "activated projections": {"projection_activation": "relu"},
    "unscaled embeddings": {"scale_embedding": False},
    "zero padding": {"zero_padding": True},
    "halves": {"positions": "halves"},
    "jianshu": {"positions": "jianshu"},
    "marian, padding starts": {"positions": "marian", "start_id": 0, "query_masking": "after"},
    "learned positions": {"positions": "learned"},
    "relative positions": RELATIVE,
    "relative positions, unscaled and fused": {
        **RELATIVE, **PRE, "scale_scores": False, "fused_projections": True, "d_value": 3
    },
    "no positions": {"positions": "none"},
    "narrow heads": {"d_head": 3, "d_value": 5},
    "one head": {"n_heads": 1, "n_layers": 1},
    "fused projections": {"fused_projections": True, "d_value": 2, "projection_activation": "relu"},
    "no attention bias": {"attention_bias": False},
    "no attention output": {"attention_output": False},
    "unscaled scores": {"scale_scores": False},
    "finite fill": {"mask_fill": -1e9},
    "small fill": {"mask_fill": -3.0, "query_masking": "before"},
    "added mask": {"mask_fill": -3.0, "masking_how": "add"},
    "masked queries": {"query_masking": "after"},
}  # fmt: skip

# sizes; ids, of which the test of marian changes one; dropout, whose tests are apart
OTHER_SETTINGS = {
    "source_vocab", "target_vocab", "d_model", "d_ff", "max_length", "pad_id", "end_id",
    "dropout", "embedding_dropout", "attention_dropout", "feed_forward_dropout",
}  # fmt: skip

HEADS = {"encoder.1.self_attention": [0], "decoder.0.cross": [1], "decoder.1.self_attention": [0, 1]}

# every query of the decoder's first layer attends to the future, and the source's third token to nothing
CELLS = {
    "decoder.0.self_attention": [[t, s, True] for t in range(5) for s in range(5)],
    "encoder.0.self_attention": [[2, s, False] for s in range(5)],
    "decoder.1.cross": [[0, 1, False], [3, 0, False]],
}


OF_A_GPT = {"rotate", "rrms", "scale_rows"}  # which test_engine_gpt.py covers

WITH_ALL_OPERATIONS = (
    "pre-norm", "all tied", "gelu", "gelu_tanh", "swish", "relative positions", "marian, padding starts",
    "added mask", "small fill", "learned positions", "zero padding",
)  # fmt: skip


@pytest.fixture(scope="module")
def engine(chromium):
    with open_engine(chromium) as opened:
        yield opened


@pytest.fixture(scope="module")
def corpus():
    return builtin_dataset()


def tiny(**changes):
    """Return a tiny model whose vectors of padding are not 0, as training may leave them."""
    model = tiny_model(**changes)
    for layer in (model.source, model.target):
        layer.tokens.weight.value[0] = 0.5
    return model


def started(ids, model):
    """Return the ids with the start symbol of the model."""
    source, target_in, target_out = ids
    return source, [model.config.start_id, *target_in[1:]], target_out


def model_of(corpus, **changes):
    """Return a tiny model with the vocabularies of the corpus."""
    sizes = {"source_vocab": len(corpus.source.vocabulary), "target_vocab": len(corpus.target.vocabulary)}
    if changes.get("tied") == "all":
        sizes = dict.fromkeys(sizes, max(sizes.values()))
    return tiny(**changes | sizes | {"max_length": 64})


def example(dataset, index):
    """Return source, target_in and target_out of an example of the dataset."""
    source, target = dataset.test[index]
    return [*source, 3], [2, *target], [*target, 3]


@pytest.mark.parametrize("ids", [PAIR, PADDED], ids=["pair", "padded"])
@pytest.mark.parametrize("name", OPTIONS)
def test_all_arrays_are_those_of_the_package(engine, name, ids):
    model = tiny(**OPTIONS[name])
    engine.make(model)
    ids = started(ids, model)
    check(engine, PassRecord(model, ids), ids)


def test_options_vary_every_setting():
    varied = {setting for options in OPTIONS.values() for setting in options}
    assert {field.name for field in fields(TransformerConfig)} == varied | OTHER_SETTINGS | {"start_id"}


def test_record_holds_every_array_of_the_caches_and_every_parameter():
    """What is compared is complete: the numbers of arrays of the small pre-norm model, counted by hand."""
    record = PassRecord(tiny(**PRE), PAIR)
    attention = ["projections.0.x", "projections.1.x", "projections.2.x"]
    attention += [f"attention.{name}" for name in ("q", "k", "v", "weights")] + ["output.x"]
    norm = ["norm.xhat", "norm.rstd"]
    network = ["inner.x", "hidden.y", "outer.x"]
    expected = {"source.y", "target.y", "output.x", "encoder.norm.xhat", "decoder.norm.rstd"}
    for layer in (f"{stack}.{i}" for stack in ("encoder", "decoder") for i in range(2)):
        expected |= {f"{layer}.self_attention.{name}" for name in attention}
        expected |= {f"{layer}.self_residual.{name}" for name in norm}
        expected |= {f"{layer}.feed_forward.{name}" for name in network}
        expected |= {f"{layer}.feed_forward_residual.{name}" for name in norm}
        if layer.startswith("decoder"):
            expected |= {f"{layer}.cross.{name}" for name in attention}
            expected |= {f"{layer}.cross_residual.{name}" for name in norm}
    expected |= {explorer_name(name) for name, _ in tiny(**PRE).named_parameters()}
    assert expected <= record.values.keys()
    assert expected <= record.grads.keys()


@pytest.mark.slow
def test_twenty_sentences_of_the_corpus(engine, corpus):
    """The paper's order computes all of them, and every other option one of them."""
    for number, changes in enumerate(OPTIONS.values()):
        model = model_of(corpus, **changes)
        engine.make(model)
        for index in range(20) if number == 0 else [number % 20]:
            ids = started(example(corpus, index), model)
            check(engine, PassRecord(model, ids), ids)


@pytest.mark.slow
def test_configuration_of_the_tour(engine, corpus):
    config = TransformerConfig.architecture(
        "small", source_vocab=len(corpus.source.vocabulary), target_vocab=len(corpus.target.vocabulary)
    )
    model = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
    assert model.count_parameters() > 400_000
    engine.make(model)
    ids = example(corpus, 0)
    check(engine, PassRecord(model, ids), ids)


@pytest.mark.parametrize("name", ["the paper's order", "pre-norm", "relative positions", "fused projections"])
def test_switched_off_heads(engine, name):
    model = tiny(**OPTIONS[name])
    engine.make(model)
    check(engine, PassRecord(model, PAIR, heads=HEADS), PAIR, {"heads": HEADS})


@pytest.mark.parametrize("name", ["pre-norm", "finite fill", "small fill", "added mask", "masked queries"])
def test_changed_masks(engine, name):
    model = tiny(**OPTIONS[name])
    engine.make(model)
    check(engine, PassRecord(model, PAIR, masks=CELLS), PAIR, {"masks": CELLS})


def test_query_that_may_attend_to_nothing(engine):
    engine.make(tiny(**PRE))
    nothing = {"encoder.0.self_attention": [[2, s, False] for s in range(6)]}
    check(engine, PassRecord(tiny(**PRE), PAIR, masks=nothing), PAIR, {"masks": nothing})
    weights, dweights = engine.arrays()["encoder.0.self_attention.attention.weights"]
    assert not weights[:, 2].any()
    assert np.isfinite(dweights).all()


def test_changed_parameters_and_arrays(engine):
    """A value that the reader set depends on nothing before it, so it sends no gradient there."""
    model = tiny(**PRE)
    engine.make(model)
    arrays = {
        "encoder.0.self_attention.projections.1.y": [[3, 0.5], [20, -2.0]],
        "encoder.1.self_residual.norm.y": [[0, 1.5]],
        "decoder.0.feed_forward.outer.y": [[9, 0.0]],
        "decoder.norm.y": [[17, 3.0]],
    }
    parameters = {"encoder.0.self_attention.projections.0.weight": [[5, 1.0]], "output.weight": [[7, -1.0]]}
    model.encoder[0].self_attention.query.weight.value.reshape(-1)[5] = 1.0
    model.output.weight.value.reshape(-1)[7] = -1.0
    check(engine, PassRecord(model, PAIR, values=arrays), PAIR, {"values": arrays | parameters})


@pytest.mark.parametrize("changes", [{}, PRE, RELATIVE, {"activation": "gelu"}])
def test_dropout_with_the_same_masks(engine, changes):
    model = tiny(
        dropout=0.1, embedding_dropout=0.3, attention_dropout=0.25, feed_forward_dropout=0.4, **changes
    )
    engine.make(model)
    record = PassRecord(model, PAIR, rng=np.random.default_rng(0))
    masks = {path: mask for path, mask in record.values.items() if path.endswith("dropout_mask")}
    assert len(masks) == 2 + 2 * (2 + 1 + 1) + 2 * (3 + 2 + 1)  # embeddings, encoder layers, decoder layers
    dropped = {path: np.flatnonzero(mask.reshape(-1) == 0).tolist() for path, mask in masks.items()}
    check(engine, record, PAIR, {"dropout": dropped})


def test_changed_settings(engine):
    """The reader may change a setting that needs no other parameters."""
    engine.make(tiny(**PRE))
    changes = {"activation": "gelu", "scale_embedding": False, "label_smoothing": 0.0}
    check(engine, PassRecord(tiny(**PRE, **changes), PAIR), PAIR, {"settings": changes})


@pytest.mark.parametrize(("kind", "lr", "tolerance"), [("descent", 0.01, 1e-12), ("adam", 0.001, 1e-9)])
def test_five_steps(engine, kind, lr, tolerance):
    """Adam divides by the root of the squared gradients, which amplifies rounding where they are nearly 0."""
    model = tiny(**PRE, tied="output")
    optimizer = Adam(model)
    engine.make(model)
    engine.run(*PAIR)
    engine.call("update", kind, lr, 5)
    for _ in range(5):
        PassRecord(model, PAIR)
        if kind == "adam":
            optimizer.step(lr)
        else:
            model.values -= lr * model.grads
    compare(PassRecord(model, PAIR), engine.arrays(), tolerance)


@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_are_slopes(engine, name):
    """The gradient of any array, also of those that the package does not store, is the slope of the loss."""
    engine.make(tiny(**OPTIONS[name]))
    found = engine.call("slopes", *ids_and_edits(PADDED), 1e-5)
    assert len(found) > 100
    check_slopes(found)


def test_gradients_behind_changed_values_are_slopes(engine):
    engine.make(tiny(**PRE))
    changed = {
        "source.y": [[3, 0.1]],
        "encoder.0.self_residual.norm.mean": [[0, 0.3], [1, -0.2]],
        "encoder.1.self_residual.norm.rstd": [[1, 2.0]],
        "decoder.0.cross.attention.softmax": [[0, 0.7], [7, 0.2]],
        "decoder.1.feed_forward.hidden.activated": [[5, -1.0], [6, 1.0]],
        "loss.log_probs": [[4, -1.0]],
    }
    check_slopes(engine.call("slopes", *ids_and_edits(PADDED, {"values": changed}), 1e-5))


def ids_and_edits(ids, edits=None):
    source, target_in, target_out = ids
    return {"source": source, "targetIn": target_in, "targetOut": target_out}, edits or {}


def test_terms_add_up_to_the_number(engine):
    """1,000 numbers at random, forward and backward, of models with all operations between them."""
    rng, seen, numbers = random.Random(0), set(), 0
    edits = {
        "heads": HEADS,
        "masks": CELLS,
        "dropout": {"encoder.0.self_residual.dropout_mask": [3, 4]},
        "values": {"decoder.0.self_residual.norm.xhat": [[4, 1.0]], "loss.log_probs": [[5, -1.0]]},
    }
    for name in WITH_ALL_OPERATIONS:
        engine.make(tiny(**OPTIONS[name]))
        engine.call("run", *ids_and_edits(PADDED, edits))
        steps = engine.call("steps")
        seen |= {step["op"] for step in steps}
        places = []
        for _ in range(100):
            step = rng.choice(steps)
            index, direction = rng.randrange(math.prod(step["shape"])), rng.choice(("forward", "backward"))
            places.append((step["path"], index, direction))
        for place, found in zip(places, engine.call("terms", places), strict=True):
            check_terms(place, found)
            numbers += 1
    assert numbers > 1000
    assert seen | OF_A_GPT == {*engine.call("operations"), "parameter", "constant"}


def test_every_line_has_its_code(engine):
    lines = set()
    for name in OPTIONS:
        engine.make(tiny(**OPTIONS[name]))
        edits = {"heads": HEADS, "dropout": {"source.dropout_mask": [1]}}
        engine.call("run", *ids_and_edits(PAIR, edits))
        lines |= set(engine.call("lines"))
    assert lines <= code_of_steps().keys()


@pytest.mark.parametrize("name", ["the paper's order", "pre-norm", "marian, padding starts"])
def test_greedy_translation(engine, name):
    model = tiny(**OPTIONS[name])
    engine.make(model)
    engine.run(*PAIR)
    before = engine.arrays()
    for source in (PAIR[0], [8, 9, 3], [5, 3]):
        assert engine.call("greedy", source, {}) == greedy(model, np.array([source]))[0]
    # a translation changes no array of the last run, in particular no gradient
    after = engine.arrays()
    assert all(np.array_equal(after[path], before[path], equal_nan=True) for path in before)


def test_error_function(engine):
    numbers = [0.0, 1e-9, -0.1, 0.5, -1.0, 1.7, 2.5, -3.3, 4.8, 5.9, 6.1, -30.0]
    assert engine.call("erf", numbers) == pytest.approx([math.erf(x) for x in numbers], abs=1e-15, rel=4e-15)
