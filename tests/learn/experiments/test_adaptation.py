"""The GPT in another style and with weights of few bits. test_addition.py has the results that ship."""

import numpy as np

from npformer.learn.experiments import adaptation
from npformer.learn.experiments.measured_runs import new_gpt


def test_a_large_channel_changes_nothing_until_weights_are_rounded():
    model = new_gpt(adaptation.CONFIG, 0, np.float64)
    ids = np.random.default_rng(0).integers(0, 65, (1, 12))
    changed = adaptation.with_large_channel(model, 5)
    np.testing.assert_allclose(changed(ids), model(ids), rtol=1e-9)
    errors = [abs(adaptation.quantized(m, 4, "tensor")(ids) - model(ids)).mean() for m in (model, changed)]
    assert errors[1] > 1.3 * errors[0]
    kept = abs(adaptation.quantized(changed, 4, "channel")(ids) - model(ids)).mean()
    assert kept < 1.1 * errors[0]
