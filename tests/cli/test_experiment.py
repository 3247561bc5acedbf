"""npformer experiment: what it prints, where it writes, and what it refuses."""

import pytest
from commands import said

from npformer.cli import experiment
from npformer.cli.main import main
from npformer.learn.experiments.measured_runs import Result, Results, Trial, read_results

TRIALS = [Trial("a", 0.01, 20, seed) for seed in (1, 2)]


@pytest.fixture
def trained(monkeypatch):
    """Replace the experiments by one of two trials, and return the list of the trials that are trained."""
    done = []

    def train(trial):
        done.append(trial)
        return Result(*trial, 100, 2.5, [3.0], 1.0, {"accuracy": [0.5, 0.25], "shares": [0.0] * 9})

    def measure(path, report):
        results = Results(path, report)
        for trial in TRIALS:
            results.measure(trial, train)

    monkeypatch.setattr(experiment, "EXPERIMENTS", {"ablation": measure})
    return done


def test_the_results_are_printed_and_written(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    out = said(capsys, "experiment ablation")
    assert "seed 2  validation loss 2.5000  accuracy 0.50 0.25  1 s" in out  # no measure of many values
    assert "wrote runs/ablation.json" in out
    assert [result.trial for result in read_results("runs/ablation.json")] == TRIALS
    assert main(["experiment", "ablation"]) == 0
    assert trained == TRIALS  # the second call trains nothing
