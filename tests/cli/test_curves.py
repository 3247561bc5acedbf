"""The page of a run's training curves, and the messages for logs that cannot be drawn."""

import dataclasses
import json

import numpy as np
import pytest
from tiny_runs import gpt_checkpoint

from npformer import UserError
from npformer.cli.curves import draw_curves, panels_of
from npformer.cli.main import main
from npformer.plots import Curve, Panel, curve_page
from npformer.plots.curve_plots import smoothed
from npformer.storage.checkpoint import save_checkpoint
from npformer.training import read_log


def made_up_log(steps=600):
    """Return the log of a long run with every kind of entry."""
    rng, log, seconds = np.random.default_rng(0), [], 0.0
    for step in range(10, steps + 1, 10):
        seconds += 6 + rng.random()
        loss = 2 + 7 * np.exp(-step / 100) + 0.1 * rng.standard_normal()
        entry = {"loss": loss, "lr": 1e-3 * step, "norm": 1.0, "tokens": 1700, "tokens_per_second": 3000.0}
        log.append({"step": step, **entry, "seconds": seconds})
        if step % 100 == 0:
            log.append(
                {"step": step, "valid_loss": loss - 0.5, "valid_objective": loss, "seconds": seconds + 2}
            )
            log.append({"step": step, "valid_bleu": step / 20, "sentences": 200, "seconds": seconds + 3})
    log.append({"step": steps, "averaged": 10, "averaged_loss": 1.5, "seconds": seconds + 4})
    return log


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in made_up_log()))
    return folder


def test_the_page_shows_the_log_over_its_minutes(run):
    log = read_log(run)
    loss, bleu, rate, speed = panels_of(log)
    training, valid, average = loss.curves
    np.testing.assert_array_equal(training.y, [entry["loss"] for entry in log if "loss" in entry])
    minutes = [entry["seconds"] / 60 for entry in log if "loss" in entry]
    np.testing.assert_allclose(training.x, minutes, rtol=1e-15)
    assert len(valid.x) == len(bleu.curves[0].x) == 6
    assert bleu.curves[0].y.tolist() == [5, 10, 15, 20, 25, 30]
    assert average.y.tolist() == [1.5]
    assert rate.curves[0].y[-1] == pytest.approx(0.6)
    assert set(speed.curves[0].y) == {3000}


def test_the_page_of_a_language_model_shows_bits_per_character():
    log = [{"step": 2, "valid_loss": 3.0, "valid_bits_per_character": 2.2, "seconds": 120}]
    _, bits = panels_of(log)
    assert bits.name == "bits per character of validation"
    assert [(curve.x.tolist(), curve.y.tolist()) for curve in bits.curves] == [([2.0], [2.2])]


def test_the_page_is_written_to_the_run_or_to_the_given_path(run, tmp_path, capsys):
    assert main(["curves", str(run)]) == 0
    assert f"drawn: {run / 'curves.png'}" in capsys.readouterr().err
    assert main(["curves", str(run), "--out", str(tmp_path / "page.svg")]) == 0
    assert (tmp_path / "page.svg").read_text(encoding="utf-8").count("<svg") == 1
    first = (run / "curves.png").read_bytes()
    draw_curves(run)
    assert (run / "curves.png").read_bytes() == first


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({"dropout": 0.0, "label_smoothing": 0.0}, "training"),
        ({"dropout": 0.0, "attention_dropout": 0.1}, "training, with dropout"),
        ({"dropout": 0.0, "label_smoothing": 0.1}, "training, with label smoothing"),
        ({"dropout": 0.1, "label_smoothing": 0.1}, "training, with dropout and label smoothing"),
    ],
)
def test_the_curve_of_the_training_says_what_the_run_has(settings, label, run, monkeypatch):
    monkeypatch.setattr("npformer.plots.save", lambda figure, path: figure)
    names = [drawn_name(run)]  # a published log has no checkpoint
    checkpoint = dataclasses.replace(gpt_checkpoint(), model_settings=settings)
    save_checkpoint(checkpoint, run / "last.safetensors")
    assert [*names, drawn_name(run)] == ["training", label]


def drawn_name(run):
    return draw_curves(run).axes[0].get_legend().get_texts()[0].get_text()


@pytest.mark.parametrize("n", [1, 2, 10, 49, 600, 2000])
def test_smoothing_takes_the_mean_of_a_window(n):
    values = np.random.default_rng(n).standard_normal(n)
    half = round(0.04 * n / 2)
    expected = [values[max(0, i - min(i, half)) : i + min(i, half) + 1].mean() for i in range(n)]
    np.testing.assert_allclose(smoothed(values), expected, atol=1e-13)
    values[0] = np.nan  # of a loss that was not finite
    assert np.isfinite(smoothed(values)).tolist() == [False] + [True] * (n - 1)
    line = np.arange(n, dtype=float)
    inside = slice(0, n - half)  # a window that is cut off at the end lags behind
    np.testing.assert_allclose(smoothed(line)[inside], line[inside], atol=1e-10)


def test_the_page_refuses_what_it_cannot_draw():
    with pytest.raises(UserError, match="needs panels"):
        curve_page([])
    with pytest.raises(UserError, match="each panel a curve"):
        curve_page([Panel("nothing", [])])
    with pytest.raises(UserError, match="loss: x has 2 numbers, and y 3"):
        curve_page([Panel("loss", [Curve([1, 2], [1, 2, 3])])])
    with pytest.raises(UserError, match="this page of curves does not fit"):
        curve_page([Panel("a", [Curve([0, 1], [0, 1])])] * 12)
