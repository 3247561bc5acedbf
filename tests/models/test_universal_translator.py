"""The Universal Transformer as a translator: its loss, decoding, training, the commands, and mistakes."""

import math

import numpy as np
import pytest
from training_worker import tiny_dataset, tiny_training

from npformer.checking.whole import ModelWithLoss
from npformer.cli.limits import count_parameters
from npformer.cli.main import main
from npformer.data import END, pad
from npformer.data.dataset import task_dataset
from npformer.data.loader import Batch
from npformer.errors import UserError
from npformer.functional.masks import causal_mask
from npformer.generation import Translator, beam_search, greedy
from npformer.generation.state import CachedState, PrefixState
from npformer.models.registry import (
    architecture,
    attention_layers,
    build,
    config_from_checkpoint,
    config_from_settings,
    require_size,
)
from npformer.models.universal import UniversalConfig, UniversalTransformer
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import loss_and_gradients, read_log, resume, train

SIZES = {
    "source_vocab": 11,
    "target_vocab": 11,
    "d_model": 8,
    "d_ff": 16,
    "n_heads": 2,
    "n_layers": 4,
    "max_length": 12,
    "dropout": 0.0,
    "halting_bias": -0.5,
}
KINDS = {
    "post-norm": {},
    "pre-norm": {"norm": "pre", "final_norm": True, "tied": "all"},
    "halts early": {"halting_bias": 2.0},
    "fixed steps": {"halting": False, "positions": "none"},
}
every_kind = pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
TARGET = np.array([[2, 7, 5, 8, 4], [2, 6, 4, 9, 0], [2, 8, 0, 0, 0]])
BATCH = Batch(
    pad([[5, 6, 7, END], [8, END]]), np.array([[2, 5, 6], [2, 9, 0]]), np.array([[5, 6, 3], [9, 3, 0]])
)


def random_model(settings, seed=0):
    """Return a float64 model whose parameters, biases included, are random, so that positions differ."""
    model = build(UniversalConfig(**(SIZES | settings)), rng=np.random.default_rng(seed), dtype=np.float64)
    model.values[...] += 0.4 * np.random.default_rng(seed + 1).standard_normal(model.values.shape)
    for stack in (model.encoder, model.decoder):
        if stack.halting is not None:
            stack.halting.weight.value *= 3
    return model


def random_source(lengths=(5, 1, 8), seed=0):
    rng = np.random.default_rng(seed)
    return pad([[*rng.integers(4, 11, n).tolist(), END] for n in lengths])


# The forward pass and the loss.


@every_kind
def test_the_logits_computed_from_the_parts(settings):
    """The stacks add the positions at every step, so the embeddings add none."""
    model, source = random_model(settings), random_source((5, 3))
    source = source[source[:, -1] != 0]  # the longest sentence, without padding
    logits, _ = model.forward(source, TARGET[:1])
    x = math.sqrt(8) * model.source.tokens.weight.value[source]  # (1, S, D)
    y = math.sqrt(8) * model.target.tokens.weight.value[TARGET[:1]]  # (1, T, D)
    memory, _ = model.encoder.forward(x)
    y, _ = model.decoder.forward(y, memory, causal_mask(5, y))
    np.testing.assert_allclose(model.output(y), logits, rtol=1e-9, atol=1e-12)


@every_kind
def test_padding_and_other_sentences_change_nothing(settings):
    """A sentence has the same logits, and the same ponder cost, alone and in a batch with longer ones."""
    model, source = random_model(settings), random_source()
    together, cache = model.forward(source, TARGET)
    costs = 0.0
    for b, (s, t) in enumerate([(6, 5), (2, 4), (9, 2)]):
        alone, own = model.forward(source[b : b + 1, :s], TARGET[b : b + 1, :t])
        np.testing.assert_allclose(together[b, :t], alone[0], rtol=1e-9, atol=1e-12)
        costs += model.ponder_cost(own) if model.has_ponder_cost else 0.0
    if model.has_ponder_cost:
        np.testing.assert_allclose(model.ponder_cost(cache), costs, rtol=1e-12)


