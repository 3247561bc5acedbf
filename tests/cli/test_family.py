"""npformer family: the gradient errors of every member, and the comparison of the translators."""

import json

import numpy as np
import pytest

from npformer.cli import family
from npformer.cli.main import main
from npformer.data.corpus import builtin_corpus
from npformer.learn.course.lesson import all_lessons
from npformer.learn.experiments import family as experiment
from npformer.models.registry import ARCHITECTURES
from npformer.nn.attention import BasicSelfAttention


def test_bare_self_attention_computed_with_loops():
    x = np.random.default_rng(0).standard_normal((1, 3, 4))
    y, cache = BasicSelfAttention().forward(x)
    for i in range(3):
        e = [np.exp(x[0, i] @ x[0, j]) for j in range(3)]
        np.testing.assert_allclose(y[0, i], sum(e[j] * x[0, j] for j in range(3)) / sum(e))
    np.testing.assert_allclose(cache.weights.sum(-1), 1)


def test_the_table(capsys):
    assert main(["family"]) == 0
    out = capsys.readouterr().out
    for member in family.MEMBERS:
        assert member.name in out
        assert member.compares in out
    assert "FAIL" not in out


def test_every_error_is_measured_and_small(capsys):
    assert main(["family", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(family.MEMBERS) >= 14
    assert all(row["ok"] and 0 < row["error"] <= 1e-11 for row in rows)
    assert {row["name"]: row["parameters"] for row in rows}["heads"] == 4 * (64 * 64 + 64)


def test_a_wrong_gradient_is_reported(monkeypatch, capsys):
    right = BasicSelfAttention.backward
    monkeypatch.setattr(BasicSelfAttention, "backward", lambda self, dy, cache: 0.5 * right(self, dy, cache))
    assert main(["family"]) == 1
    assert "FAIL" in capsys.readouterr().out


def test_each_member_has_a_lesson():
    numbers = {lesson.number for lesson in all_lessons()}
    assert {member.lesson for member in family.MEMBERS} <= numbers


def test_the_comparison(tmp_path, monkeypatch, capsys):
    """A comparison of two systems with two training steps returns results of the right form."""
    corpus = builtin_corpus()
    small = corpus._replace(test=corpus.test[:40])
    monkeypatch.setattr(family, "builtin_corpus", lambda: small)
    monkeypatch.setattr(experiment, "SYSTEMS", {"additive": "rnn-additive", "Transformer": "small"})
    monkeypatch.setattr(experiment, "TIMED_LENGTHS", (4, 8))
    assert main(["family", "--measure", "--steps", "2", "--out", str(tmp_path / "runs")]) == 0
    made = json.loads((tmp_path / "runs" / "table.json").read_text(encoding="utf-8"))
    assert "2 steps of 64 sentences, seed 0" in made["made"]
    assert [row["name"] for row in made["rows"]] == ["additive", "Transformer"]
    for row in made["rows"]:
        assert abs(row["parameters"] / 438_144 - 1) < 0.01
        assert row["epoch"] > 0
        assert len(row["step"]) == 2
        assert 0 <= row["exact"] <= 1
    assert "additive" in capsys.readouterr().out


def test_the_systems_are_presets():
    assert set(experiment.SYSTEMS.values()) <= set(ARCHITECTURES.names())


@pytest.mark.parametrize("steps", ["0", "-3"])
def test_a_comparison_without_steps(steps, capsys):
    assert main(["family", "--measure", "--steps", steps]) == 2
    assert f"--steps is '{steps}': give a whole number, 1 or more" in capsys.readouterr().err
