"""npformer train --text: a language model on one text, and what is refused in one sentence."""

import gzip

import pytest
from commands import said

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
    return said(capsys, "train", *arguments)


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
