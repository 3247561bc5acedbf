"""The explorer's engine computes a GPT in a browser: its numbers, forward and backward, are the package's."""

import math
import random
from dataclasses import fields

import numpy as np
import pytest
from engine_page import check, check_slopes, check_terms, open_engine
from pass_record import NO_TARGET, PassRecord, compare

from npformer.explorer.code_lines import code_of_steps
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.models.gpt import CHOICES, GPT, GPTConfig
from npformer.training.optimizer import Adam

pytestmark = pytest.mark.browser

TEXT = [4, 5, 6, 7, 10, 3, 5, 5, 0]
SIZES = {"vocab_size": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "context": 12}

ROTARY = {"positions": "rotary"}
LLAMA = {
    **ROTARY, "norm": "rms", "activation": "swiglu", "n_kv_heads": 2, "bias": False, "tied": False
}  # fmt: skip
# Llama's scaling acts on angles that turn around less than four times within the original context
SCALED = {"rotary_scaling": "llama3", "rotary_original_context": 30, "rotary_base": 100.0}

# the settings that change what is computed, each with every value, and those that act on each other together
OPTIONS = {
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
    "one head": {"n_heads": 1, "n_layers": 1},
    "window": {"window": 3},
    "window of the token alone": {"window": 1, "n_kv_heads": 1},
    "much smoothing": {"label_smoothing": 0.5},
    **{name: {"activation": name} for name in (*ACTIVATIONS, *GATED_ACTIVATIONS)},
}  # fmt: skip

# sizes; padding, which no text of the page has; dropout, whose test is apart
OTHER_SETTINGS = {"vocab_size", "context", "pad_id", "dropout"}

HEADS = {"layers.0.self_attention": [1, 2], "layers.1.self_attention": [0]}
# every token attends to the future in the first layer, and the third token of the second layer to nothing
CELLS = {
    "layers.0.self_attention": [[t, s, True] for t in range(9) for s in range(9)],
    "layers.1.self_attention": [[2, s, False] for s in range(9)],
}
VALUES = {
    "layers.0.self_attention.projections.0.y": [[3, 0.5], [60, -2.0]],
    "layers.1.attention_residual.norm.y": [[0, 1.5]],
    "layers.0.feed_forward.outer.y": [[9, 0.0]],
    "norm.y": [[17, 3.0]],
}


@pytest.fixture(scope="module")
def engine(chromium):
    with open_engine(chromium) as opened:
        yield opened


def tiny(seed=0, dtype=np.float64, **changes):
    """Return a tiny GPT whose parameters are all drawn at random."""
    rng = np.random.default_rng(seed)
    model = GPT(GPTConfig(**SIZES | changes), rng=rng, dtype=dtype)
    for parameter in model.parameters():
        parameter.value += rng.normal(0, 0.3, parameter.shape)
    return model


def ids_of(text=TEXT):
    """Return no source, the text, and the next token of each."""
    return [], list(text), [*text[1:], NO_TARGET]


def ids_and_edits(edits=None, text=TEXT):
    _, target_in, target_out = ids_of(text)
    return {"source": [], "targetIn": target_in, "targetOut": target_out}, edits or {}


def verify(engine, model, text=TEXT, **edits):
    """Compare all arrays of a model, with edits of the reader."""
    engine.make(model)
    check(engine, PassRecord(model, ids_of(text), **edits), ids_of(text), edits)


@pytest.mark.parametrize("name", OPTIONS)
def test_all_arrays_are_those_of_the_package(engine, name):
    verify(engine, tiny(**OPTIONS[name]))


def test_options_vary_every_setting_with_every_choice():
    varied = {setting for options in OPTIONS.values() for setting in options}
    assert {field.name for field in fields(GPTConfig)} == varied | OTHER_SETTINGS
    default = GPTConfig()
    for setting, choices in CHOICES.items():
        used = {options.get(setting, getattr(default, setting)) for options in OPTIONS.values()}
        assert used == set(choices), setting


def test_record_holds_every_array_of_the_caches_and_every_parameter():
    """What is compared is complete: the arrays of a small Llama, written down by hand."""
    record = PassRecord(tiny(**LLAMA), ids_of())
    expected = {"embedding.y", "norm.xhat", "norm.rrms", "output.x", "logits", "embedding.tokens.weight"}
    for layer in ("layers.0", "layers.1"):
        attention = [f"attention.{name}" for name in ("q", "k", "v", "weights", "scores", "z")]
        attention += ["projections.0.x", "projections.0.weight", "output.x", "output.y", "output.weight"]
        expected |= {f"{layer}.self_attention.{name}" for name in attention}
        network = ["gate.x", "gate.y", "value.x", "value.y", "value.weight", "outer.x", "outer.y"]
        expected |= {f"{layer}.feed_forward.{name}" for name in network}
        for residual in ("attention_residual", "feed_forward_residual"):
            names = ("y", "norm.xhat", "norm.rrms", "norm.gain")
            expected |= {f"{layer}.{residual}.{name}" for name in names}
    assert expected <= record.values.keys()
    assert expected <= record.grads.keys()


