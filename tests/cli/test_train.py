"""npformer train: a language model on one text, and any value of any setting."""

import gzip
import os
from itertools import product

import pytest
from commands import said

from npformer.cli import train
from npformer.cli.main import main
from npformer.data.dataset import task_dataset
from npformer.data.text import TEXT_VOCAB_SIZE
from npformer.models.registry import architecture_class
from npformer.storage.checkpoint import load_checkpoint

POEM = "the cat sees the dog\nthe dog eats\n" * 12
TINY = "--set d_model=8 --set n_heads=1 --set n_layers=1"
SHORT = f"{TINY} --set context=6 --batch-size 3 --workers 1 --set validate_every=2"
QUICK = f"{SHORT} --steps 4"


@pytest.fixture(autouse=True)
def folder(tmp_path, figures):
    """Work in a folder with some texts. Curves are not written."""
    (tmp_path / "poem.txt").write_text(POEM)
    (tmp_path / "poem.gz").write_bytes(gzip.compress(POEM.encode()))
    (tmp_path / "latin.txt").write_bytes(POEM.replace("cat", "café").encode("latin-1"))
    return tmp_path


def test_a_run_shows_bits_per_character_and_samples(capsys, folder, figures):
    out = said(capsys, f"train --text poem.txt {QUICK}")
    assert out.count("bits per character") == 2
    assert "step      2  sample:\n" in out
    assert 'next: npformer generate --model runs/poem "a beginning"' in out
    checkpoint = load_checkpoint("runs/poem/last.safetensors")
    assert checkpoint.model_kind == "gpt"
    assert checkpoint.dataset["file"] == str(folder / "poem.txt")
    assert checkpoint.dataset["tokens"] == "characters"
    assert "curves.png" in figures


SHAKESPEARE = f"{TINY} --set validate_every=9 --steps 1 --batch-size 2 --set context=200"


@pytest.mark.parametrize(
    ("line", "dataset"),
    [
        (f"--text latin.txt --tokens bytes {QUICK}", {"tokens": "bytes", "vocab_size": None}),
        (f"--text poem.gz --tokens subwords --vocab-size 30 {QUICK}", {"vocab_size": 30}),
        (f"--preset gpt-shakespeare --text poem.txt {QUICK}", {"tokens": "characters"}),
        (f"--architecture llama-style --text poem.txt --set n_kv_heads=1 {QUICK}", {}),
        # without a file the text is Tiny Shakespeare
        (f"--text {SHAKESPEARE}", {"file": None, "tokens": "subwords", "vocab_size": TEXT_VOCAB_SIZE}),
        pytest.param(
            f"--text --tokens characters {SHAKESPEARE}",
            {"file": None, "tokens": "characters"},
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_texts_tokens_and_architectures(capsys, line, dataset):
    said(capsys, f"train {line} --run new")
    checkpoint = load_checkpoint("new/last.safetensors")
    assert checkpoint.model_kind == "gpt"
    assert checkpoint.dataset | dataset == checkpoint.dataset


STRANGE = ["True", "x", "[1]", "-1", "1e300"]
STRANGE += (
    ["None", "", "{}", "0", "(1,)", "{1: 2}", "1j", "b'x'", "..."]
    if os.environ.get("NPFORMER_NIGHTLY")
    else []
)
DATA = {
    "small": ["--task", "copy"],
    "rnn": ["--task", "copy"],
    "gpt-small": ["--text", "poem.txt"],
    "bert-small": ["--preset", "bert-small", "--text", "poem.txt"],
}


class WouldBegin(Exception):
    """Raised where a training would begin."""


@pytest.mark.parametrize("architecture", DATA)
def test_every_setting_takes_or_refuses_any_value(architecture, monkeypatch, capsys):
    """Each value either begins a training or is refused in one sentence, and never ends in a traceback."""

    def begin(*arguments, **settings):
        raise WouldBegin

    dataset = task_dataset("copy", n=20)
    monkeypatch.setattr(train, "task_dataset", lambda task: dataset)
    monkeypatch.setattr(train, "train_run", begin)
    names = list(architecture_class(architecture).__dataclass_fields__)
    if architecture == "small":  # these are the same for all architectures
        names += train.TrainingConfig.__dataclass_fields__
    for name, value in product(names, STRANGE):
        line = ["train", *DATA[architecture], "--architecture", architecture, "--set", f"{name}={value}"]
        try:
            assert main(line) == 2, line
        except WouldBegin:
            continue
        assert capsys.readouterr().err.count("\n") == 1, line
