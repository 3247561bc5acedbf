"""The recurrent translators and the Universal Transformer: outputs, training, settings, and the commands."""

import numpy as np
import pytest
from training_runs import assert_same, stop_after
from training_worker import tiny_dataset, tiny_training

from npformer.checking.whole import ModelWithLoss
from npformer.cli.limits import count_parameters
from npformer.cli.main import main
from npformer.data import END, pad
from npformer.data.loader import Batch
from npformer.errors import UserError
from npformer.generation.state import CachedState, PrefixState
from npformer.models.recurrent import RecurrentConfig
from npformer.models.recurrent.config import ARCHITECTURES
from npformer.models.recurrent.encoder import Bridge
from npformer.models.registry import (
    architecture,
    attention_layers,
    build,
    config_from_settings,
    require_size,
)
from npformer.models.universal import UniversalConfig
from npformer.training import loss_and_gradients, resume, train

VOCABULARIES = {"source_vocab": 11, "target_vocab": 11, "max_length": 12, "dropout": 0.0}
RECURRENT = VOCABULARIES | {"d_model": 6, "d_hidden": 8}
UNIVERSAL = VOCABULARIES | {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 4, "halting_bias": -0.5}
KINDS = {
    "none": RecurrentConfig(**RECURRENT, attention="none"),
    "none, gru": RecurrentConfig(**RECURRENT, attention="none", cell="gru", bidirectional=False),
    "additive": RecurrentConfig(**RECURRENT, attention="additive"),
    "global": RecurrentConfig(**RECURRENT, attention="global"),
    "global, fed": RecurrentConfig(**RECURRENT, attention="global", feeding=True),
    "local-m": RecurrentConfig(**RECURRENT, attention="local-m", window=2, cell="gru"),
    "local-p": RecurrentConfig(**RECURRENT, attention="local-p", window=2, feeding=True),
    "universal, post-norm": UniversalConfig(**UNIVERSAL),
    "universal, pre-norm": UniversalConfig(**UNIVERSAL, norm="pre", final_norm=True, tied="all"),
    "universal, halts early": UniversalConfig(**UNIVERSAL | {"halting_bias": 2.0}),
    "universal, fixed steps": UniversalConfig(**UNIVERSAL, halting=False, positions="none"),
}
every_kind = pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
HALTING = KINDS["universal, post-norm"]
TARGET = np.array([[2, 7, 5, 8, 4], [2, 6, 4, 9, 0], [2, 8, 0, 0, 0]])


def random_model(config, seed=0):
    """Return a float64 model whose parameters, biases included, are random, so that its choices are clear."""
    model = build(config, rng=np.random.default_rng(seed), dtype=np.float64)
    model.values[...] += 0.4 * np.random.default_rng(seed + 1).standard_normal(model.values.shape)
    for stack in (model.encoder, model.decoder):
        if getattr(stack, "halting", None) is not None:
            stack.halting.weight.value *= 3  # so that positions take different numbers of steps
    return model


def random_source(lengths=(5, 1, 8), seed=0):
    rng = np.random.default_rng(seed)
    return pad([[*rng.integers(4, 11, n).tolist(), END] for n in lengths])


@every_kind
def test_padding_and_other_sentences_change_nothing(config):
    """A sentence has the same logits, and the same ponder cost, alone and in a batch with longer ones."""
    model, source = random_model(config), random_source()
    together, cache = model.forward(source, TARGET)
    costs = 0.0
    for b, (s, t) in enumerate([(6, 5), (2, 4), (9, 2)]):
        alone, own = model.forward(source[b : b + 1, :s], TARGET[b : b + 1, :t])
        np.testing.assert_allclose(together[b, :t], alone[0], rtol=1e-9, atol=1e-12)
        costs += model.auxiliary_loss(own) if model.has_auxiliary_loss else 0.0
    if model.has_auxiliary_loss:
        np.testing.assert_allclose(model.auxiliary_loss(cache), costs, rtol=1e-12)


@every_kind
def test_no_token_depends_on_later_ones(config):
    """A later token changes neither the logits before it nor the number of steps of earlier positions."""
    model, source = random_model(config), random_source()
    logits, cache = model.forward(source, TARGET)
    changed = TARGET.copy()
    changed[:, 3] = 10
    other, own = model.forward(source, changed)
    np.testing.assert_allclose(other[:, :3], logits[:, :3], rtol=1e-12)
    assert (other[:, 3:] != logits[:, 3:]).any()
    if model.has_auxiliary_loss:
        np.testing.assert_array_equal(own.decoder.mix.steps[:, :3], cache.decoder.mix.steps[:, :3])


@every_kind
def test_decoding_one_token_at_a_time_equals_the_whole_sentence(config):
    """Rows are kept, dropped, reordered and copied, as in a beam search."""
    model, source = random_model(config), random_source()
    states = [CachedState(model, source), PrefixState(model, source)]
    tokens = np.array([2, 2, 2])
    for move in ([0, 1, 2], [2, 0, 0, 1], [3, 3, 1]):
        logits = [state.decode_step(tokens) for state in states]
        np.testing.assert_allclose(*logits, rtol=1e-9, atol=1e-12)
        for state in states:
            state.select(np.array(move))
        tokens = logits[0].argmax(-1)[move]


