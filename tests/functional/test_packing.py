"""Packing: tokens without the padding between them, and a model that computes nothing at padding."""

import numpy as np
import pytest

from npformer import Transformer, TransformerConfig
from npformer.functional.packing import find_tokens, pack, unpack
from npformer.kernels import cross_entropy, cross_entropy_backward

IDS = np.array([[5, 6, 7, 0], [8, 0, 0, 0], [5, 5, 5, 5]])
VARIANTS = [
    {},
    {"tied": "none", "fused_projections": True, "output_bias": True},
    {"norm": "pre", "final_norm": True, "activation": "gelu"},
    {"positions": "relative", "max_distance": 2},
    {"positions": "rotary", "norm": "pre", "final_norm": True},
    {"query_masking": "after", "zero_padding": True},
    {"norm": "n-da", "final_norm": True},
]


def test_tokens_are_packed_sentence_after_sentence():
    packing = find_tokens(IDS, 0)
    rows = pack(np.stack([IDS, 10 * IDS], -1), packing)
    np.testing.assert_array_equal(rows[:, 0], [5, 6, 7, 8, 5, 5, 5, 5])
    np.testing.assert_array_equal(unpack(rows, packing)[..., 0], IDS)


def test_packing_and_unpacking_are_each_others_backward_pass():
    rng = np.random.default_rng(0)
    packing = find_tokens(IDS, 0)
    x, rows = rng.standard_normal((3, 4, 2)), rng.standard_normal((8, 2))
    assert np.vdot(pack(x, packing), rows) == pytest.approx(np.vdot(x, unpack(rows, packing)), rel=1e-14)


@pytest.mark.parametrize("settings", VARIANTS, ids=[" ".join(variant) or "default" for variant in VARIANTS])
def test_a_packed_model_computes_the_same(settings):
    config = TransformerConfig(
        source_vocab=9, target_vocab=9, d_model=8, d_ff=12, n_heads=2, n_layers=2, max_length=8, **settings
    )
    model = Transformer(config, rng=np.random.default_rng(1), dtype=np.float64)
    source, target = IDS, IDS[[2, 0, 1]]
    outcomes = []
    for packed in (False, True):
        model.zero_grad()
        logits, cache = model.forward(source, target, packed=packed)
        words = target[target != 0] if packed else target
        loss, loss_cache = cross_entropy(logits, words, smoothing=0.1, pad_id=0)
        model.backward(cross_entropy_backward(1, loss_cache), cache)
        outcomes.append([logits if packed else logits[target != 0], loss, model.grads.copy()])
    for packed, plain in zip(*reversed(outcomes), strict=True):
        np.testing.assert_allclose(packed, plain, rtol=1e-10, atol=1e-13)


def test_the_start_symbol_is_packed_even_if_it_has_the_id_of_padding():
    config = TransformerConfig(
        source_vocab=9, target_vocab=9, d_model=8, d_ff=12, n_heads=2, n_layers=2, start_id=0
    )
    model = Transformer(config, rng=np.random.default_rng(1), dtype=np.float64)
    target_in = np.array([[0, 5, 6, 7], [0, 8, 0, 0], [0, 5, 5, 0]])
    is_token = np.array([[True] * 4, [True, True, False, False], [True, True, True, False]])
    plain, _ = model.forward(IDS, target_in)
    packed, _ = model.forward(IDS, target_in, packed=True)
    np.testing.assert_allclose(packed, plain[is_token], rtol=1e-10, atol=1e-13)
