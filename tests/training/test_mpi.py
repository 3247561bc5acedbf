"""Two processes started by a real mpirun: they make the same steps as two workers, and end together.

If mpi4py or mpirun is missing, these tests are skipped; with NPFORMER_MPI=1 they fail instead.
"""

import importlib.util
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from training_runs import assert_same, losses
from worker_process import WORKER, WorkerProcess

from npformer.cli.main import main
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import RunFolder

MPIRUN = shutil.which("mpirun", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
REQUIRED = os.environ.get("NPFORMER_MPI") == "1"

pytestmark = pytest.mark.skipif(
    not REQUIRED and (MPIRUN is None or importlib.util.find_spec("mpi4py") is None),
    reason="needs mpi4py and mpirun: pip install mpi4py mpich",
)

# Open MPI refuses root, and more processes than cores, unless these are set
AS_ROOT = [f"{name}_ALLOW_RUN_AS_ROOT{suffix}" for name in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")]
ALLOWED = dict.fromkeys(AS_ROOT, "1") | {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


def start(folder, *command):
    """Start mpirun with two processes of this Python. A colon separates their arguments if they differ."""
    assert MPIRUN is not None, "NPFORMER_MPI=1 says that mpirun is here, and it is not"
    first, colon, second = " ".join(map(str, command)).partition(" : ")
    parts = [["-n", "1", sys.executable, *first.split()], [":", "-n", "1", sys.executable, *second.split()]]
    argv = [*parts[0], *parts[1]] if colon else ["-n", "2", *parts[0][2:]]
    return WorkerProcess([MPIRUN, *argv], folder, **ALLOWED)


def finish(folder, *command):
    """Wait for the end. Return the status, the output and the errors."""
    return start(folder, *command).finish()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpi")
    run = folder / "unbroken"
    status, output, errors = finish(folder, WORKER, run)
    assert status == 0, errors
    assert "finished after step 60" in output
    return run


def test_a_run_of_two_ranks_equals_one_of_two_workers_to_the_bit(tmp_path):
    command = ["-m", "npformer", "train", "--task", "reverse", "--steps", "8", "--batch-size", "16", "--run"]
    status, output, errors = finish(tmp_path, *command, tmp_path / "ranks")
    assert status == 0, errors
    assert output.count("finished after step 8") == 1  # only one of them prints it
    assert main([*command[2:], str(tmp_path / "workers"), "--workers", "2"]) == 0
    assert losses(tmp_path / "ranks") == losses(tmp_path / "workers")
    ranks, workers = (load_checkpoint(tmp_path / run / "last.safetensors") for run in ("ranks", "workers"))
    assert (ranks.ranks, workers.ranks) == (2, 1)
    for name, value in workers.parameters.items():
        np.testing.assert_array_equal(ranks.parameters[name], value)


def test_ctrl_c_leaves_a_complete_checkpoint_and_the_run_resumes_to_the_bit(tmp_path, unbroken):
    run = RunFolder(tmp_path / "run")
    worker = start(tmp_path, WORKER, run.path, "--hold", 7)
    worker.interrupt_after("step 7", signal.SIGINT)
    _, output, errors = worker.finish()
    # MPICH forwards the signal to the ranks, which stop after their step; Open MPI ends them at once
    assert load_checkpoint(run.last).step >= (7 if "stopped after step" in output else 6), errors
    assert finish(tmp_path, WORKER, run.path)[0] == 0
    assert_same(run.path, unbroken)


def test_if_one_rank_is_killed_mpirun_ends_and_the_run_resumes_to_the_bit(tmp_path, unbroken):
    run = tmp_path / "run"
    status, output, _ = finish(tmp_path, WORKER, run, "--kill", 7, 0.001, ":", WORKER, run)
    assert status != 0
    assert "finished" not in output
    assert finish(tmp_path, WORKER, run)[0] == 0
    assert_same(run, unbroken)


def test_an_error_in_one_rank_is_printed_once_and_ends_both(tmp_path, unbroken):
    before = (unbroken / "last.safetensors").read_bytes()
    command = ["-m", "npformer", "train", "--task", "reverse", "--run", unbroken]
    status, _, errors = finish(tmp_path, *command)
    assert status == 2
    assert errors.count("already holds a run") == 1
    assert (unbroken / "last.safetensors").read_bytes() == before
