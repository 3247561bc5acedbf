"""The models between 2017's and Llama's: each differs in one part, and all gradients are right."""

from itertools import cycle, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from npformer.data.text import TextBatch
from npformer.learn.experiments import ablation
from npformer.learn.experiments.ablation import MEASURED, RATES, SEEDS, make_model
from npformer.learn.experiments.measured_runs import Result, read_results
from npformer.training import loss_and_gradients

STAGES = ablation.stages()


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_the_gradient_of_a_stage(stage):
    """The derivative of the loss along a random direction is the product with the gradient."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 65, (2, 9))
    batch = TextBatch(ids[:, :-1], ids[:, 1:])
    model = make_model(stage, 0, np.float64)
    v = rng.choice([-1.0, 1.0], model.values.size)
    loss_and_gradients(model, [batch])
    # so small that hardly any unit of a ReLU changes its sign between the two sides
    slope, epsilon, sides = model.grads @ v, 1e-8, []
    for sign in (1, -1):
        model.values += sign * epsilon * v
        sides.append(loss_and_gradients(model, [batch])[0])
        model.values -= sign * epsilon * v
    assert_allclose(slope, (sides[0] - sides[1]) / (2 * epsilon), rtol=1e-5)


def test_each_stage_changes_one_part():
    for before, after in pairwise(STAGES):
        settings = [stage.config.to_dict() for stage in (before, after)]
        changed = [name for name in settings[0] if settings[0][name] != settings[1][name]]
        others = (before.norm_after != after.norm_after) + (before.optimizer != after.optimizer)
        assert len(changed) + others == 1, after.name


def test_the_experiment(tmp_path, monkeypatch):
    """Each stage is searched with all rates, and compared with its own best rate and with every seed."""
    best = dict(zip((stage.name for stage in STAGES), cycle(RATES), strict=False))

    def train(stage, trial, dataset):
        return Result(*trial, 1, 2.0 + (trial.learning_rate != best[stage.name]), [], 0.0)

    monkeypatch.setattr(ablation, "train_stage", train)
    measured = ablation.measure(tmp_path / "results.json")
    assert {name: of[0].learning_rate for name, of in measured.items()} == best
    assert all(tuple(result.seed for result in of) == SEEDS for of in measured.values())
    assert len(read_results(tmp_path / "results.json")) == len(STAGES) * (len(RATES) + len(SEEDS))


def test_the_results_that_ship_are_those_of_the_experiment(tmp_path, monkeypatch):
    """Nothing is left to train, and the experiment returns the results that are compared."""
    path = tmp_path / "results.json"
    path.write_bytes(MEASURED.read_bytes())
    monkeypatch.setattr(ablation, "train_stage", None)
    assert ablation.measure(path) == ablation.compared(read_results(MEASURED))
    assert len(read_results(MEASURED)) == len(STAGES) * (len(RATES) + len(SEEDS))
