"""The recurrent translators: their attention, decoding one token at a time, training, and mistakes."""

import numpy as np
import pytest
from training_worker import tiny_dataset, tiny_training

from npformer.cli.main import main
from npformer.data import END, pad
from npformer.data.dataset import builtin_dataset, task_dataset
from npformer.errors import UserError
from npformer.generation import Translator, beam_search, greedy
from npformer.generation.state import CachedState, PrefixState
from npformer.models.recurrent import RecurrentConfig
from npformer.models.recurrent.config import ARCHITECTURES
from npformer.models.registry import architecture, attention_layers, build, config_from_checkpoint
from npformer.models.transformer import TransformerConfig
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import read_log, resume, train

SIZES = {"source_vocab": 11, "target_vocab": 11, "d_model": 6, "d_hidden": 8, "max_length": 12}
KINDS = {
    "none": {"attention": "none"},
    "none, gru": {"attention": "none", "cell": "gru", "bidirectional": False},
    "additive": {"attention": "additive"},
    "global": {"attention": "global"},
    "global, fed": {"attention": "global", "feeding": True},
    "local-m": {"attention": "local-m", "window": 2, "cell": "gru"},
    "local-p": {"attention": "local-p", "window": 2, "feeding": True},
}
every_kind = pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
TARGET = np.array([[2, 7, 5, 8, 4], [2, 6, 4, 9, 0], [2, 8, 0, 0, 0]])


def random_model(settings, seed=0):
    """Return a float64 model whose parameters, biases included, are random, so that its choices are clear."""
    model = build(RecurrentConfig(**(SIZES | settings)), rng=np.random.default_rng(seed), dtype=np.float64)
    model.values[...] += 0.4 * np.random.default_rng(seed + 1).standard_normal(model.values.shape)
    return model


def random_source(lengths=(5, 1, 8), seed=0):
    rng = np.random.default_rng(seed)
    return pad([[*rng.integers(4, 11, n).tolist(), END] for n in lengths])


@every_kind
def test_padding_and_other_sentences_change_nothing(settings):
    """A sentence has the same logits alone and in a batch with longer ones."""
    model, source = random_model(settings), random_source()
    together, _ = model.forward(source, TARGET)
    for b, (s, t) in enumerate([(6, 5), (2, 4), (9, 2)]):
        alone, _ = model.forward(source[b : b + 1, :s], TARGET[b : b + 1, :t])
        np.testing.assert_allclose(together[b, :t], alone[0], rtol=1e-9, atol=1e-12)


@every_kind
def test_no_token_depends_on_later_ones(settings):
    model, source = random_model(settings), random_source()
    logits, _ = model.forward(source, TARGET)
    changed = TARGET.copy()
    changed[:, 3] = 10
    other, _ = model.forward(source, changed)
    np.testing.assert_array_equal(other[:, :3], logits[:, :3])
    assert (other[:, 3:] != logits[:, 3:]).any()


@every_kind
def test_the_attention_that_is_shown(settings):
    model, source = random_model(settings), random_source()
    _, cache = model.forward(source, TARGET)
    assert attention_layers(cache, "encoder") == attention_layers(cache, "decoder") == []
    if settings["attention"] == "none":
        assert attention_layers(cache, "cross") == []
        return
    (weights,) = attention_layers(cache, "cross")
    assert weights.shape == (3, 1, 5, 9)
    assert (weights[1, :, :, 2:] == 0).all(), "padding is not looked at"
    if settings["attention"] in ("additive", "global"):
        np.testing.assert_allclose(weights.sum(-1), 1)
    if settings["attention"] == "local-m":
        far = abs(np.arange(5)[:, None] - np.arange(9)) > 2
        assert (weights[:, 0, far] == 0).all()


@every_kind
def test_decoding_one_token_at_a_time_equals_the_whole_sentence(settings):
    """Rows are kept, dropped, reordered and copied, as in a beam search."""
    model, source = random_model(settings), random_source()
    states = [CachedState(model, source), PrefixState(model, source)]
    moves = ([0, 1, 2], [2, 0, 0, 1], [3, 3, 1])
    vocabularies = np.array([2, 2, 2])
    for move in moves:
        logits = [state.decode_step(vocabularies) for state in states]
        np.testing.assert_allclose(*logits, rtol=1e-9, atol=1e-12)
        for state in states:
            state.select(np.array(move))
        vocabularies = logits[0].argmax(-1)[move]


@every_kind
def test_greedy_and_beam_search(settings):
    model, source = random_model(settings), random_source()
    found = greedy(model, source, max_length=6)
    assert found == greedy(model, source, max_length=6, cached=False)
    assert found == [best.ids for best, *_ in beam_search(model, source, beam=1, max_length=6)]
    wide = beam_search(model, source, beam=3, max_length=6)
    plain = beam_search(model, source, beam=3, max_length=6, cached=False)
    assert [[h.ids for h in hypotheses] for hypotheses in wide] == [[h.ids for h in hs] for hs in plain]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_forget_bias_is_that_of_the_forget_gates(cell):
    """The gates are in the order i, f, g, o, and every other bias begins at 0."""
    model = build(RecurrentConfig(**SIZES, cell=cell, forget_bias=1.5))
    layers = {"left": model.encoder.reader.forwards, "right": model.encoder.reader.backwards}
    for layer in (*layers.values(), model.decoder.cell):
        n, bias = layer.d_hidden, layer.input_projection.bias.value
        expected = np.zeros_like(bias)
        if cell == "lstm":
            expected[n : 2 * n] = 1.5
        np.testing.assert_array_equal(bias, expected)
        assert not layer.hidden_projection.bias.value.any()


