"""Subwords on the command line: from two files to a translation and a picture of attention."""

import contextlib
import io
from pathlib import Path

import pytest

from npformer.cli.main import main
from npformer.data import codec_from_json
from npformer.storage.checkpoint import load_checkpoint

NOUNS = ["dog", "cat", "bird", "horse", "bicycle", "snowboarder"]
FRENCH = ["chien", "chat", "oiseau", "cheval", "vélo", "surfeur"]
TINY = [f"--set={size}" for size in ("d_model=16", "d_ff=16", "n_heads=2", "n_layers=1")] + ["--steps", "4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Train a run on subwords for four steps and return its folder."""
    path = tmp_path_factory.mktemp("subwords")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        english = [f"The {a} sees the {b}." for a in NOUNS for b in NOUNS]
        french = [f"Le {a} voit le {b}." for a in FRENCH for b in FRENCH]
        Path("train.en").write_text("\n".join([*english, "", "A dog."]) + "\n", encoding="utf-8")
        Path("train.fr").write_text("\n".join([*french, "Rien.", "Un chien. " * 20]) + "\n", encoding="utf-8")
        command = ["train", "train.en", "train.fr", "--subwords", "80", "--set", "tied=all"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert main([*command, "--run", "runs/tiny", *TINY]) == 0
        assert "38 pairs: 1 empty, 1 of wildly different lengths left out, 36 kept" in printed.getvalue()
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_source_and_target_use_the_same_pieces():
    checkpoint = load_checkpoint("runs/tiny/last.safetensors")
    source, target = map(codec_from_json, checkpoint.codecs.values())
    assert source.vocabulary == target.vocabulary
    model = checkpoint.model_settings
    assert model["source_vocab"] == model["target_vocab"] == 80
    assert (checkpoint.dataset["subwords"], checkpoint.dataset["filtered"]) == (80, True)


def test_the_run_translates_and_resumes(capsys):
    assert main(["translate", "--model", "runs/tiny", "The birds see a 漢字."]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    assert printed.err == "npformer: line 1: the model does not know '漢字' and reads <UNK> instead\n"
    assert main(["train", "--resume", "runs/tiny"]) == 0
