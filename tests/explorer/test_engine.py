"""The explorer's engine in a browser: all its numbers, forward and backward, are those of the package."""

import math
import os
import random
import re
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
from engine_page import check, check_slopes, check_terms, open_engine
from pass_record import NO_TARGET, PassRecord, compare
from tiny import tiny_model

from npformer.data.dataset import builtin_dataset
from npformer.explorer.code_lines import code_of_steps
from npformer.explorer.model_data import explorer_name
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.generation.greedy import greedy
from npformer.models.gpt import CHOICES, GPT, GPTConfig
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.training.optimizer import Adam

pytestmark = pytest.mark.browser

SENTENCES, PARTS = (20, 1) if os.environ.get("NPFORMER_NIGHTLY") else (2, 4)

# An encoder-decoder Transformer: source, target_in and target_out of one pair of sentences

PAIR = ([4, 5, 6, 7, 10, 3], [2, 4, 7, 5, 8], [4, 7, 5, 8, 3])
PADDED = ([8, 9, 3, 0, 0], [2, 6, 4, 5, 0, 0], [6, 4, 5, 3, 0, 0])

PRE = {"norm": "pre", "final_norm": True}
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
    "all tied": {"tied": "all", "source_vocab": 11, "target_vocab": 11, "output_bias": True},
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
    "source_vocab", "target_vocab", "d_model", "d_ff", "max_length", "pad_id", "start_id", "end_id",
    "decoder_layers", "dropout", "embedding_dropout", "attention_dropout", "feed_forward_dropout",
}  # fmt: skip

HEADS = {"encoder.1.self_attention": [0], "decoder.0.cross": [1], "decoder.1.self_attention": [0, 1]}

# every query of the decoder's first layer attends to the future, and the source's third token to nothing
CELLS = {
    "decoder.0.self_attention": [[t, s, True] for t in range(5) for s in range(5)],
    "encoder.0.self_attention": [[2, s, False] for s in range(5)],
    "decoder.1.cross": [[0, 1, False], [3, 0, False]],
}
VALUES = {
    "encoder.0.self_attention.projections.1.y": [[3, 0.5], [20, -2.0]],
    "encoder.1.norm1.y": [[0, 1.5]],
    "decoder.0.feed_forward.outer.y": [[9, 0.0]],
    "decoder.norm.y": [[17, 3.0]],
}


def tiny(**changes):
    """Return a tiny model whose vectors of padding are not 0, as training may leave them."""
    model = tiny_model(**changes)
    for layer in (model.source, model.target):
        layer.tokens.weight.value[0] = 0.5
    return model


# A GPT: no source, a text, and the next token of each

TEXT = [4, 5, 6, 7, 10, 3, 5, 5, 0]
SIZES = {"vocab_size": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "context": 12}

ROTARY = {"positions": "rotary"}
LLAMA = {
    **ROTARY, "norm": "rms", "activation": "swiglu", "n_kv_heads": 2, "bias": False, "tied": False
}  # fmt: skip
# Llama's scaling acts on angles that turn around less than four times within the original context
SCALED = {"rotary_scaling": "llama3", "rotary_original_context": 30, "rotary_base": 100.0}

OPTIONS_OF_GPT = {
    "gpt2": {},
    "llama": LLAMA,
    "no biases": {"bias": False},
    "biases of queries, keys and values alone": {"bias": False, "qkv_bias": True},
    "biases elsewhere alone": {"qkv_bias": False},
    "rms norm": {"norm": "rms", "norm_eps": 0.01},
    "untied": {"tied": False},
    "a hidden width of its own": {"d_ff": 5},
    "a gated network with a width of its own": {"activation": "geglu", "d_ff": 6},
    "rotary, halves": {**ROTARY, "rotary_base": 50.0},
    "rotary, interleaved": {**ROTARY, "rotary_layout": "interleaved"},
    "rotary, scaled": {**ROTARY, **SCALED, "d_model": 32},
    "rotary, scaled otherwise": {
        **ROTARY, **SCALED, "d_model": 32, "rotary_factor": 3.0, "rotary_low_factor": 0.5,
        "rotary_high_factor": 2.0, "rotary_layout": "interleaved",
    },
    "grouped heads": {"n_kv_heads": 2},
    "one key head": {"n_kv_heads": 1, **ROTARY},
    "wide heads": {"head_dim": 6, "n_kv_heads": 2, **ROTARY},
    "narrow heads": {"head_dim": 1},
    "a single head": {"n_heads": 1, "n_layers": 1},
    "window": {"window": 3},
    "window of the token alone": {"window": 1, "n_kv_heads": 1},
    "smoothing": {"label_smoothing": 0.5},
    **{f"gpt with {name}": {"activation": name} for name in (*ACTIVATIONS, *GATED_ACTIVATIONS)},
}  # fmt: skip

