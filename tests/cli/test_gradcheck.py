"""npformer gradcheck with --model, the gradients of a model on a sentence, and with --backend, on a GPU."""

import json

import pytest
from commands import refused, said
from tiny_runs import CHECKPOINTS

from npformer.checking.cases import device as on_device
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


def test_components_on_a_device(capsys, device, monkeypatch):
    """An array that is wrong on the device alone is named."""
    assert "all correct" in said(capsys, "gradcheck softmax --backend cupy")
    assert "give the name of a layer" in refused(capsys, "gradcheck 'kernel linear' --backend cupy")
    right = on_device._arrays

    def wrong_there(case, dtype, backend, seed):
        arrays = right(case, dtype, backend, seed)
        return arrays | {"gradient 0": arrays["gradient 0"] * (1.01 if backend == "cupy" else 1)}

    monkeypatch.setattr(on_device, "_arrays", wrong_there)
    assert "FAIL  gradient 0" in said(capsys, "gradcheck softmax --backend cupy", status=1)
