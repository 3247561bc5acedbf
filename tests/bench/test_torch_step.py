"""PyTorch's step: its model is the same model, and a step makes an update."""

from dataclasses import replace

import numpy as np
import pytest
from bench_toys import GPT_TOY, TOY
from paths import ORACLE

from npformer.bench.setups import CLIP_NORM, DROPOUT, LEARNING_RATE
from npformer.models.gpt import GPT
from npformer.models.transformer import Transformer
from npformer.training.step import make_step


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


# the weights of npformer's GPT under the names of the benchmark's GPT in PyTorch
ENDS = {
    "tokens.weight": "embedding.tokens.weight",
    "positions.weight": "embedding.positions.weight",
    "output.weight": "embedding.tokens.weight",
    "norm.weight": "norm.gain",
    "norm.bias": "norm.bias",
}
LAYER = {
    "attention_norm": "norm1",
    "query_key_value": "self_attention.query_key_value",
    "joined": "self_attention.output",
    "feed_forward_norm": "norm2",
    "inner": "feed_forward.inner",
    "outer": "feed_forward.outer",
}


def copy_weights(model, oracle):
    """Copy the values of all parameters of npformer's model into PyTorch's."""
    torch = pytest.importorskip("torch")
    state = model.state_dict()
    oracle.load_state_dict({name: torch.from_numpy(_find(state, name)) for name in oracle.state_dict()})


def _find(state, name):
    """Return the array of a parameter of PyTorch's model. Its linear maps have shape (out, in)."""
    if name in ENDS:
        return state[ENDS[name]]
    _, number, layer, kind = name.split(".")
    if layer.endswith("norm"):
        return state[f"layers.{number}.{LAYER[layer]}.{'gain' if kind == 'weight' else 'bias'}"]
    return state[f"layers.{number}.{LAYER[layer]}.{kind}"].T.copy()


@pytest.mark.torch
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("bias", [False, True])
def test_pytorchs_gpt_is_the_same_model(bias, activation):
    torch = pytest.importorskip("torch")
    from npformer.bench.torch_gpt import TorchGPT

    config = GPT_TOY.config().replace(bias=bias, activation=activation)
    ours, theirs = GPT(config), TorchGPT(config)
    ours.values += 0.3 * np.random.default_rng(0).standard_normal(ours.values.shape).astype(np.float32)
    copy_weights(ours, theirs)
    assert ours.count_parameters() == sum(parameter.numel() for parameter in theirs.parameters())
    ids = GPT_TOY.batch().ids
    expected = theirs(torch.from_numpy(ids)).detach().numpy()
    np.testing.assert_allclose(ours(ids), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_pytorchs_step_of_a_gpt_follows_npformers():
    """Both decay the matrices alone and clip the gradient, so that equal models stay equal."""
    torch = pytest.importorskip("torch")
    from npformer.bench import torch_step

    model = GPT(GPT_TOY.config(), rng=np.random.default_rng(0))
    model.values *= 10
    theirs, adam, smoothing = torch_step.make_model(GPT_TOY, "cpu", fused=False)
    copy_weights(model, theirs)
    ours, batch = GPT_TOY.optimizer(model), GPT_TOY.batch()
    ids, targets = map(torch.from_numpy, batch)
    for _ in range(3):
        make_step(model, ours, [batch], None, LEARNING_RATE, CLIP_NORM)
        adam.zero_grad()
        torch.nn.functional.cross_entropy(theirs(ids).flatten(0, 1), targets.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), CLIP_NORM)
        adam.step()
    assert smoothing == 0
    found = model.embedding.tokens.weight.value
    np.testing.assert_allclose(found, theirs.tokens.weight.detach().numpy(), rtol=1e-4, atol=1e-5)