# sizes; padding, which no text of the page has; dropout, whose test is apart
OTHER_SETTINGS_OF_GPT = {"vocab_size", "context", "pad_id", "dropout", "head"}

HEADS_OF_GPT = {"layers.0.self_attention": [1, 2], "layers.1.self_attention": [0]}
# every token attends to the future in the first layer, and the third token of the second layer to nothing
CELLS_OF_GPT = {
    "layers.0.self_attention": [[t, s, True] for t in range(9) for s in range(9)],
    "layers.1.self_attention": [[2, s, False] for s in range(9)],
}
VALUES_OF_GPT = {
    "layers.0.self_attention.projections.0.y": [[3, 0.5], [60, -2.0]],
    "layers.1.norm1.y": [[0, 1.5]],
    "layers.0.feed_forward.outer.y": [[9, 0.0]],
    "norm.y": [[17, 3.0]],
}


def tiny_gpt(seed=0, **changes):
    """Return a tiny GPT whose parameters are all drawn at random."""
    rng = np.random.default_rng(seed)
    model = GPT(GPTConfig(**SIZES | changes), rng=rng, dtype=np.float64)
    for parameter in model.parameters():
        parameter.value += rng.normal(0, 0.3, parameter.shape)
    return model


def of_text(text):
    """Return no source, the text, and the next token of each."""
    return [], list(text), [*text[1:], NO_TARGET]


# Both


class Kind(NamedTuple):
    """A kind of model: its options, how to make it, what it reads, and what a reader changes."""

    options: dict
    make: Any
    inputs: tuple
    heads: dict
    cells: dict
    values: dict


KINDS = {
    "transformer": Kind(OPTIONS, tiny, (PAIR, PADDED), HEADS, CELLS, VALUES),
    "gpt": Kind(OPTIONS_OF_GPT, tiny_gpt, (of_text(TEXT),), HEADS_OF_GPT, CELLS_OF_GPT, VALUES_OF_GPT),
}
every_option = pytest.mark.parametrize(
    ("kind", "option"), [(kind, option) for kind in KINDS for option in KINDS[kind].options]
)
every_kind = pytest.mark.parametrize("kind", KINDS)


def model_of(kind, option):
    return KINDS[kind].make(**KINDS[kind].options[option])


@pytest.fixture(scope="module")
def engine(chromium):
    with open_engine(chromium) as opened:
        yield opened


def started(ids, model):
    """Return the ids with the start symbol of the model, if it has one."""
    source, target_in, target_out = ids
    return (source, [model.config.start_id, *target_in[1:]], target_out) if source else ids


def verify(engine, model, ids, **edits):
    """Compare all arrays of a model, with edits of the reader."""
    engine.make(model)
    ids = started(ids, model)
    check(engine, PassRecord(model, ids, **edits), ids, edits)


def given(ids, edits=None):
    source, target_in, target_out = ids
    return {"source": source, "targetIn": target_in, "targetOut": target_out}, edits or {}


@every_option
def test_all_arrays_are_those_of_the_package(engine, kind, option):
    for ids in KINDS[kind].inputs:
        verify(engine, model_of(kind, option), ids)


