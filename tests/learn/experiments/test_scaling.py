"""Scaling: the sizes, the tokens and the fit of a power law."""

from itertools import cycle

import pytest

from npformer.learn.experiments import scaling
from npformer.learn.experiments.measured_runs import Result, read_results
from npformer.learn.experiments.scaling import MEASURED, RATES, SEEDS, SIZES, STEPS
from npformer.models.gpt import GPT


@pytest.mark.parametrize("name", SIZES)
def test_the_parameters_without_the_embedding(name):
    model = GPT(scaling.model_config(name))
    inner = [parameter for layer in model.layers for parameter in layer.parameters()]
    assert scaling.inner_parameters(name) == sum(p.value.size for p in [*inner, model.norm.gain])


def test_the_experiment(tmp_path, monkeypatch):
    """Each size is trained with its own best rate, all numbers of steps and all seeds."""
    best = dict(zip(SIZES, cycle(RATES), strict=False))

    def train(trial, dataset):
        return Result(*trial, 1, 2.0 + (trial.learning_rate != best[trial.model]), [], 0.0)

    monkeypatch.setattr(scaling, "train_size", train)
    measured = scaling.measure(tmp_path / "results.json")
    assert {result.model: result.learning_rate for result in measured} == best
    trials = {(result.model, result.steps, result.seed) for result in measured}
    assert len(measured) == len(trials) == len(SIZES) * len(STEPS) * len(SEEDS)


def test_the_results_that_ship_are_those_of_the_experiment(tmp_path, monkeypatch):
    """Nothing is left to train."""
    path = tmp_path / "results.json"
    path.write_bytes(MEASURED.read_bytes())
    monkeypatch.setattr(scaling, "train_size", None)
    assert scaling.measure(path) == [result for result in read_results(MEASURED) if result.seed in SEEDS]
