"""npformer train --text: a language model on one text, and what is refused in one sentence."""

import gzip

import pytest

from npformer.cli.main import main
from npformer.data.text import TEXT_VOCAB_SIZE
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import read_log

POEM = "the cat sees the dog\nthe dog eats\n" * 12
TINY = ["--set", "d_model=8", "--set", "n_heads=1", "--set", "n_layers=1", "--set", "context=6"]
SHORT = [*TINY, "--batch-size", "3", "--workers", "1", "--set", "validate_every=2"]
QUICK = [*SHORT, "--steps", "4"]
FILES = {
    "poem.txt": POEM.encode(),
    "poem.gz": gzip.compress(POEM.encode()),
    "latin.txt": POEM.replace("cat", "café").encode("latin-1"),
    "empty.txt": b"",
    "one.txt": b"aaaaaaaaaa" * 100,
    "short.txt": b"abcdefg",
    "train.en": b"the cat\n" * 30,
    "train.fr": b"le chat\n" * 30,
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with some texts."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(capsys, *arguments):
    """Run the command, which must succeed, and return its output."""
    assert main(["train", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def description(run):
    """Return the kind of the model and the description of the dataset of a run."""
    checkpoint = load_checkpoint(run / "last.safetensors")
    return checkpoint.model_kind, checkpoint.dataset


def test_a_run_shows_bits_per_character_and_samples(capsys, folder):
    out = train(capsys, "--text", "poem.txt", *QUICK)
    assert out.count("bits per character") == 2
    assert "step      2  sample:\n" in out
    assert 'next: npformer generate --model runs/poem "a beginning"' in out
    kind, dataset = description(folder / "runs/poem")
    assert kind == "gpt"
    assert dataset["file"] == str(folder / "poem.txt")
    assert dataset["tokens"] == "characters"
    assert (folder / "runs/poem/curves.png").exists()


@pytest.mark.parametrize(
    ("arguments", "dataset"),
    [
        (["--text", "latin.txt", "--tokens", "bytes"], {"tokens": "bytes", "vocab_size": None}),
        (
            ["--text", "poem.gz", "--tokens", "subwords", "--vocab-size", "30"],
            {"tokens": "subwords", "vocab_size": 30},
        ),
        (["--preset", "gpt-shakespeare", "--text", "poem.txt"], {"tokens": "characters"}),
        (["--architecture", "llama-style", "--text", "poem.txt", "--set", "n_kv_heads=1"], {}),
    ],
)
def test_texts_tokens_and_architectures(capsys, folder, arguments, dataset):
    train(capsys, *arguments, *QUICK, "--run", "new")
    kind, found = description(folder / "new")
    assert kind == "gpt"
    assert found | dataset == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "tokens"),
    [
        (["--text"], ("subwords", TEXT_VOCAB_SIZE)),
        (["--preset", "gpt-shakespeare", "--vocab-size", "300"], ("subwords", 300)),
        (["--text", "--tokens", "characters"], ("characters", None)),
    ],
)
def test_without_a_file_the_text_is_tiny_shakespeare(capsys, folder, arguments, tokens):
    often = ["--set", "validate_every=9", "--steps", "1", "--batch-size", "2", "--set", "context=200"]
    train(capsys, *arguments, *TINY[:-2], *often)
    kind, found = description(folder / "runs/gpt-shakespeare")
    assert (kind, found["file"], found["tokens"], found["vocab_size"]) == ("gpt", None, *tokens)


def test_a_run_is_resumed_in_another_folder(capsys, folder, monkeypatch):
    steady = ["--text", "poem.txt", *SHORT, "--set", "schedule=constant"]
    train(capsys, *steady, "--run", "whole", "--steps", "6")
    train(capsys, *steady, "--run", "parts", "--steps", "4")
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    train(capsys, "--resume", "../parts", "--steps", "6")
    logs = [
        [entry["loss"] for entry in read_log(folder / run) if "loss" in entry] for run in ("whole", "parts")
    ]
    assert logs[0][-1] == logs[1][-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--text", "empty.txt"], "empty.txt is empty: give a file with text"),
        (["--text", "one.txt"], "one.txt has no other character than 'a': give a text with at least two"),
        (["--text", "one.txt", "--tokens", "bytes"], "one.txt has no other character than 'a'"),
        (
            ["--text", "short.txt"],
            "short.txt has 6 tokens for training, and the model's context is 128: give a longer text, or a "
            "smaller context (--set context=5)",
        ),
        (["--text", "latin.txt"], "latin.txt is not UTF-8 text at line 1 (byte 0xe9): save it as UTF-8, or"),
        (["--text", "missing.txt"], "there is no file missing.txt: check the name and the folder"),
        (["--text", "."], ". is a folder: give a text file in it"),
        (["--text", "poem.txt", "--tokens", "x"], "--tokens is 'x': choose one of characters, byte"),
        (["--text", "poem.txt", "--vocab-size", "30"], "--vocab-size has an effect only with two files to"),
        (
            ["--text", "poem.txt", "--tokens", "subwords", "--vocab-size", "3"],
            "vocab_size is 3, fewer than the characters alone",
        ),
        (["train.en", "train.fr", "--text", "poem.txt"], "train.en has no effect with --text, because a lan"),
        (["--text", "poem.txt", "--task", "copy"], "--task has no effect with --text"),
        (["--text", "poem.txt", "--direction", "fr-en"], "--direction has no effect with --text"),
        (["--text", "poem.txt", "--valid", "train.en", "train.fr"], "--valid has an effect only with two fi"),
        (["--text", "poem.txt", "--subwords", "30"], "--subwords has an effect only with two files"),
        (["--text", "poem.txt", "--cased"], "--cased has an effect only with two files"),
        (["--text", "poem.txt", "--preset", "small"], "--text has an effect only with a preset for language"),
        (
            ["--tokens", "bytes"],
            "--tokens has an effect only with a preset for language models that continue a text",
        ),
        (
            ["--preset", "gpt-shakespeare", "train.en", "train.fr"],
            "train.en has an effect only with a preset",
        ),
        (
            ["--preset", "gpt-shakespeare", "--task", "copy"],
            "--task has an effect only with a preset for sen",
        ),
        (["--text", "poem.txt", "--architecture", "rnn"], "the model reads sentence pairs and the dataset"),
        (["--architecture", "gpt2"], "the model reads text and the dataset has sentence pairs: choose"),
        (["--text", "poem.txt", "--set", "bleu_every=5"], "--set bleu_every has an effect only with sentenc"),
        (["--text", "poem.txt", "--set", "pad_id=0"], "pad_id is 0, and the windows of a text have no padd"),
        (["--text", "poem.txt", "--set", "vocab_size=5"], "vocab_size is 5, but poem.txt has 11 different"),
        (
            ["--architecture", "gpt2", "--text", "poem.txt", "--set", "rotary_base=5"],
            "--set rotary_base has an effect only with positions rotary, and positions is learned",
        ),
        (["--resume", "runs/none", "--text"], "--text has no effect with --resume"),
        (["--resume", "runs/none", "--tokens", "bytes"], "--tokens has no effect with --resume"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(capsys, folder, arguments, words):
    assert main(["train", *arguments, *([] if "--resume" in arguments else ["--run", "new"])]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (folder / "new").exists()


def test_a_language_model_is_not_a_translator(capsys):
    train(capsys, "--text", "poem.txt", *QUICK)
    assert main(["translate", "--model", "runs/poem", "the cat"]) == 2
    assert "runs/poem is a language model, which cannot translate" in capsys.readouterr().err
