"""npformer family: the gradient errors of every member, and the comparison of the translators."""

import json

import pytest
from commands import said

from npformer.cli import family
from npformer.cli.main import main
from npformer.data.corpus import builtin_corpus
from npformer.learn.experiments import family as experiment
from npformer.nn.attention import BasicSelfAttention
from npformer.storage.checkpoint import load_checkpoint


def test_every_error_is_measured_and_small(capsys):
    rows = json.loads(said(capsys, "family --json"))
    assert len(rows) == len(family.MEMBERS) >= 14
    assert all(row["ok"] and 0 < row["error"] <= 1e-11 for row in rows)
    assert {row["name"]: row["parameters"] for row in rows}["heads"] == 4 * (64 * 64 + 64)


def test_the_table_reports_a_wrong_gradient(monkeypatch, capsys):
    right, few = BasicSelfAttention.backward, family.MEMBERS[1:3]
    monkeypatch.setattr(family, "MEMBERS", few)
    out = said(capsys, "family")
    assert all(row[0] in out and row[1] in out for row, _ in few)
    assert "FAIL" not in out
    monkeypatch.setattr(BasicSelfAttention, "backward", lambda self, dy, cache: 0.5 * right(self, dy, cache))
    assert "FAIL" in said(capsys, "family", status=1)


@pytest.fixture
def small_comparison(monkeypatch, some_pairs):
    """Reduce the comparison to three systems, a few held-out sentences and short sentences to time."""
    corpus = builtin_corpus()
    monkeypatch.setattr(family, "builtin_corpus", lambda: corpus._replace(test=corpus.test[::150]))
    monkeypatch.setattr(family, "builtin_dataset", lambda: some_pairs)
    systems = {"additive": "rnn-additive", "Universal": "universal", "Transformer": "small"}
    monkeypatch.setattr(experiment, "SYSTEMS", systems)
    monkeypatch.setattr(experiment, "TIMED_LENGTHS", (4, 8))
    monkeypatch.setattr(experiment, "TIMED_STEPS", 2)


@pytest.mark.usefixtures("small_comparison")
def test_the_comparison(tmp_path, capsys):
    """A comparison with two training steps and two seeds returns results of the right form."""
    folder = tmp_path / "runs"
    assert main(["family", "--measure", "--steps", "2", "--seeds", "2", "--out", str(folder)]) == 0
    made = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    assert made["format"] == 2
    assert "2 steps of 64 sentences, seeds 0 to 1" in made["made"]
    assert [row["name"] for row in made["rows"]] == ["additive", "Universal", "Transformer"]
    for row in made["rows"]:
        assert abs(row["parameters"] / made["rows"][-1]["parameters"] - 1) < 0.02
        assert row["seconds"] > 0
        assert len(row["step"]) == len(row["exact"]) == 2
        assert all(0 <= share <= 1 for share in row["exact"])
    assert made["rows"][-1]["steps"] == 2
    assert "additive" in capsys.readouterr().out
    seeds = [load_checkpoint(folder / f"small-{seed}" / "last.safetensors") for seed in (0, 1)]
    assert [checkpoint.training_settings["seed"] for checkpoint in seeds] == [0, 1]


def test_the_chosen_trial():
    """The lowest loss is chosen, and of losses within 1 % the one with the lowest learning rate."""
    losses = {("a", 0.003): 1.02, ("a", 0.006): 1.009, ("a", 0.01): 1.0, ("b", 0.006): 3.0, ("b", 0.01): 2.0}
    trials = [experiment.Trial(name, name, rate, {}, loss) for (name, rate), loss in losses.items()]
    chosen = {trial.name: trial.learning_rate for trial in experiment.best_trials(trials)}
    assert chosen == {"a": 0.006, "b": 0.01}


def test_a_slower_system_makes_fewer_steps(monkeypatch, some_pairs):
    """The number of steps is that of the Transformer, divided by the ratio of the times of a step."""
    seconds = {"TransformerConfig": 0.02, "RecurrentConfig": 0.01, "UniversalConfig": 0.05}
    monkeypatch.setattr(
        experiment, "seconds_per_step", lambda config, dataset: seconds[type(config).__name__]
    )
    steps = {system.model: system.training.steps for system in experiment.plan(some_pairs, 100)}
    assert steps == dict.fromkeys(experiment.SYSTEMS.values(), 200) | {"small": 100, "universal": 40}
