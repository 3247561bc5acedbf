"""Multi-head latent attention beside the layer of transformers: outputs and gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from npformer.functional.masks import causal_mask
from npformer.nn import MultiHeadLatentAttention, RotaryPositions

H, K, R, C, Q, L, D, T = 3, 3, 4, 5, 6, 2, 12, 7


def test_scores_are_divided_by_the_root_of_the_whole_width_of_a_head():
    rotary = RotaryPositions(T, R + K, rotated=R)
    layer = MultiHeadLatentAttention(D, H, d_latent=C, rotary=rotary, d_head=K)
    assert layer.scale == (R + K) ** -0.5
    assert layer.latent.norm.eps == 1e-6  # as in DeepSeek-V2
    assert not [name for name, _ in layer.named_parameters() if name.endswith("bias")]


@pytest.mark.parametrize("latent_queries", [False, True])
def test_deepseek_v2_of_transformers_computes_the_same(latent_queries, monkeypatch):
    oracles = pytest.importorskip("gpt_oracles")
    torch, modeling = oracles.torch, oracles.modeling_of("deepseek_v2")
    monkeypatch.setitem(oracles.FAMILIES, "deepseek_v2", "DeepseekV2")
    oracles.compute_in_float64(monkeypatch, "deepseek_v2")

    def rotated(x, turns):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2)

    monkeypatch.setattr(
        modeling, "apply_rotary_emb", lambda q, k, turns: (rotated(q, turns), rotated(k, turns))
    )
    widths = {"qk_nope_head_dim": K, "qk_rope_head_dim": R, "kv_lora_rank": C, "v_head_dim": L}
    config = modeling.DeepseekV2Config(
        hidden_size=D,
        num_attention_heads=H,
        num_key_value_heads=H,
        q_lora_rank=Q if latent_queries else None,
        **widths,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(2)
    oracle = modeling.DeepseekV2Attention(config, 0).double()

    rotary = RotaryPositions(T, R + K, rotated=R, layout="interleaved", dtype=np.float64)
    settings = {"d_latent": C, "d_query_latent": Q if latent_queries else None, "d_head": K, "d_value": L}
    layer = MultiHeadLatentAttention(D, H, rotary=rotary, dtype=np.float64, **settings)
    weights = {name: value.detach().numpy().T for name, value in oracle.named_parameters()}
    # transformers has the rotated columns of a head last, and the keys and values of a head side by side
    query = weights["q_b_proj.weight" if latent_queries else "q_proj.weight"].reshape(-1, H, K + R)
    heads = weights["kv_b_proj.weight"].reshape(C, H, K + L)
    layer.query.weight.value[...] = np.roll(query, R, -1).reshape(len(query), -1)
    layer.key_value.weight.value[...] = np.concatenate(
        [heads[..., :K].reshape(C, -1), heads[..., K:].reshape(C, -1)], 1
    )
    both = weights["kv_a_proj_with_mqa.weight"]
    layer.latent.linear.weight.value[...], layer.key_rotary.weight.value[...] = both[:, :C], both[:, C:]
    layer.output.weight.value[...] = weights["o_proj.weight"]
    if latent_queries:
        layer.query_latent.linear.weight.value[...] = weights["q_a_proj.weight"]

    x, dy = np.random.default_rng(3).standard_normal((2, 2, T, D))
    y, cache = layer.forward(x, mask=causal_mask(T, x))
    dx = layer.backward(dy, cache)
    angles = torch.arange(T)[:, None] * 10000.0 ** (-torch.arange(0, R, 2, dtype=torch.float64) / R)
    mask = torch.where(torch.tensor(causal_mask(T, x)), 0.0, -torch.inf)
    theirs = torch.tensor(x, requires_grad=True)
    out, _ = oracle(theirs, mask, position_embeddings=torch.polar(torch.ones_like(angles), angles))
    out.backward(torch.tensor(dy))
    assert_allclose(y, out.detach().numpy(), rtol=1e-10, atol=1e-12)
    assert_allclose(dx, theirs.grad.numpy(), rtol=1e-10, atol=1e-12)
    dboth = oracle.kv_a_proj_with_mqa.weight.grad.numpy().T
    ours = np.concatenate([layer.latent.linear.weight.grad, layer.key_rotary.weight.grad], 1)
    assert_allclose(ours, dboth, rtol=1e-10, atol=1e-12)
