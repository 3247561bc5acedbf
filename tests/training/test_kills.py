"""A run that is killed at any moment: its files stay complete, and it resumes to the same result."""

import importlib.util
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from paths import TESTS
from waiting import PATIENCE

from npformer.storage.atomic import temporary_path
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import RunFolder, read_log

WORKER = TESTS / "helpers" / "training_worker.py"
STEPS = 60
KILLS = 20

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills by signals")


def start(run, *options):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(WORKER), str(run), "--steps", str(STEPS), *map(str, options)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def finish(run, *options):
    """Wait for the end of the run. Returns (status, standard output, standard error)."""
    with start(run, *options) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, output, errors


def assert_whole(run_dir):
    """Check that every checkpoint loads. Returns the step of the last one, or None."""
    run = RunFolder(run_dir)
    steps = [load_checkpoint(path).step for path in (run.best, run.last) if path.exists()]
    return steps[-1] if run.last.exists() else None


def losses(run_dir):
    """Return the log without times."""
    clock = ("seconds", "tokens_per_second")
    return [{k: v for k, v in entry.items() if k not in clock} for entry in read_log(run_dir)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Run without interruption."""
    run = tmp_path_factory.mktemp("unbroken") / "run"
    status, output, errors = finish(run)
    assert (status, errors) == (0, "")
    assert f"finished after step {STEPS}" in output
    return run


def assert_same_end(run, unbroken):
    names = sorted(path.name for path in unbroken.iterdir())
    assert sorted(path.name for path in run.iterdir()) == names
    for name in names:
        if name.endswith(".safetensors"):
            assert (run / name).read_bytes() == (unbroken / name).read_bytes(), name
    assert losses(run) == losses(unbroken)


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(tmp_path, unbroken):
    rng = np.random.default_rng(2017)
    run = tmp_path / "run"
    reached, mid_write = [], 0
    for i, step in enumerate(np.sort(rng.integers(1, STEPS - 25, size=KILLS)).tolist()):
        # every fifth time while the program starts or loads its checkpoint, otherwise from this step on
        step = 0 if i % 5 == 0 else step
        status, _, _ = finish(run, "--kill", step, rng.uniform(1e-4, 0.015))
        assert status == -signal.SIGALRM, "the run ended before it was killed"
        reached.append(assert_whole(run))
        mid_write += temporary_path(RunFolder(run).last).exists()
    assert len(set(reached)) > KILLS // 2, f"the kills were not spread over the run: {reached}"
    print(f"last checkpoints after the kills: {reached}; {mid_write} of them amid a write")
    assert finish(run)[0] == 0
    assert_same_end(run, unbroken)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Run with BLEU (if sacrebleu is installed) and an average at the end."""
    run = tmp_path_factory.mktemp("measured") / "run"
    assert finish(run, "--measured")[0] == 0
    return run


def test_measurements_do_not_change_the_steps(measured, unbroken):
    log = losses(measured)
    assert [entry for entry in log if "averaged" not in entry and "valid_bleu" not in entry] == losses(
        unbroken
    )
    assert [entry["averaged"] for entry in log if "averaged" in entry] == [3]
    sacrebleu = importlib.util.find_spec("sacrebleu")
    scored = [entry["step"] for entry in log if "valid_bleu" in entry]
    assert scored == (list(range(5, 61, 5)) if sacrebleu else [])


def test_kills_of_a_run_with_measurements_change_nothing(tmp_path, measured):
    rng = np.random.default_rng(2026)
    run = tmp_path / "run"
    for step in np.sort(rng.integers(1, STEPS - 20, size=6)).tolist():
        status, _, _ = finish(run, "--measured", "--kill", step, rng.uniform(1e-4, 0.03))
        assert status == -signal.SIGALRM, "the run ended before it was killed"
        assert_whole(run)
    assert finish(run, "--measured")[0] == 0
    assert_same_end(run, measured)


@pytest.mark.parametrize("name", ["snapshot-00000016", "averaged"])
@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_kill_during_a_snapshot_or_the_average_loses_nothing(tmp_path, measured, stage, name):
    run = tmp_path / "run"
    status, _, _ = finish(run, "--measured", "--die", stage, name)
    assert status == -signal.SIGKILL
    assert assert_whole(run) < (STEPS if name == "averaged" else 16)
    assert finish(run, "--measured")[0] == 0
    assert_same_end(run, measured)


@pytest.mark.parametrize("stage", ["half", "before", "after"])
@pytest.mark.parametrize("count", [1, 9])
def test_a_kill_during_a_write_leaves_a_complete_checkpoint(tmp_path, unbroken, stage, count):
    run = tmp_path / "run"
    status, _, _ = finish(run, "--die", stage, count)
    assert status == -signal.SIGKILL
    step = assert_whole(run)
    # if it was killed before the first rename, there is no checkpoint, and the run can be started again
    assert (step is None) == (count == 1 and stage != "after")
    assert finish(run)[0] == 0
    assert_same_end(run, unbroken)


def test_a_full_disk_stops_the_run_and_keeps_the_previous_checkpoint(tmp_path, unbroken):
    run = tmp_path / "run"
    status, _, errors = finish(run, "--full-disk", 10)
    assert status == 2
    assert errors.count("\n") == 1
    assert "the checkpoint of step 10 could not be written to" in errors
    assert "File too large" in errors
    assert assert_whole(run) == 8
    assert not temporary_path(RunFolder(run).last).exists()
    assert finish(run)[0] == 0
    assert_same_end(run, unbroken)


def test_ctrl_c_saves_the_last_complete_step_and_says_how_to_resume(tmp_path, unbroken):
    run = tmp_path / "run"
    with start(run, "--hold", 7) as process:
        for line in process.stdout:
            if line.startswith("step 7"):
                process.send_signal(signal.SIGINT)
                break
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    step = assert_whole(run)
    assert 7 <= step < STEPS
    assert f"stopped after step {step}; resume with: npformer train --resume {run}" in output
    assert finish(run)[0] == 0
    assert_same_end(run, unbroken)
