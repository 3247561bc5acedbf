"""Sixty-two layers at scales from 1e-8 to 1e8: each right one passes, and each wrong one fails."""

import inspect

import numpy as np
import pytest
from helpers.new_layers import LAYERS

from npformer import gradcheck


def _library(name):
    library = name.split()[0]
    return library if library in ("torch", "jax") else None


def _marked(layer):
    library = _library(layer[0])
    return pytest.param(*layer, id=layer[0], marks=[getattr(pytest.mark, library)] if library else [])


@pytest.mark.parametrize(("name", "make", "inputs", "scales"), [_marked(layer) for layer in LAYERS])
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_the_verdict_is_right_at_every_scale(name, make, inputs, scales, right):
    if _library(name):
        pytest.importorskip(_library(name))
    for scale in scales:
        own = {"scale": scale} if "scale" in inspect.signature(make).parameters else {}
        with np.errstate(all="ignore"):
            report = gradcheck(make(right=right, **own), *inputs(scale), library=_library(name))
        assert report.ok == right, f"at {scale}:\n{report}"


def test_there_are_thirty_of_each_kind():
    assert len(LAYERS) >= 30