@every_kind
def test_no_token_depends_on_later_ones(settings):
    """A later token changes neither the logits before it nor the number of steps of earlier positions."""
    model, source = random_model(settings), random_source()
    logits, cache = model.forward(source, TARGET)
    changed = TARGET.copy()
    changed[:, 3] = 10
    other, own = model.forward(source, changed)
    np.testing.assert_allclose(other[:, :3], logits[:, :3], rtol=1e-12)
    assert (other[:, 3:] != logits[:, 3:]).any()
    if model.has_ponder_cost:
        np.testing.assert_array_equal(own.decoder.mix.steps[:, :3], cache.decoder.mix.steps[:, :3])


def test_the_training_loss_contains_the_ponder_cost():
    """The loss is the cross-entropy + weight · Σ ponder / tokens; its gradient is that of ModelWithLoss."""
    model, free = random_model({"ponder_weight": 0.3}), random_model({"ponder_weight": 0.0})
    loss, tokens = loss_and_gradients(model, [BATCH])
    _, cache = model.forward(BATCH.source, BATCH.target_in)
    cost = cache.encoder.ponder[BATCH.source != 0].sum() + cache.decoder.ponder[BATCH.target_in != 0].sum()
    assert tokens == 5
    assert loss == pytest.approx(loss_and_gradients(free, [BATCH])[0] + 0.3 * cost / 5, rel=1e-12)
    assert abs(model.grads - free.grads).max() > 1e-3
    again = random_model({"ponder_weight": 0.3})
    again.zero_grad()
    checked = ModelWithLoss(again)  # the gradient checks show that its gradient is right
    also, cache = checked.forward(*BATCH.inputs, BATCH.target_out)
    checked.backward(1.0, cache)
    assert float(also) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(model.grads, again.grads, rtol=1e-9, atol=1e-14)


def test_two_batches_have_the_loss_of_one_with_all_their_sentences():
    model = random_model({"ponder_weight": 0.3})
    whole = loss_and_gradients(model, [BATCH])[0], model.grads.copy()
    parts = [Batch(*(array[b : b + 1] for array in BATCH)) for b in range(2)]
    assert loss_and_gradients(model, parts)[0] == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(model.grads, whole[1], rtol=1e-9, atol=1e-14)


def test_every_step_is_shown_as_a_layer():
    model, source = random_model({"halting": False}), random_source()
    _, cache = model.forward(source, TARGET)
    for kind, shape in {"encoder": (3, 2, 9, 9), "decoder": (3, 2, 5, 5), "cross": (3, 2, 5, 9)}.items():
        assert [weights.shape for weights in attention_layers(cache, kind)] == [shape] * 4


# Decoding.


@every_kind
def test_decoding_one_token_at_a_time_equals_the_whole_sentence(settings):
    """Rows are kept, dropped, reordered and copied, as in a beam search."""
    model, source = random_model(settings), random_source()
    states = [CachedState(model, source), PrefixState(model, source)]
    moves = ([0, 1, 2], [2, 0, 0, 1], [3, 3, 1])
    tokens = np.array([2, 2, 2])
    for move in moves:
        logits = [state.decode_step(tokens) for state in states]
        np.testing.assert_allclose(*logits, rtol=1e-9, atol=1e-12)
        for state in states:
            state.select(np.array(move))
        tokens = logits[0].argmax(-1)[move]


@every_kind
def test_greedy_and_beam_search(settings):
    model, source = random_model(settings), random_source()
    found = greedy(model, source, max_length=6)
    assert found == greedy(model, source, max_length=6, cached=False)
    assert found == [best.ids for best, *_ in beam_search(model, source, beam=1, max_length=6)]
    wide = beam_search(model, source, beam=3, max_length=6)
    plain = beam_search(model, source, beam=3, max_length=6, cached=False)
    assert [[h.ids for h in hypotheses] for hypotheses in wide] == [[h.ids for h in hs] for hs in plain]


# Training and the commands.


def tiny(dataset, **settings):
    return UniversalConfig(**(SIZES | dataset.sizes | settings))


def test_it_learns_to_reverse(tmp_path):
    dataset = task_dataset("reverse", n=800, length=4, vocab=9)
    config = tiny(dataset, d_model=32, d_ff=64, n_layers=3, norm="pre", final_norm=True, tied="output")
    training = tiny_training(steps=300, batch_size=32, learning_rate=5e-3, schedule="constant")
    train(tmp_path / "run", dataset, config, training)
    checkpoint = load_checkpoint(tmp_path / "run" / "best.safetensors")
    assert isinstance(config_from_checkpoint(checkpoint), UniversalConfig)
    translator = Translator.from_checkpoint(checkpoint)
    assert isinstance(translator.model, UniversalTransformer)
    assert translator.translate(["0 1 2", "3 4"]) == ["2 1 0", "4 3"]


