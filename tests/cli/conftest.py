"""What the tests of several commands use."""

import dataclasses
from pathlib import Path

import pytest
from tiny_runs import CHECKPOINTS

from npformer import plots
from npformer.data.dataset import builtin_dataset
from npformer.storage.checkpoint import save_checkpoint


@pytest.fixture(scope="session")
def some_pairs():
    """Return the built-in dataset with a part of its sentences, which is made once for all commands."""
    whole = builtin_dataset()
    return dataclasses.replace(whole, train=whole.train[:3000], valid=whole.valid[:50])


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Work in a folder with an untrained run of each kind: runs/translator, runs/gpt and runs/bert."""
    monkeypatch.chdir(tmp_path)
    for name, make in CHECKPOINTS.items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        save_checkpoint(make(), f"runs/{name}/last.safetensors")


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """Work in an empty folder. Return a dictionary that receives the figures, of which none is written."""
    found = {}

    def save(figure, path):
        found[Path(path).name] = figure
        return path

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plots, "save", save)
    return found
