"""A run that is killed at any moment: its files stay complete, and it resumes to the same result."""

import os
import signal
import sys

import numpy as np
import pytest
from training_runs import assert_same
from training_worker import MEASURED, tiny_run
from worker_process import WORKER, WorkerProcess

from npformer.storage.atomic import is_temporary
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import RunFolder

STEPS = 60
NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills by signals")


def start(run, *options):
    """Begin or resume a run in a process of its own."""
    return WorkerProcess([sys.executable, WORKER, run, "--steps", STEPS, *options], run.parent)


def finish(run, measured=()):
    """Begin or resume a run in this process, and return its folder."""
    result = tiny_run(
        run, steps=STEPS, threads=1, resume=RunFolder(run).last.exists(), **(MEASURED if measured else {})
    )
    assert result.finished
    return run


def assert_whole(run):
    """Check that every checkpoint loads. Return the step of the last one, or None."""
    folder = RunFolder(run)
    steps = [load_checkpoint(path).step for path in (folder.best, folder.last) if path.exists()]
    return steps[-1] if folder.last.exists() else None


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Return a run without interruption."""
    return finish(tmp_path_factory.mktemp("unbroken") / "run")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return a run without interruption, with BLEU (if sacrebleu is installed) and an average at the end."""
    return finish(tmp_path_factory.mktemp("measured") / "run", measured=True)


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run that does not exist yet."""
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "kills", "whole"),
    [((), 20 if NIGHTLY else 2, "unbroken"), (("--measured",), 6 if NIGHTLY else 2, "measured")],
    ids=["plain", "measured"],
)
def test_kills_at_random_moments_change_nothing(run, request, options, kills, whole):
    """They are spread over the run: each one leaves at least the checkpoint before the step of the kill."""
    rng = np.random.default_rng(2017)
    for i, step in enumerate(np.sort(rng.integers(1, STEPS - 25, size=kills)).tolist()):
        # every fifth time while the program starts or loads its checkpoint, otherwise from this step on
        step = 0 if i % 5 == 0 else step
        status, _, _ = start(run, *options, "--kill", step, rng.uniform(1e-4, 0.015)).finish()
        assert status == -signal.SIGALRM
        reached = assert_whole(run)
        assert step == 0 or reached >= step - 2  # every second step has a checkpoint
    assert_same(finish(run, options), request.getfixturevalue(whole))


SNAPSHOT = "snapshot-00000016"
BY_DEFAULT = [("half", 9), ("before", 1), ("after", SNAPSHOT), ("before", "averaged")]
AT_NIGHT = [
    ("half", 1),
    ("after", 1),
    ("before", 9),
    ("after", 9),
    ("before", SNAPSHOT),
    ("after", "averaged"),
]


@pytest.mark.parametrize(("stage", "write"), BY_DEFAULT + (AT_NIGHT if NIGHTLY else []))
def test_a_kill_during_a_write_leaves_a_complete_checkpoint(run, measured, stage, write):
    """The write is the first or the ninth one, or that of a snapshot or of the average."""
    status, _, _ = start(run, "--measured", "--die", stage, write).finish()
    assert status == -signal.SIGKILL
    step = assert_whole(run)
    # if it was killed before the first rename, there is no checkpoint, and the run can be started again
    assert (step is None) == (write == 1 and stage != "after")
    assert step is None or step < (16 if write == SNAPSHOT else STEPS)
    assert_same(finish(run, measured=True), measured)


def test_a_full_disk_stops_the_run_and_keeps_the_previous_checkpoint(run, unbroken):
    status, _, errors = start(run, "--full-disk", 10).finish()
    assert status == 2
    assert errors.count("\n") == 1
    assert "the checkpoint of step 10 could not be written to" in errors
    assert "File too large" in errors
    assert assert_whole(run) == 8
    assert not any(map(is_temporary, RunFolder(run).path.iterdir()))
    assert_same(finish(run), unbroken)


def test_ctrl_c_saves_the_last_complete_step_and_says_how_to_resume(run, unbroken):
    """A process of its own resumes the run."""
    worker = start(run, "--hold", 7)
    worker.interrupt_after("step 7", signal.SIGINT)
    status, output, errors = worker.finish()
    assert (status, errors) == (0, "")
    step = assert_whole(run)
    assert 7 <= step < STEPS
    assert f"stopped after step {step}; resume with: npformer train --resume {run}" in output
    status, output, errors = start(run).finish()
    assert (status, errors) == (0, "")
    assert f"finished after step {STEPS}" in output
    assert_same(run, unbroken)