@every_kind
def test_the_attention_that_is_shown(config):
    """A recurrent network has one attention layer, and the Universal Transformer one for each step."""
    model, source = random_model(config), random_source()
    _, cache = model.forward(source, TARGET)
    encoder, decoder, cross = (attention_layers(cache, kind) for kind in ("encoder", "decoder", "cross"))
    assert all((weights[1, :, :, 2:] == 0).all() for weights in cross), "padding is not looked at"
    if isinstance(config, UniversalConfig):
        assert {w.shape for w in encoder} == {(3, 2, 9, 9)}
        assert {w.shape for w in decoder} == {(3, 2, 5, 5)}
        assert {w.shape for w in cross} == {(3, 2, 5, 9)}
        assert config.halting or len(encoder) == len(decoder) == len(cross) == 4
        return
    assert encoder == decoder == []
    assert [w.shape for w in cross] == [(3, 1, 5, 9)] * (config.attention != "none")
    if config.attention in ("additive", "global"):
        np.testing.assert_allclose(cross[0].sum(-1), 1)
    if config.attention == "local-m":
        far = abs(np.arange(5)[:, None] - np.arange(9)) > 2
        assert (cross[0][:, 0, far] == 0).all()


# The loss and the parameters.

BATCH = Batch(
    pad([[5, 6, 7, END], [8, END]]), np.array([[2, 5, 6], [2, 9, 0]]), np.array([[5, 6, 3], [9, 3, 0]])
)


def test_the_training_loss_contains_the_ponder_cost():
    """The loss is the cross-entropy + weight · Σ ponder / tokens; its gradient is that of ModelWithLoss."""
    model, again = (random_model(HALTING.replace(ponder_weight=0.3)) for _ in range(2))
    free = random_model(HALTING.replace(ponder_weight=0.0))
    loss, tokens = loss_and_gradients(model, [BATCH])
    _, cache = model.forward(BATCH.source, BATCH.target_in)
    cost = cache.encoder.ponder[BATCH.source != 0].sum() + cache.decoder.ponder[BATCH.target_in != 0].sum()
    assert tokens == 5
    assert loss == pytest.approx(loss_and_gradients(free, [BATCH])[0] + 0.3 * cost / 5, rel=1e-12)
    assert abs(model.grads - free.grads).max() > 1e-3
    again.zero_grad()
    checked = ModelWithLoss(again)  # the gradient checks show that its gradient is right
    also, cache = checked.forward(*BATCH.inputs, BATCH.target_out)
    checked.backward(1.0, cache)
    assert float(also) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(model.grads, again.grads, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("universal")])
def test_the_parameters_of_a_universal_transformer_are_counted_without_building_it(name):
    count = build(KINDS[name]).count_parameters()
    assert count_parameters(KINDS[name]) == count >= KINDS[name].least_parameters > count / 2


def test_a_checkpoint_that_describes_a_larger_model_than_it_holds():
    settings = HALTING.to_dict() | {"d_ff": 10**9}
    with pytest.raises(UserError, match="the settings describe a model of more than"):
        require_size(config_from_settings("universal", settings), random_model(HALTING).state_dict())


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_forget_bias_is_that_of_the_forget_gates(cell):
    """The gates are in the order i, f, g, o, and every other bias begins at 0."""
    model = build(RecurrentConfig(**RECURRENT, cell=cell, forget_bias=1.5))
    layers = {"left": model.encoder.reader.forwards, "right": model.encoder.reader.backwards}
    for layer in (*layers.values(), model.decoder.cell):
        n, bias = layer.d_hidden, layer.input_projection.bias.value
        expected = np.zeros_like(bias)
        if cell == "lstm":
            expected[n : 2 * n] = 1.5
        np.testing.assert_array_equal(bias, expected)
        assert not layer.hidden_projection.bias.value.any()


