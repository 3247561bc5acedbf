"""The progress display of `npformer train`: a bar and a few lines, on a terminal of 80 columns."""

import io
import re
import sys

import pytest
from rich.console import Console

from npformer.cli.progress import training_progress
from npformer.training import Averaged, Noted, Saved, Scored, Started, Stepped, Stopped, Validated

REDRAWN = re.compile(r"[\r\n]+|\033\[\d*[AK]")  # a line ends here, or the same line is written again
COLOURS = re.compile(r"\033\[[0-9;?]*[a-zA-Z]")


def lines_of(raw):
    """Return every line that was ever visible, without colours."""
    lines = (COLOURS.sub("", line).rstrip() for line in REDRAWN.split(raw))
    return [line for line in lines if line]


@pytest.fixture
def shown():
    """Report the events of a long run and return the lines visible on a terminal of 80 columns."""

    def show(*events):
        file = io.StringIO()
        with training_progress(Console(width=80, force_terminal=True, highlight=False, file=file)) as report:
            for event in events:
                report(event)
        return lines_of(file.getvalue())

    return show


def step_of(step, steps, left=8000.0):
    return Stepped(step, steps, 12.345, 1e-3, 1.0, 1700, 12_345.6, left)


def test_each_measurement_leaves_one_line(shown, tmp_path):
    lines = shown(
        Started(0, 30_000, 2_600_000, tmp_path),
        step_of(29_999, 30_000),
        Validated(29_750, 1.81234, 0.65432, best=True),
        Validated(30_000, 1.81234, 0.65432, best=False),
        Scored(30_000, 38.456, 200),
        Averaged(30_000, 10, 1.80123, best=True),
        Averaged(30_000, 10, None, best=False),
        Noted(0, "BLEU needs sacrebleu; the run continues without it"),
        Saved(30_000, tmp_path),
        Stopped(30_000, 30_000, "finished"),
    )
    assert [line for line in lines if not line.startswith("training")] == [
        "2,600,000 parameters, 30,000 steps to go",
        "step  29750  validation loss 1.8123  token accuracy 65.4%  (best so far)",
        "step  30000  validation loss 1.8123  token accuracy 65.4%",
        "step  30000  BLEU 38.46  (greedy, 200 validation sentences)",
        "average of 10 snapshots  validation loss 1.8012  (best of the run)",
        "average of 10 snapshots",
        "step      0  note: BLEU needs sacrebleu; the run continues without it",
    ]
    assert max(map(len, lines)) <= 80


def test_a_run_on_a_real_terminal(tmp_path):
    terminals = pytest.importorskip("pseudo_terminal")
    settings = [
        f"--set={each}" for each in ("validate_every=5", "bleu_every=5", "average_last=2", "average_every=3")
    ]
    train = [sys.executable, "-m", "npformer", "train", "--task", "reverse", "--steps", "10", "--run", "run"]
    terminal = terminals.Terminal([*train, *settings], tmp_path, columns=80)
    terminal.read(until="never")
    assert terminal.close() == 0, terminal.raw
    lines = lines_of(terminal.raw)
    assert max(map(len, lines)) <= 80
    assert any(re.search(r"10/10 loss \d\.\d{3} +[\d,]+ tokens/s", line) for line in lines)
    assert sum("validation loss" in line and line.startswith("step") for line in lines) == 2
    assert sum(line.startswith("average of 2 snapshots") for line in lines) == 1
    assert "checkpoints, log and curves: run" in lines
    assert (tmp_path / "run/curves.png").exists()
