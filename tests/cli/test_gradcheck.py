"""npformer gradcheck of components, of a model on a sentence (--model), and on a GPU (--backend)."""

import json
import re

import pytest
from commands import refused, said

from npformer.checking.cases import device as on_device
from npformer.nn import LayerNorm


def test_gradcheck_of_some_components(capsys):
    rows = json.loads(said(capsys, "gradcheck softmax --json"))
    assert {"name", "tensor", "error", "method", "ok"} <= set(rows[0])
    assert {row["name"] for row in rows} == {"softmax", "log-softmax", "softmax of masked scores"}
    assert "all correct" in said(capsys, "gradcheck 'layer norm'")
    both = said(capsys, "gradcheck 'layer norm' 'kernel layer_norm'")
    assert re.search(r"largest relative error \S+e-1[56] in float64 and \S+e-0[678] in float32", both)
    assert "gain" in said(capsys, "gradcheck 'layer norm' --verbose")
    assert "layer norm\n" in said(capsys, "gradcheck --list")


@pytest.mark.usefixtures("runs")
def test_the_gradients_of_a_model(capsys, monkeypatch):
    check = "gradcheck --model runs/gpt 'the cat'"
    out = said(capsys, check)
    assert "the loss of runs/gpt" in out
    assert "1 component, " in out
    rows = json.loads(said(capsys, f"{check} --json"))
    assert all(row["ok"] for row in rows)
    right = LayerNorm.backward
    monkeypatch.setattr(LayerNorm, "backward", lambda self, dy, cache: 1.5 * right(self, dy, cache))
    assert "FAIL" in said(capsys, f"{check} --verbose", status=1)


def test_the_backend_numpy_is_the_default(capsys):
    options = "--backend numpy --method difference --json"
    rows, named = (said(capsys, f"gradcheck softmax {given}") for given in (options, options[16:]))
    assert rows == named
    assert "there is no file a.py" in refused(capsys, "gradcheck a.py:b --shape 2 --backend numpy")


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