@every_option
def test_gradients_are_slopes(engine, kind, option):
    """The gradient of any array, also of those that the package does not store, is the slope of the loss.

    Each option shows it for some of its arrays, and every night for all.
    """
    engine.make(model_of(kind, option))
    first = list(KINDS[kind].options).index(option) % PARTS
    found = engine.call("slopes", *given(KINDS[kind].inputs[-1]), 1e-5, first, PARTS)
    assert len(found) > 40 / PARTS
    # the table of positions of a GPT is not learned
    check_slopes([each for each in found if not each[0].startswith("positions.table")])


def test_options_vary_every_setting():
    for options, others, config in (
        (OPTIONS, OTHER_SETTINGS, TransformerConfig),
        (OPTIONS_OF_GPT, OTHER_SETTINGS_OF_GPT, GPTConfig),
    ):
        varied = {setting for changes in options.values() for setting in changes}
        assert {field.name for field in fields(config)} == varied | others
    for setting, choices in CHOICES.items():
        used = {changes.get(setting, getattr(GPTConfig(), setting)) for changes in OPTIONS_OF_GPT.values()}
        assert used == set(choices), setting


def test_the_record_holds_every_parameter_and_the_gradient_of_every_array():
    """What is compared is complete, but for constants, the loss and the inside of a gated activation."""
    for model, ids in ((tiny(**PRE), PAIR), (tiny_gpt(**LLAMA), of_text(TEXT))):
        record = PassRecord(model, ids)
        assert {explorer_name(name) for name, _ in model.named_parameters()} <= record.values.keys()
        assert len(record.values) > 80
        others = record.values.keys() - record.grads.keys()
        assert [path for path in others if not re.search(r"^loss|\.table$|\.gated\.", path)] == []


def test_sentences_of_the_corpus(engine):
    """A small model computes some of them, and one of the size of the tour."""
    corpus = builtin_dataset()
    sizes = {"source_vocab": len(corpus.source.vocabulary), "target_vocab": len(corpus.target.vocabulary)}
    pairs = [([*source, 3], [2, *target], [*target, 3]) for source, target in corpus.test[:SENTENCES]]
    for ids in pairs:
        verify(engine, tiny(**sizes, max_length=64), ids)
    config = TransformerConfig.architecture("small", **sizes)
    model = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
    assert model.count_parameters() > 400_000
    verify(engine, model, pairs[0])


@pytest.mark.parametrize("seed", range(SENTENCES))
def test_texts_at_random(engine, seed):
    rng = np.random.default_rng(seed)
    text = rng.integers(0, SIZES["vocab_size"], rng.integers(2, SIZES["context"] + 1)).tolist()
    verify(engine, tiny_gpt(seed, **LLAMA if seed % 2 else {}), of_text(text))


def test_a_gpt_of_a_usual_size(engine):
    config = GPTConfig.preset("gpt-shakespeare")
    model = GPT(config, rng=np.random.default_rng(0), dtype=np.float64)
    assert model.count_parameters() > 700_000
    text = np.random.default_rng(1).integers(0, config.vocab_size, 40).tolist()
    verify(engine, model, of_text(text))


# What a reader changes


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        *(("transformer", name) for name in ("pre-norm", "relative positions", "fused projections")),
        *(("transformer", name) for name in ("finite fill", "small fill", "added mask", "masked queries")),
        *(("gpt", name) for name in ("gpt2", "llama", "window")),
    ],
)
def test_heads_and_masks(engine, kind, option):
    """A switched-off head is one query head, also where several share the keys."""
    model, (ids, *_) = model_of(kind, option), KINDS[kind].inputs
    edits = {"heads": KINDS[kind].heads}, {"masks": KINDS[kind].cells}
    for each in (*edits, edits[0] | edits[1]):
        verify(engine, model, ids, **each)


def test_query_that_may_attend_to_nothing(engine):
    nothing = {"encoder.0.self_attention": [[2, s, False] for s in range(6)]}
    verify(engine, tiny(**PRE), PAIR, masks=nothing)
    weights, dweights = engine.arrays()["encoder.0.self_attention.attention.weights"]
    assert not weights[:, 2].any()
    assert np.isfinite(dweights).all()