@pytest.mark.parametrize("name", ARCHITECTURES.names())
def test_a_preset_has_as_many_parameters_as_the_small_transformer(name):
    vocabularies = {"source_vocab": 284, "target_vocab": 380}
    small = build(architecture("small", **vocabularies)).count_parameters()
    assert small == 438_144
    assert abs(build(architecture(name, **vocabularies)).count_parameters() / small - 1) < 0.01


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (RecurrentConfig, {"cell": "rnn"}, "cell is 'rnn': choose one of lstm, gru"),
        (
            RecurrentConfig,
            {"attention": "luong"},
            "attention is 'luong': choose one of none, additive",
        ),
        (RecurrentConfig, {"score": "cosine"}, "score is 'cosine'"),
        (RecurrentConfig, {"d_hidden": 7}, "bidirectional needs an even d_hidden, and it is 7"),
        (
            RecurrentConfig,
            {"attention": "additive", "feeding": True},
            "feeding needs attention after",
        ),
        (RecurrentConfig, {"dropout": 1}, "dropout is 1: it must be at least 0"),
        (RecurrentConfig, {"n_heads": 2}, "a RecurrentConfig has no setting 'n_heads'"),
        (
            UniversalConfig,
            {"positions": "learned"},
            "positions is 'learned': a Universal Transformer adds",
        ),
        (UniversalConfig, {"halting_epsilon": 1.0}, "halting_epsilon is 1.0: it must be above 0 and below 1"),
        (UniversalConfig, {"halting_bias": np.inf}, "halting_bias is inf: it must be a finite number"),
        (UniversalConfig, {"ponder_weight": -0.1}, "ponder_weight is -0.1: it must be a number, 0 or more"),
        (UniversalConfig, {"n_layers": 1001}, "n_layers is 1,001 steps: give at most 1,000"),
        (UniversalConfig, {"d_hidden": 2}, "a UniversalConfig has no setting 'd_hidden'"),
    ],
)
def test_invalid_settings(kind, changes, message):
    with pytest.raises(UserError, match=message):
        kind().replace(**changes)


def test_invalid_inputs():
    model = random_model(RecurrentConfig(**RECURRENT))
    with pytest.raises(UserError, match=r"target_in\[0, 1\] is 11, outside the vocabulary of 11 tokens"):
        model.forward(np.array([[4, 3]]), np.array([[2, 11]]))
    with pytest.raises(UserError, match="source holds 1 sentences and target_in 2"):
        model.forward(np.array([[4, 3]]), np.array([[2], [2]]))
    with pytest.raises(UserError, match="a Universal Transformer does not support packing"):
        random_model(HALTING).forward(random_source(), TARGET, packed=True)


# Training and the commands.


@pytest.mark.parametrize("name", ["global, fed", "universal, post-norm"])
def test_a_stopped_and_resumed_run_is_equal_to_the_bit(tmp_path, name):
    dataset = tiny_dataset()
    config, training = KINDS[name].replace(**dataset.sizes, dropout=0.1), tiny_training(steps=12)
    train(tmp_path / "whole", dataset, config, training)
    train(tmp_path / "cut", dataset, config, training, stop=stop_after(5))
    resume(tmp_path / "cut", dataset=dataset)
    assert_same(tmp_path / "cut", tmp_path / "whole")


SHORT = "--task reverse --steps 2 --set d_model=8"
COMMANDS = {
    "recurrent": (
        f"train --architecture rnn-local-p --run run {SHORT} --set d_hidden=16",
        {"cross"},
        {
            "attention --model run --kind decoder 1": "has no decoder self-attention: it has cross",
            "figures F29 --model run": "the figures show a Transformer, and this model is recurrent",
        },
    ),
    "universal": (
        f"train --architecture universal --run run {SHORT} --set d_ff=16 --set n_heads=2",
        {"encoder", "decoder", "cross"},
        {
            "figures F29 --model run": "the figures show a Transformer, and this model is universal",
            f"train --architecture universal --run x {SHORT} --set halting=False --set ponder_weight=0.1": (
                "--set ponder_weight has an effect only with halting True, and halting is False"
            ),
        },
    ),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_commands(tmp_path, monkeypatch, capsys, kind):
    """npformer train, translate and attention work, and what only a Transformer has is refused."""
    monkeypatch.chdir(tmp_path)
    training, drawn, refused = COMMANDS[kind]
    assert main(training.split()) == 0
    assert main(["translate", "--model", "run", "1 2 3"]) == 0
    assert main(["attention", "--model", "run", "1 2 3"]) == 0
    assert {p.name for p in tmp_path.glob("attention/*_grid.png")} == {f"{k}_grid.png" for k in drawn}
    capsys.readouterr()
    refused |= {"masks --model run 1": f"the mask lab needs a Transformer, and this model is {kind}"}
    for command, message in refused.items():
        assert main(command.split()) == 2
        assert message in capsys.readouterr().err


def test_a_model_without_attention_shows_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(f"train --architecture rnn --run bare {SHORT} --set d_hidden=16".split()) == 0
    assert main(["attention", "--model", "bare", "1 2 3"]) == 2
    assert "this model has no attention" in capsys.readouterr().err


@pytest.mark.parametrize(("bidirectional", "last", "first"), [(True, 4, 4), (False, 8, 0)])
def test_the_decoder_begins_with_the_final_state_of_each_direction(bidirectional, last, first):
    """The last position holds that of the forward direction, and the first one that of the other."""
    bridge = Bridge(RecurrentConfig(**RECURRENT | {"d_hidden": 8}, bidirectional=bidirectional), 5)
    state, cache = bridge.forward(np.ones((2, 3, 8), np.float32))
    read = bridge.backward(np.ones_like(state), cache)[0] != 0  # (S, N)
    assert read[2].tolist() == [True] * last + [False] * first
    assert read[0].tolist() == [False] * last + [True] * first
    assert not read[1].any()
