"""npformer pretrained --export RUN --layout: a run of any kind as a Hugging Face folder."""

import numpy as np
import pytest
from commands import refused, said
from hugging_face_folders import GPT2, gpt2_tensors, write_folder

import npformer
from npformer.interop import load_folder

pytestmark = pytest.mark.usefixtures("runs")
IDS = np.array([[4, 5, 6]])
EXPORT = "pretrained --export runs/bert --layout bert --out new"


def test_a_run_becomes_a_folder_that_is_loaded_again(capsys):
    assert "wrote new: bert, " in said(capsys, f"{EXPORT} --last")
    np.testing.assert_array_equal(
        load_folder("new", "float64").model(IDS), npformer.load("runs/bert").logits(IDS)
    )
    assert "new is not empty" in refused(capsys, EXPORT)


def test_a_hugging_face_folder_has_no_card(capsys, tmp_path):
    write_folder(tmp_path / "hub", GPT2, gpt2_tensors())
    error = refused(capsys, "pretrained --export hub --out new.safetensors")
    assert "is a Hugging Face folder, which has no model card: give --layout" in error