@pytest.mark.parametrize("seed", range(20))
def test_twenty_texts(engine, seed):
    rng = np.random.default_rng(seed)
    text = rng.integers(0, SIZES["vocab_size"], rng.integers(2, SIZES["context"] + 1)).tolist()
    verify(engine, tiny(seed, **LLAMA if seed % 2 else {}), text)


@pytest.mark.slow
def test_model_of_a_usual_size(engine):
    config = GPTConfig.preset("gpt-shakespeare")
    model = GPT(config, rng=np.random.default_rng(0), dtype=np.float64)
    assert model.count_parameters() > 700_000
    verify(engine, model, np.random.default_rng(1).integers(0, config.vocab_size, 40).tolist())


@pytest.mark.parametrize("changes", [{}, LLAMA, {"window": 3, **ROTARY}])
def test_changes_of_the_reader(engine, changes):
    """A switched-off head is one query head, also where several share the keys."""
    for edits in ({"heads": HEADS}, {"masks": CELLS}, {"values": VALUES}, {"heads": HEADS, "masks": CELLS}):
        verify(engine, tiny(**changes), **edits)


def test_changed_settings(engine):
    """The reader may change a setting that needs no other parameters."""
    engine.make(tiny())
    changes = {"activation": "relu", "window": 2, "label_smoothing": 0.1, "norm_eps": 0.1}
    check(engine, PassRecord(tiny(**changes), ids_of()), ids_of(), {"settings": changes})


@pytest.mark.parametrize("changes", [{}, LLAMA])
def test_dropout_with_the_same_masks(engine, changes):
    model = tiny(dropout=0.3, **changes)
    engine.make(model)
    record = PassRecord(model, ids_of(), rng=np.random.default_rng(0))
    masks = {path: mask for path, mask in record.values.items() if path.endswith("dropout_mask")}
    assert len(masks) == 1 + 2 * (1 + 2)  # the embedding, and in each layer the weights and two sublayers
    dropped = {path: np.flatnonzero(mask.reshape(-1) == 0).tolist() for path, mask in masks.items()}
    check(engine, record, ids_of(), {"dropout": dropped})


@pytest.mark.parametrize("changes", [{}, LLAMA])
@pytest.mark.parametrize(("kind", "lr", "tolerance"), [("descent", 0.01, 1e-12), ("adam", 0.001, 1e-9)])
def test_five_steps(engine, kind, lr, tolerance, changes):
    """Adam divides by the root of the squared gradients, which amplifies rounding where they are nearly 0."""
    model = tiny(**changes | {"bias": False})  # the gradients of the biases of keys are rounding alone
    optimizer = Adam(model)
    engine.make(model)
    engine.run(*ids_of())
    engine.call("update", kind, lr, 5)
    for _ in range(5):
        PassRecord(model, ids_of())
        if kind == "adam":
            optimizer.step(lr)
        else:
            model.values -= lr * model.grads
    compare(PassRecord(model, ids_of()), engine.arrays(), tolerance)


@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_are_slopes(engine, name):
    """The gradient of any array, also of those that the package does not store, is the slope of the loss."""
    engine.make(tiny(**OPTIONS[name]))
    found = engine.call("slopes", *ids_and_edits(), 1e-5)
    assert len(found) > 40
    check_slopes(
        [each for each in found if not each[0].startswith("positions.table")]
    )  # which is not learned


def test_terms_add_up_to_the_number(engine):
    rng, seen = random.Random(0), set()
    edits = {"heads": HEADS, "masks": CELLS, "values": VALUES}
    for name, changes in OPTIONS.items():
        engine.make(tiny(**changes))
        engine.call("run", *ids_and_edits(edits if name != "one head" else {}))
        steps = engine.call("steps")
        seen |= {step["op"] for step in steps}
        places = []
        for _ in range(60):
            step = rng.choice(steps)
            index, direction = rng.randrange(math.prod(step["shape"])), rng.choice(("forward", "backward"))
            if step["op"] != "constant" or direction == "forward":  # a constant has no gradient
                places.append((step["path"], index, direction))
        for place, found in zip(places, engine.call("terms", places), strict=True):
            check_terms(place, found)
    assert {"rotate", "rrms", "scale_rows", "gate", "rearrange"} <= seen


def test_every_line_has_its_code(engine):
    lines = set()
    for changes in OPTIONS.values():
        engine.make(tiny(**changes))
        engine.call("run", *ids_and_edits({"dropout": {"embedding.dropout_mask": [1]}}))
        lines |= set(engine.call("lines"))
    assert lines <= code_of_steps().keys()
    assert {"rms_norm", "rms_norm_scale", "layer_norm_gain", "rotate", "repeat_heads", "gated"} <= lines


@pytest.mark.parametrize("name", ["gpt2", "llama", "window", "rotary, interleaved"])
def test_continuation_of_a_text(engine, name):
    """It ends where the context is full: the last token is predicted, and not read."""
    model = tiny(**OPTIONS[name])
    engine.make(model)
    for text in ([3], TEXT[:4], TEXT):
        ids = list(text)
        while len(ids) <= SIZES["context"]:
            logits, _ = model.forward(np.array([ids]))
            ids.append(int(logits[0, -1].argmax()))
        assert engine.call("continuation", text, {}, 20) == ids[len(text) :]
        assert engine.call("continuation", text, {}, 2) == ids[len(text) :][:2]
