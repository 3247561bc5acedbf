"""The GPT that counts: its results are those of a GPT, and its counts are those of the products."""

import numpy as np
import pytest

from npformer.learn.course.metered import MeteredGPT, cost_of
from npformer.models.gpt import GPT, GPTConfig

SIZES = {"d_model": 24, "n_heads": 4, "n_kv_heads": 2, "n_layers": 2, "d_ff": 20, "context": 16}
CONFIG = GPTConfig.preset("gpt-shakespeare", **SIZES)
IDS = np.random.default_rng(3).integers(0, CONFIG.vocab_size, (3, 9))


def multiplications(n_positions, n_pairs):
    """Return those for one text: of positions, of pairs of a query and a key, and of one vector of logits."""
    d, e = CONFIG.d_model, CONFIG.key_heads * CONFIG.d_head
    layer = n_positions * (2 * d * d + 2 * d * e + 3 * d * CONFIG.hidden_width) + 2 * d * n_pairs
    return CONFIG.n_layers * layer + d * CONFIG.vocab_size


@pytest.mark.parametrize("length", [2, 8])
def test_the_costs_of_a_prefill_and_of_a_decode_step(length):
    model = MeteredGPT(CONFIG)
    kv_cache = model.empty_kv_cache()
    prefill = cost_of(model.decode_step, IDS[:, :length], 0, kv_cache)
    step = cost_of(model.decode_step, IDS[:, length], length, kv_cache)
    assert prefill.multiplications == len(IDS) * multiplications(length, length**2)
    assert step.multiplications == len(IDS) * multiplications(1, length + 1)
    weights = sum(p.value.nbytes for p in model.parameters() if p.value.ndim == 2)
    held = sum(each.k.nbytes + each.v.nbytes for each in kv_cache)
    assert step.bytes_read == weights + held
    assert step.intensity == 2 * step.multiplications / step.bytes_read


def test_the_logits_are_those_of_a_gpt():
    model, metered = GPT(CONFIG, rng=np.random.default_rng(0)), MeteredGPT(CONFIG)
    assert len(metered.empty_kv_cache()) == CONFIG.n_layers
    assert metered.empty_kv_cache(7)[0].capacity == 7
    for ids in (IDS, IDS[:, 0]):
        expected, _ = model.decode_step(ids, 0, None)
        found, _ = metered.decode_step(ids, 0, None)
        np.testing.assert_allclose(found, expected, atol=1e-6)  # the rounding of float32
