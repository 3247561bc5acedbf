"""Short trainings of GPTs: what a result contains, how results are stored, and how an experiment goes on."""

import pytest

from npformer import UserError
from npformer.learn.experiments import caching, experts, induction, measured_runs, muon, recall
from npformer.learn.experiments.measured_runs import Result, Results, Trial, read_results

RESULT = Result("a", 0.01, 20, 3, 100, 2.5, [4.0, 3.0], 1.5)


def test_an_interrupted_experiment_goes_on(tmp_path):
    """A trial whose result is in the file is not trained again."""
    path, trained = tmp_path / "results.json", []

    def train(trial):
        trained.append(trial)
        return RESULT._replace(model=trial.model)

    trials = [Trial(model, 0.01, 20, 3) for model in "abc"]
    first, seen = Results(path), []
    for trial in trials[:2]:
        first.measure(trial, train)
    again = Results(path, seen.append)
    found = [again.measure(trial, train) for trial in trials]
    assert [result.model for result in found] == ["a", "b", "c"]
    assert trained == trials
    assert [result.model for result in seen] == ["c"]
    assert read_results(path) == found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "is a list and not a JSON object: measure it again"),
        ('{"format": 2, "results": []}', "has format 2"),
        ('{"format": 1}', "has no entry 'results'"),
        ('{"format": 1, "results": [3]}', "result 1 of the file of results"),
        ('{"format": 1, "results": [{"model": "a"}]}', "has no entry 'learning_rate'"),
    ],
)
def test_another_file_is_refused(tmp_path, content, words):
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(UserError, match=str(path)) as caught:
        read_results(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "experiment", [caching, experts, induction, muon, recall], ids=lambda module: module.__name__
)
def test_nothing_is_left_to_train_of_the_results_that_ship(experiment, tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    path.write_bytes(experiment.MEASURED.read_bytes())
    monkeypatch.setattr(experiment, "train_model", None)
    measured = experiment.measure(path)
    assert len({result.seed for result in measured}) == len(experiment.SEEDS) >= 3
    assert all(result in read_results(experiment.MEASURED) for result in measured)


def test_the_best_learning_rate():
    losses = {0.01: 2.5, 0.02: 2.25, 0.04: 2.75}
    results = [RESULT._replace(learning_rate=rate, valid_loss=loss) for rate, loss in losses.items()]
    assert measured_runs.best_learning_rate(results) == 0.02
    with pytest.raises(UserError, match="there are no results"):
        measured_runs.best_learning_rate([])
