"""npformer pretrained --export RUN --layout: a run of any kind as a Hugging Face folder."""

import numpy as np
import pytest
from commands import said
from hugging_face_folders import GPT2, gpt2_tensors, write_folder
from tiny_runs import CHECKPOINTS

import npformer
from npformer.cli.main import main
from npformer.interop import load_folder
from npformer.storage.checkpoint import save_checkpoint

IDS = np.array([[4, 5, 6]])


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    """Work in a folder with a run of each kind."""
    monkeypatch.chdir(tmp_path)
    for name, make in CHECKPOINTS.items():
        (tmp_path / name).mkdir()
        save_checkpoint(make(), f"{name}/last.safetensors")


def test_a_run_becomes_a_folder_that_is_loaded_again(capsys):
    assert "wrote new: bert, " in said(capsys, "pretrained --export bert --layout bert --out new --last")
    np.testing.assert_array_equal(load_folder("new", "float64").model(IDS), npformer.load("bert").logits(IDS))
    assert main(["pretrained", "--export", "bert", "--layout", "bert", "--out", "new"]) == 2
    assert "new is not empty" in capsys.readouterr().err


def test_a_hugging_face_folder_has_no_card(capsys, tmp_path):
    write_folder(tmp_path / "hub", GPT2, gpt2_tensors())
    assert main(["pretrained", "--export", str(tmp_path / "hub"), "--out", "new.safetensors"]) == 2
    assert "is a Hugging Face folder, which has no model card: give --layout" in capsys.readouterr().err
