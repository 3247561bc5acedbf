"""npformer gradcheck --model: the gradients of a trained model on a sentence, as a table and as JSON."""

import json

import pytest
from commands import said
from tiny_runs import CHECKPOINTS

from npformer.nn import LayerNorm
from npformer.storage.checkpoint import save_checkpoint


@pytest.fixture(autouse=True)
def run(tmp_path, monkeypatch):
    """Work in a folder with a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    save_checkpoint(CHECKPOINTS["gpt"](), "run/last.safetensors")


def test_the_gradients_of_a_model(capsys, monkeypatch):
    out = said(capsys, "gradcheck --model run 'the cat'")
    assert "the loss of run" in out
    assert "1 component, " in out
    rows = json.loads(said(capsys, "gradcheck --model run 'the cat' --json"))
    assert all(row["ok"] for row in rows)
    right = LayerNorm.backward
    monkeypatch.setattr(LayerNorm, "backward", lambda self, dy, cache: 1.5 * right(self, dy, cache))
    assert "FAIL" in said(capsys, "gradcheck --model run 'the cat' --verbose", status=1)
