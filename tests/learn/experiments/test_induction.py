"""Induction heads: the rows, the two numbers of a head, the model's gradient, and the results that ship."""

import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.experiments import induction
from npformer.learn.experiments.induction import LENGTH, MEASURED, MODELS, SEEDS, Rows, draw_rows
from npformer.learn.experiments.measured_runs import read_results

ROWS = draw_rows(np.random.default_rng(3), 4)


def test_a_copied_token_follows_an_equal_one():
    ids, targets = ROWS.batch
    for row, place in zip(*np.nonzero(ROWS.copied), strict=True):
        period = int(LENGTH - ROWS.copied[row].sum())
        assert (ids[row, place], targets[row, place]) == (
            ids[row, place - period],
            ids[row, place - period + 1],
        )
    assert not ROWS.copied[:, :11].any()
    assert ROWS.copied[:, 16:].all()


def test_the_scores_of_two_heads():
    """One head attends to the token before, and the other one to the token one period, less one, before."""
    period = LENGTH - ROWS.copied[:1].sum()
    queries, keys = np.arange(LENGTH)[:, None], np.arange(LENGTH)
    weights = np.stack([keys == np.maximum(queries - 1, 0), keys == np.maximum(queries - period + 1, 0)])
    batch = type(ROWS.batch)(*(array[:1] for array in ROWS.batch))
    scores = induction.attention_scores(Rows(batch, ROWS.copied[:1]), weights[None] * 1.0)
    assert_allclose(scores["previous"], [1, 1 / (LENGTH - 1)])  # of the second head, at query 1
    assert scores["stripe"][1] == 1 > 5 * scores["stripe"][0]


def test_with_two_layers_every_seed_copies_and_with_one_layer_none():
    results = read_results(MEASURED)
    assert [result.model for result in results] == [name for name in MODELS for _ in SEEDS]
    assert max(result.valid_loss for result in results[: len(SEEDS)]) < 0.5
    assert min(result.valid_loss for result in results[len(SEEDS) :]) > 2
