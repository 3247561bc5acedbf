"""PyTorch's own encoder as the oracle of both language models: logits and every gradient to 1e-10."""

import numpy as np
import pytest
from tiny import tiny_config

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.bert import MaskedLanguageModel
from npformer.models.gpt import CausalLanguageModel

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

IDS = np.array([[2, 5, 6, 7, 5], [4, 8, 3, 0, 0]])
ASKED = np.array([[5, 0, 7, 0, 3], [0, 7, 4, 0, 0]])


def torch_stack(config):
    """Return a torch.nn.TransformerEncoder with the same settings, in double precision."""
    layer = torch.nn.TransformerEncoderLayer(
        config.d_model,
        config.n_heads,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=config.norm == "pre",
        dtype=torch.float64,
    )
    norm = torch.nn.LayerNorm(config.d_model, config.norm_eps, dtype=torch.float64)
    return torch.nn.TransformerEncoder(
        layer, config.n_layers, norm if config.final_norm else None, enable_nested_tensor=False
    )


def names(n_layers, final_norm):
    """Map PyTorch's parameters to ours; PyTorch's weights are (out, in), with q, k, v in one matrix."""
    pairs = {}
    for i in range(n_layers):
        ours, theirs = f"encoder.layers.{i}", f"layers.{i}"
        for part in ("weight", "bias"):
            pairs[f"{theirs}.self_attn.in_proj_{part}"] = f"{ours}.self_attention.query_key_value.{part}"
            pairs[f"{theirs}.self_attn.out_proj.{part}"] = f"{ours}.self_attention.output.{part}"
            pairs[f"{theirs}.linear1.{part}"] = f"{ours}.feed_forward.inner.{part}"
            pairs[f"{theirs}.linear2.{part}"] = f"{ours}.feed_forward.outer.{part}"
        for number, residual in (("1", "self_residual"), ("2", "feed_forward_residual")):
            pairs[f"{theirs}.norm{number}.weight"] = f"{ours}.{residual}.norm.gain"
            pairs[f"{theirs}.norm{number}.bias"] = f"{ours}.{residual}.norm.bias"
    if final_norm:
        pairs |= {"norm.weight": "encoder.norm.gain", "norm.bias": "encoder.norm.bias"}
    return pairs


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", [MaskedLanguageModel, CausalLanguageModel])
def test_logits_and_gradients(kind, norm):
    config = tiny_config(
        source_vocab=9,
        norm=norm,
        final_norm=norm == "pre",
        tied="output",
        activation="gelu",
        positions="learned",
        fused_projections=True,
    )
    model = kind(config, rng=np.random.default_rng(0), dtype=np.float64)
    model.values += 0.1 * np.random.default_rng(1).standard_normal(model.values.shape)
    ours = dict(model.named_parameters())
    stack, pairs = torch_stack(config), names(config.n_layers, config.final_norm)
    theirs = dict(stack.named_parameters())
    assert set(theirs) == set(pairs)
    with torch.no_grad():
        for name, parameter in theirs.items():
            parameter.copy_(torch.tensor(ours[pairs[name]].value.T))
    words, positions = (
        torch.tensor(ours[name].value, requires_grad=True)
        for name in ("embedding.tokens.weight", "embedding.positions.weight")
    )
    x = words[torch.tensor(IDS)] * config.d_model**0.5 + positions[: IDS.shape[1]]
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1) if kind is CausalLanguageModel else None
    expected = stack(x, causal, torch.tensor(IDS == 0)) @ words.T

    logits, cache = model.forward(IDS)
    real = IDS != 0
    np.testing.assert_allclose(logits[real], expected.detach().numpy()[real], rtol=1e-10, atol=1e-12)
    loss, loss_cache = cross_entropy(logits, ASKED, pad_id=0)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    torch_loss = torch.nn.functional.cross_entropy(
        expected.reshape(-1, 9), torch.tensor(ASKED).reshape(-1), ignore_index=0
    )
    torch_loss.backward()
    assert loss == pytest.approx(torch_loss.item(), rel=1e-12)
    for name, parameter in theirs.items():
        found = ours[pairs[name]].grad.T
        np.testing.assert_allclose(found, parameter.grad.numpy(), rtol=1e-10, atol=1e-12, err_msg=name)
    for name, leaf in {"embedding.tokens.weight": words, "embedding.positions.weight": positions}.items():
        np.testing.assert_allclose(ours[name].grad, leaf.grad.numpy(), rtol=1e-10, atol=1e-12, err_msg=name)
