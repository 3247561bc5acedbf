"""Mixtures of experts on four languages: what a batch contains, and the shares of the experts."""

import numpy as np

from npformer.learn.experiments.experts import (
    BATCH,
    CONTEXT,
    EXPERTS,
    MODELS,
    config_of,
    draw_texts,
    shares_of,
)
from npformer.models.registry import build


def test_a_batch_has_equally_many_windows_of_each_language():
    texts = draw_texts()
    batch = next(texts.batches(3))
    assert batch.ids.shape == batch.target_out.shape == (BATCH, CONTEXT)
    for language, rows in enumerate(np.split(batch.ids, 4)):
        text = texts.codec.decode(texts.train[language].tolist())
        assert all(texts.codec.decode(row.tolist()) in text for row in rows)
    *_, sums = (texts.codec.decode(ids.tolist()) for ids in texts.valid)
    assert all(eval(line.replace("=", "==")) for line in sums.split("\n")[1:-1])


def test_one_network_computes_at_least_as_much_for_each_character_as_experts():
    dense, *mixtures = (build(config_of(model)) for model in MODELS)
    network = dense.layers[0].feed_forward.count_parameters()
    for model in mixtures:
        mixture = model.layers[0].feed_forward
        products = mixture.router.count_parameters() + mixture.top_k * mixture.experts[0].count_parameters()
        assert 0.98 * network < products <= network
    assert [model.config.balance_weight for model in mixtures] == [0.01, 0, 0.01, 0]
    shares = shares_of(mixtures[0])
    assert shares.shape == (2, 4, EXPERTS)
    np.testing.assert_allclose(shares.sum(-1), 1)