@pytest.mark.parametrize(("kind", "option"), [("transformer", "pre-norm"), ("gpt", "gpt2"), ("gpt", "llama")])
def test_changed_arrays(engine, kind, option):
    """A value that the reader set depends on nothing before it, so it sends no gradient there."""
    verify(engine, model_of(kind, option), KINDS[kind].inputs[0], values=KINDS[kind].values)


def test_changed_parameters(engine):
    model = tiny(**PRE)
    engine.make(model)
    changed = {"encoder.0.self_attention.projections.0.weight": [[5, 1.0]], "output.weight": [[7, -1.0]]}
    model.encoder[0].self_attention.query.weight.value.reshape(-1)[5] = 1.0
    model.output.weight.value.reshape(-1)[7] = -1.0
    check(engine, PassRecord(model, PAIR), PAIR, {"values": changed})


def test_gradients_behind_changed_values_are_slopes(engine):
    engine.make(tiny(**PRE))
    changed = {
        "source.y": [[3, 0.1]],
        "encoder.0.norm1.mean": [[0, 0.3], [1, -0.2]],
        "encoder.1.norm1.rstd": [[1, 2.0]],
        "decoder.0.cross.attention.softmax": [[0, 0.7], [7, 0.2]],
        "decoder.1.feed_forward.hidden.activated": [[5, -1.0], [6, 1.0]],
        "loss.log_probs": [[4, -1.0]],
    }
    check_slopes(engine.call("slopes", *given(PADDED, {"values": changed}), 1e-5, 0, 1))


@pytest.mark.parametrize(
    ("kind", "changes", "count"),
    [
        # two embeddings, and of each layer the weights and the output of every attention, and the network
        *(("transformer", changes, 2 + 2 * 4 + 2 * 6) for changes in ({}, PRE, RELATIVE, OPTIONS["gelu"])),
        # the embedding, and in each layer the weights and two sublayers
        *(("gpt", changes, 1 + 2 * 3) for changes in ({}, LLAMA)),
    ],
)
def test_dropout_with_the_same_masks(engine, kind, changes, count):
    rates = {"dropout": 0.3}
    if kind == "transformer":
        rates |= {"embedding_dropout": 0.3, "attention_dropout": 0.25, "feed_forward_dropout": 0.4}
    model, (ids, *_) = KINDS[kind].make(**rates, **changes), KINDS[kind].inputs
    engine.make(model)
    record = PassRecord(model, ids, rng=np.random.default_rng(0))
    masks = {path: mask for path, mask in record.values.items() if path.endswith("dropout_mask")}
    assert len(masks) == count
    dropped = {path: np.flatnonzero(mask.reshape(-1) == 0).tolist() for path, mask in masks.items()}
    check(engine, record, ids, {"dropout": dropped})


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("transformer", {"activation": "gelu", "scale_embedding": False, "label_smoothing": 0.0}),
        ("gpt", {"activation": "relu", "window": 2, "label_smoothing": 0.1, "norm_eps": 0.1}),
    ],
)
def test_changed_settings(engine, kind, changes):
    """The reader may change a setting that needs no other parameters."""
    make, (ids, *_) = KINDS[kind].make, KINDS[kind].inputs
    engine.make(make())
    check(engine, PassRecord(make(**changes), ids), ids, {"settings": changes})


# Training, terms, code and output


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("transformer", {**PRE, "tied": "output"}), ("gpt", {"bias": False}), ("gpt", LLAMA)],
)
@pytest.mark.parametrize(("optimizer", "lr", "tolerance"), [("descent", 0.01, 1e-12), ("adam", 0.001, 1e-9)])
def test_five_steps(engine, optimizer, lr, tolerance, kind, changes):
    """Adam divides by the root of the squared gradients, which amplifies rounding where they are nearly 0.

    So the GPT has no biases: the gradients of those of its keys are rounding alone.
    """
    model, (ids, *_) = KINDS[kind].make(**changes), KINDS[kind].inputs
    engine.make(model)
    engine.run(*ids)
    engine.call("update", optimizer, lr, 5)
    adam = Adam(model)
    for _ in range(5):
        PassRecord(model, ids)
        if optimizer == "adam":
            adam.step(lr)
        else:
            model.values -= lr * model.grads
    compare(PassRecord(model, ids), engine.arrays(), tolerance)