def test_scaled_token_vectors():
    """scale_embedding multiplies the vectors of both languages by sqrt(d_model), as in the Transformer."""
    plain, scaled = (random_model({"scale_embedding": scale}) for scale in (False, True))
    ids = np.array([[4, 9]])
    for name in ("source", "target"):
        expected = np.sqrt(6) * getattr(plain, name)(ids)
        np.testing.assert_allclose(getattr(scaled, name)(ids), expected, rtol=1e-12)


def tiny(dataset, **settings):
    return RecurrentConfig(**(SIZES | dataset.sizes | {"d_hidden": 24, "dropout": 0.0} | settings))


def test_it_learns_to_reverse(tmp_path):
    """No state of a fixed size has to memorize the sentence: the attention learns the reversed diagonal."""
    dataset = task_dataset("reverse", n=800, length=4, vocab=9)
    config = tiny(dataset, d_model=16, d_hidden=32, attention="global")
    training = tiny_training(steps=300, batch_size=32, learning_rate=1e-2, schedule="constant")
    train(tmp_path / "run", dataset, config, training)
    checkpoint = load_checkpoint(tmp_path / "run" / "best.safetensors")
    assert isinstance(config_from_checkpoint(checkpoint), RecurrentConfig)
    translator = Translator.from_checkpoint(checkpoint)
    assert translator.translate(["0 1 2", "3 4"]) == ["2 1 0", "4 3"]


def test_a_stopped_and_resumed_run_is_equal_to_the_bit(tmp_path):
    dataset, calls = tiny_dataset(), []
    config, training = tiny(dataset, attention="global", feeding=True, dropout=0.1), tiny_training(steps=12)

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


def test_a_run_cannot_be_resumed_with_the_other_architecture(tmp_path):
    dataset, training = tiny_dataset(), tiny_training(steps=2)
    train(tmp_path / "run", dataset, tiny(dataset), training)
    other = TransformerConfig.architecture("small", **dataset.sizes)
    with pytest.raises(UserError, match="of the kind transformer here but recurrent in the checkpoint"):
        train(tmp_path / "run", dataset, other, training, resume=True)


@pytest.mark.parametrize("name", ARCHITECTURES.names())
def test_a_preset_has_as_many_parameters_as_the_small_transformer(name):
    vocabularies = {"source_vocab": 284, "target_vocab": 380}
    small = build(architecture("small", **vocabularies)).count_parameters()
    assert small == 438_144
    assert abs(build(architecture(name, **vocabularies)).count_parameters() / small - 1) < 0.01


def test_the_presets_with_the_vocabularies_of_the_built_in_corpus():
    """The comment above the presets states these numbers."""
    sizes = builtin_dataset().sizes
    assert sizes == {"source_vocab": 353, "target_vocab": 516}
    small = build(architecture("small", **sizes)).count_parameters()
    assert small == 457_824
    more = [build(architecture(n, **sizes)).count_parameters() / small - 1 for n in ARCHITECTURES.names()]
    assert (round(min(more), 3), round(max(more), 3)) == (0.028, 0.052)


def test_the_commands(tmp_path, monkeypatch, capsys):
    """npformer train, translate and attention work, and options that only a Transformer has are refused."""
    monkeypatch.chdir(tmp_path)
    short = ["--task", "reverse", "--steps", "2", "--set", "d_hidden=16", "--set", "d_model=8"]
    assert main(["train", "--architecture", "rnn-local-p", "--run", "run", *short]) == 0
    assert main(["translate", "--model", "run", "1 2 3"]) == 0
    assert main(["attention", "--model", "run", "1 2 3"]) == 0
    assert {path.name for path in (tmp_path / "attention").iterdir()} == {"cross_grid.png", "cross_lines.png"}
    capsys.readouterr()
    for command, message in {
        "attention --model run --kind decoder 1": "this model has no decoder self-attention: it has cross",
        "masks --model run 1": "the mask lab needs a Transformer, and this model is recurrent",
        "figures F29 --model run": "the figures show a Transformer, and this model is recurrent",
    }.items():
        assert main(command.split()) == 2
        assert message in capsys.readouterr().err
    assert main(["train", "--architecture", "rnn", "--run", "bare", *short]) == 0
    assert main(["attention", "--model", "bare", "1 2 3"]) == 2
    assert "this model has no attention" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "rnn"}, "cell is 'rnn': choose one of lstm, gru"),
        ({"attention": "luong"}, "attention is 'luong': choose one of none, additive, global"),
        ({"score": "cosine"}, "score is 'cosine'"),
        ({"d_hidden": 7}, "bidirectional needs an even d_hidden, and it is 7"),
        ({"attention": "additive", "feeding": True}, "feeding needs attention after the cell"),
        ({"dropout": 1}, "dropout is 1: it must be at least 0"),
        ({"forget_bias": float("nan")}, "forget_bias is nan: it must be a finite number"),
        ({"window": 0}, "window is 0: it must be a whole number, 1 or more"),
        ({"n_heads": 2}, "a RecurrentConfig has no setting 'n_heads'"),
    ],
)
def test_invalid_settings(changes, message):
    with pytest.raises(UserError, match=message):
        RecurrentConfig().replace(**changes)


def test_an_unknown_architecture():
    with pytest.raises(UserError, match=r"unknown architecture 'rnn-globl': did you mean rnn-global\?"):
        architecture("rnn-globl")


def test_invalid_ids():
    model = random_model({})
    with pytest.raises(UserError, match=r"target_in\[0, 1\] is 11, outside the vocabulary of 11 tokens"):
        model.forward(np.array([[4, 3]]), np.array([[2, 11]]))
    with pytest.raises(UserError, match="source holds 1 sentences and target_in 2"):
        model.forward(np.array([[4, 3]]), np.array([[2], [2]]))