def test_a_stopped_and_resumed_run_is_equal_to_the_bit(tmp_path):
    dataset, calls = tiny_dataset(), []
    config, training = tiny(dataset, dropout=0.1), tiny_training(steps=12)

    def stop():
        calls.append(True)
        return len(calls) == 5

    train(tmp_path / "whole", dataset, config, training)
    train(tmp_path / "cut", dataset, config, training, stop=stop)
    resume(tmp_path / "cut", dataset=dataset)
    ends = [(tmp_path / name / "last.safetensors").read_bytes() for name in ("whole", "cut")]
    assert ends[0] == ends[1]
    losses = [[e.get("loss") for e in read_log(tmp_path / name)] for name in ("whole", "cut")]
    assert losses[0] == losses[1]


def test_the_architecture_has_as_many_parameters_as_the_small_transformer():
    vocabularies = {"source_vocab": 284, "target_vocab": 380}  # of the built-in corpus
    small = build(architecture("small", **vocabularies)).count_parameters()
    assert abs(build(architecture("universal", **vocabularies)).count_parameters() / small - 1) < 0.01


@every_kind
def test_its_parameters_are_counted_without_building_it(settings):
    config = UniversalConfig(**(SIZES | settings))
    count = build(config).count_parameters()
    assert count_parameters(config) == count >= config.least_parameters > count / 2


def test_the_commands(tmp_path, monkeypatch, capsys):
    """npformer train, translate and attention work, and what only a Transformer has is refused."""
    monkeypatch.chdir(tmp_path)
    short = "--task reverse --steps 2 --set d_model=8 --set d_ff=16 --set n_heads=2"
    assert main(f"train --architecture universal --run run {short}".split()) == 0
    assert main(["translate", "--model", "run", "1 2 3"]) == 0
    assert main(["translate", "--model", "run", "--beam", "2", "1 2 3"]) == 0
    assert main(["attention", "--model", "run", "1 2 3"]) == 0
    drawn = {path.name for path in (tmp_path / "attention").iterdir()}
    assert {f"{kind}_grid.png" for kind in ("encoder", "decoder", "cross")} <= drawn
    assert main(["train", "--resume", "run", "--steps", "3"]) == 0
    capsys.readouterr()
    for command, message in {
        "masks --model run 1": "the mask lab needs a Transformer, and this model is universal",
        "figures F29 --model run": "the figures show a Transformer, and this model is universal",
        f"train --architecture universal --run other {short} --set halting=False --set ponder_weight=0.1": (
            "--set ponder_weight has an effect only with halting True, and halting is False"
        ),
    }.items():
        assert main(command.split()) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "learned"}, "positions is 'learned': a Universal Transformer adds sinusoids"),
        ({"halting_epsilon": 1.0}, "epsilon is 1.0: it must be above 0 and below 1"),
        ({"halting_bias": np.inf}, "halting_bias is inf: it must be a finite number"),
        ({"ponder_weight": -0.1}, "ponder_weight is -0.1: it must be a number, 0 or more"),
        ({"ponder_weight": np.nan}, "ponder_weight is nan: it must be a number, 0 or more"),
        ({"n_layers": 1001}, "n_layers is 1,001 steps: give 1,000 at most"),
        ({"d_hidden": 2}, "a UniversalConfig has no setting 'd_hidden'"),
    ],
)
def test_invalid_settings(changes, message):
    with pytest.raises(UserError, match=message):
        UniversalConfig().replace(**changes)


def test_a_checkpoint_that_describes_a_larger_model_than_it_holds():
    settings = UniversalConfig(**SIZES).to_dict() | {"d_ff": 10**9}
    with pytest.raises(UserError, match="the settings describe a model of more than"):
        require_size(config_from_settings("universal", settings), random_model({}).state_dict())


def test_packing_is_refused():
    with pytest.raises(UserError, match="a Universal Transformer does not support packing"):
        random_model({}).forward(random_source(), TARGET, packed=True)
