"""npformer inspect: runs, shipped translators and Hugging Face folders, whose numbers are not read."""

import json

import numpy as np
import pytest
from commands import said
from hugging_face_folders import GPT2, LLAMA, gpt2_tensors, llama_tensors, write_folder
from tiny_runs import CHECKPOINTS

import npformer
from npformer.cli.inspect import tree
from npformer.interop import load_folder
from npformer.interop.tensor_files import StoredTensor


def test_a_folder_is_described_without_its_numbers(capsys, tmp_path, monkeypatch):
    tensors = {name: tensor.astype(np.float16) for name, tensor in gpt2_tensors().items()}
    folder = write_folder(tmp_path / "folder", GPT2, tensors)
    model = load_folder(folder).model

    def fail(*arguments):
        raise AssertionError("numbers were read")

    monkeypatch.setattr(StoredTensor, "read_into", fail)
    (found,) = json.loads(said(capsys, "inspect --json", folder))
    assert found["kind"] == "GPT (gpt2)"
    assert (found["supported"], found["problem"]) == (True, "")
    assert found["settings"] == json.loads(json.dumps(model.config.to_dict()))
    assert found["parameters"] == model.count_parameters()
    assert found["stored"] == {"F16": 2 * model.count_parameters()}
    assert found["shapes"] == {name: list(p.shape) for name, p in model.named_parameters()}
    lines = said(capsys, "inspect", folder).splitlines()
    n_bytes = 4 * model.count_parameters()
    memory = f"{n_bytes:,} bytes in float32, {2 * n_bytes:,} bytes in float64; the same for gradients"
    assert f"memory       {memory}" in lines
    assert "supported    yes" in lines
    assert "  n_layers                 2" in lines


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_run_of_each_kind(capsys, name):
    model = npformer.load(f"runs/{name}").model
    (found,) = json.loads(said(capsys, f"inspect --last --json runs/{name}"))
    assert found["kind"] == type(model).__name__
    assert found["parameters"] == model.count_parameters()
    assert found["settings"].keys() == model.config.to_dict().keys()
    assert found["stored"] == {}
    text = said(capsys, f"inspect runs/{name}")
    assert f"parameters   {model.count_parameters():,} in {len(model.parameters())} tensors" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_act": "relu"}, "hidden_act is 'relu' in config.json"),
        ({"model_type": "mamba\x1b[31m"}, "model_type is"),
        ({"num_hidden_layers": 3}, "has no tensor model.layers.2."),
    ],
)
def test_a_folder_that_is_not_supported_says_why(capsys, tmp_path, changes, words):
    folder = write_folder(tmp_path / "folder", LLAMA | changes, llama_tensors())
    text = said(capsys, "inspect", folder, status=1)
    assert f"supported    no: {words}" in text.replace(f"{folder} ", "").replace(f" in {folder}", "")
    assert "\x1b" not in text
    assert "vocab_size" in text
    (found,) = json.loads(said(capsys, "inspect --json", folder, status=1))
    assert found["supported"] is False
    assert found["parameters"] == sum(tensor.size for tensor in llama_tensors().values())


def test_the_tree_shows_equal_layers_once():
    shapes = {"embedding.weight": (9, 4)}
    for index in range(3):
        shapes |= {f"layers.{index}.norm.{name}": (4,) for name in ("gain", "bias")}
    shapes["layers.3.norm.gain"] = (5,)
    assert tree(shapes) == [
        "embedding",
        "  weight (9, 4)",
        "layers",
        "  0 to 2",
        "    norm",
        "      gain (4,)",
        "      bias (4,)",
        "  3",
        "    norm",
        "      gain (5,)",
    ]
