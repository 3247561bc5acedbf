"""PyTorch's step: its model is the same model, and a step makes an update."""

from dataclasses import replace

import numpy as np
import pytest
from bench_toys import TIED, TOY
from paths import ORACLE

from npformer.bench.setups import DROPOUT
from npformer.models.transformer import Transformer


@pytest.mark.torch
@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_pytorchs_model_is_the_same_model(tied, monkeypatch):
    """Both models have the same parameters and, with equal values and no dropout, the same logits."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ORACLE)
    from oracle_models import D_MODEL, npformer_names

    from npformer.bench.torch_step import Translator

    setup = replace(TOY, d_model=D_MODEL, tied=tied)
    theirs, ours, batch = Translator(setup).train(), Transformer(setup.config()), setup.batch()
    for layer in theirs.modules():
        for name in ("dropout", "p"):
            if isinstance(getattr(layer, name, None), float):
                assert getattr(layer, name) == DROPOUT
                setattr(layer, name, 0.0)
    named = npformer_names(theirs, lambda parameter: parameter if parameter is None else parameter.detach())
    ours.load_state_dict({name: value.numpy() for name, value in named if value is not None})
    assert ours.count_parameters() == sum(parameter.numel() for parameter in theirs.parameters())
    logits, _ = ours.forward(*batch.inputs)
    expected = theirs(*map(torch.from_numpy, batch.inputs)).detach().numpy()
    words = batch.target_in != 0
    np.testing.assert_allclose(logits[words], expected[words], rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_pytorchs_step_makes_an_update():
    pytest.importorskip("torch")
    from npformer.bench.torch_step import torch_peak, torch_step

    step = torch_step(TIED, threads=1, device="cpu", tf32=False)
    losses = [step() for _ in range(100)]
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) - 0.01
    assert torch_peak("cpu") is None