def test_terms_add_up_to_the_number(engine):
    """1,000 numbers and more at random, forward and backward, of models with all operations between them."""
    rng, seen, numbers = random.Random(0), set(), 0
    more = {
        "dropout": {"encoder.0.add1.dropout_mask": [3, 4]},
        "values": {"decoder.0.norm1.xhat": [[4, 1.0]], "loss.log_probs": [[5, -1.0]]},
    }
    for kind, (options, make, (*_, ids), heads, cells, values) in KINDS.items():
        for name, changes in options.items():
            edits = {"heads": heads, "masks": cells} | (more if kind == "transformer" else {"values": values})
            engine.make(make(**changes))
            engine.call("run", *given(ids, edits if "n_layers" not in changes else {}))
            steps = engine.call("steps")
            seen |= {step["op"] for step in steps}
            places = []
            for _ in range(30):
                step, direction = rng.choice(steps), rng.choice(("forward", "backward"))
                index = rng.randrange(math.prod(step["shape"]))
                if step["op"] != "constant" or direction == "forward":  # a constant has no gradient
                    places.append((step["path"], index, direction))
            for place, found in zip(places, engine.call("terms", places), strict=True):
                check_terms((name, *place), found)
                numbers += 1
    assert numbers > 1000
    assert seen == {*engine.call("operations"), "parameter", "constant"}


@every_kind
def test_every_line_has_its_code(engine, kind):
    embedding, lines = "source" if kind == "transformer" else "embedding", set()
    for option, changes in KINDS[kind].options.items():
        engine.make(model_of(kind, option))
        edits = {"dropout": {f"{embedding}.dropout_mask": [1]}}
        if "n_layers" not in changes:
            edits["heads"] = KINDS[kind].heads
        engine.call("run", *given(KINDS[kind].inputs[0], edits))
        lines |= set(engine.call("lines"))
    assert lines <= code_of_steps().keys()
    if kind == "gpt":
        assert {"rms_norm", "rms_norm_scale", "layer_norm_gain", "rotate", "repeat_heads", "gated"} <= lines


@pytest.mark.parametrize("option", ["the paper's order", "pre-norm", "marian, padding starts"])
def test_greedy_translation(engine, option):
    model = model_of("transformer", option)
    engine.make(model)
    engine.run(*PAIR)
    before = engine.arrays()
    for source in (PAIR[0], [8, 9, 3], [5, 3]):
        assert engine.call("greedy", source, {}) == greedy(model, np.array([source]))[0]
    # a translation changes no array of the last run, in particular no gradient
    after = engine.arrays()
    assert all(np.array_equal(after[path], before[path], equal_nan=True) for path in before)


@pytest.mark.parametrize("option", ["gpt2", "llama", "window", "rotary, interleaved"])
def test_continuation_of_a_text(engine, option):
    """It ends where the context is full: the last token is predicted, and not read."""
    model = model_of("gpt", option)
    engine.make(model)
    for text in ([3], TEXT[:4], TEXT):
        ids = list(text)
        while len(ids) <= SIZES["context"]:
            logits, _ = model.forward(np.array([ids]))
            ids.append(int(logits[0, -1].argmax()))
        assert engine.call("continuation", text, {}, 20) == ids[len(text) :]
        assert engine.call("continuation", text, {}, 2) == ids[len(text) :][:2]


def test_error_function(engine):
    numbers = [0.0, 1e-9, -0.1, 0.5, -1.0, 1.7, 2.5, -3.3, 4.8, 5.9, 6.1, -30.0]
    assert engine.call("erf", numbers) == pytest.approx([math.erf(x) for x in numbers], abs=1e-15, rel=4e-15)
