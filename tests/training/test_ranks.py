"""Ranks: processes that share each batch make the same steps as a single one, and end together."""

import pickle
import signal
import sys
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from training_runs import assert_same, losses, stop_after
from training_worker import MEASURED, tiny_run

from npformer import UserError
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import Noted, RunFolder, Stepped, trainer
from npformer.training import ranks as module
from npformer.training.process import StopRequest
from npformer.training.ranks import LAUNCHERS, RankError, Ranks, launch, ranks_of_launch, share_of
from npformer.training.step import make_step
from npformer.training.workers import Workers

# ranks without MPI: threads, a barrier, and the part of a communicator that npformer uses


class FakeComm:
    """The communicator of one rank; the other ranks are threads."""

    def __init__(self, rank, size, slots, barrier):
        self.rank, self.size, self.slots, self.barrier = rank, size, slots, barrier
        self.aborted = None

    def allgather(self, thing):
        self.slots[self.rank] = pickle.dumps(thing)
        self.barrier.wait()
        found = [pickle.loads(slot) for slot in self.slots]
        self.barrier.wait()
        return found

    def Allreduce(self, send, receive):
        assert send is None  # in place
        arrays = self.allgather(receive)
        assert all(array.shape == receive.shape for array in arrays), "they are not at the same place"
        receive[...] = sum(arrays[1:], arrays[0])

    def Abort(self, status):
        self.aborted = status
        self.barrier.abort()


def in_ranks(size, function):
    """Run function(ranks) in `size` ranks in parallel. Return their results or errors in order."""
    slots, barrier = [None] * size, threading.Barrier(size, timeout=120)
    found = [None] * size

    def work(rank):
        try:
            found[rank] = function(Ranks(FakeComm(rank, size, slots, barrier)))
        except BaseException as error:
            found[rank] = error

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


here = threading.local()  # the ranks of this thread


@pytest.fixture(scope="module", autouse=True)
def launched():
    """Let a run in a thread of `in_ranks` belong to those ranks, and any other one be a single process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "ranks_of_launch", lambda: getattr(here, "ranks", Ranks()))
        yield


def run_in_ranks(size, run_dir, *, on=None, **changes):
    """Train with changes of the settings, those of on={rank: changes} in one rank. Return all results."""

    def work(ranks):
        here.ranks = ranks
        return tiny_run(run_dir, **({"threads": 1} | changes | (on or {}).get(ranks.rank, {})))

    return in_ranks(size, work)


def last(run):
    return load_checkpoint(RunFolder(run).last)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Return a run of two ranks that no test changes."""
    run = tmp_path_factory.mktemp("ranks") / "unbroken"
    assert [result.step for result in run_in_ranks(2, run)] == [20, 20]
    return run


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run that does not exist yet."""
    return tmp_path / "run"


def test_a_run_of_two_ranks_equals_one_of_two_workers(tmp_path):
    events = {0: [], 1: []}
    reports = {rank: {"report": results.append} for rank, results in events.items()}
    first, second = run_in_ranks(2, tmp_path / "ranks", on=reports, **MEASURED)
    assert (first.step, second.step) == (20, 20)
    tiny_run(tmp_path / "workers", workers=2, **MEASURED)
    assert losses(tmp_path / "ranks") == losses(tmp_path / "workers")
    found, expected = last(tmp_path / "ranks"), last(tmp_path / "workers")
    assert (found.ranks, found.workers, expected.ranks, expected.workers) == (2, 1, 1, 2)
    for name, value in expected.parameters.items():
        np.testing.assert_array_equal(found.parameters[name], value)
    np.testing.assert_array_equal(found.v, expected.v)
    assert [event.step for event in events[0] if isinstance(event, Stepped)] == list(range(1, 21))
    assert events[1] == []


@pytest.mark.parametrize("rank", [0, 1])
def test_if_one_rank_gets_a_signal_all_stop_after_the_same_step(run, monkeypatch, rank):
    requests = iter([StopRequest(), StopRequest()])
    monkeypatch.setattr(trainer, "interrupt_between_steps", lambda: nullcontext(next(requests)))
    told = {}

    def at_step_5(event):
        if isinstance(event, Stepped) and event.step == 5:
            told["request"].signum = signal.SIGTERM

    def request_of(trainer, checkpoint, request, stop):
        if trainer.ranks.rank == rank:
            told["request"] = request
        return plain(trainer, checkpoint, request, stop)

    plain = trainer.Trainer.run_steps
    monkeypatch.setattr(trainer.Trainer, "run_steps", request_of)
    results = run_in_ranks(2, run, on={0: {"report": at_step_5}})
    step = results[0].step
    assert step in (5, 6)  # rank 1 may have finished step 5 when the signal reaches it
    assert [(result.step, result.stopped_by) for result in results] == [(step, signal.SIGTERM)] * 2
    assert last(run).step == step


def test_if_one_rank_stops_all_stop_and_the_run_resumes_to_the_bit(run, unbroken):
    results = run_in_ranks(2, run, on={1: {"stop": stop_after(7)}})
    assert [result.step for result in results] == [7, 7]
    assert "mpirun -n 2 npformer train --resume" in results[0].message
    assert last(run).step == 7
    assert [result.step for result in run_in_ranks(2, run, resume=True)] == [20, 20]
    assert_same(run, unbroken)


def spoil(monkeypatch, rank, step, error):
    """Raise the error in that rank during that step."""
    plain = Workers.sum_over

    def spoiled(workers, *arguments):
        workers.steps = getattr(workers, "steps", 0) + 1
        if workers.ranks.rank == rank and workers.steps == step:
            raise error
        return plain(workers, *arguments)

    monkeypatch.setattr(Workers, "sum_over", spoiled)


@pytest.mark.parametrize(
    ("rank", "error", "message"),
    [(0, UserError("the sky fell: mend it"), "the sky fell"), (1, KeyError("w"), "KeyError: 'w'")],
)
def test_an_error_in_one_rank_ends_all_and_the_run_resumes_to_the_bit(
    run, monkeypatch, unbroken, rank, error, message
):
    with monkeypatch.context() as patch:
        spoil(patch, rank, 6, error)
        found = run_in_ranks(2, run)
    assert found[rank] is error
    assert isinstance(found[1 - rank], RankError)
    assert str(found[1 - rank]).startswith(f"rank {rank}: ")
    assert message in str(found[1 - rank])
    assert last(run).step == 4
    run_in_ranks(2, run, resume=True)
    assert_same(run, unbroken)


@pytest.mark.parametrize("step", [0, 6, 20])
def test_a_full_disk_of_the_first_rank_ends_all(run, monkeypatch, step):
    plain = trainer.save_checkpoint

    def full(checkpoint, path):
        if checkpoint.step == step:
            raise UserError("no room is left: see to some")
        plain(checkpoint, path)

    monkeypatch.setattr(trainer, "save_checkpoint", full)
    first, second = run_in_ranks(2, run)
    assert "no room is left" in str(first)
    assert isinstance(second, RankError)
    assert "rank 0: no room is left" in str(second)


@pytest.mark.parametrize("other", [{"seed": 8}, {"workers": 2}])
def test_ranks_with_different_settings_are_refused(run, other):
    found = run_in_ranks(2, run, on={1: other})
    assert all("rank 1 and rank 0 have different settings or data" in str(error) for error in found)
    assert not RunFolder(run).last.exists()


def test_parameters_that_differ_between_ranks_are_never_saved(run, monkeypatch):
    def drifting(model, adam, batches, rngs, lr, clip_norm, workers, r_drop):
        result = make_step(model, adam, batches, rngs, lr, clip_norm, workers, r_drop)
        if adam.t == 5 and workers.ranks.rank == 1:
            values = model.values
            values[3] = np.nextafter(values[3], np.float32(1))
        return result

    monkeypatch.setattr(trainer, "make_step", drifting)
    found = run_in_ranks(2, run)
    assert all("rank 1 and rank 0 have different parameters" in str(error) for error in found)
    assert last(run).step == 4


def test_a_second_ctrl_c_in_one_rank_ends_all(run, monkeypatch):
    """At the end of its process, the rank lets MPI end the others."""
    ends = []
    monkeypatch.setattr(module, "atexit", SimpleNamespace(register=lambda *call: ends.append(call)))
    spoil(monkeypatch, 1, 6, KeyboardInterrupt())

    def work(ranks):
        here.ranks = ranks
        result = tiny_run(run, threads=1)
        for abort, status in ends:  # as that process does at its end
            abort(status)
        return result

    waiting, left = in_ranks(2, work)
    assert left.step == 4
    assert [status for _, status in ends] == [130]
    assert isinstance(waiting, threading.BrokenBarrierError)  # for this rank, mpirun ends the process


def test_a_run_that_resumes_with_another_number_of_ranks_says_so(run):
    run_in_ranks(2, run, steps=4)
    events = []
    assert tiny_run(run, steps=6, resume=True, report=events.append).step == 6
    (note,) = [event.text for event in events if isinstance(event, Noted)]
    assert "made with 2 processes and continues with 1 (mpirun -n)" in note
    assert last(run).ranks == 1


# the program that started this process


@pytest.fixture
def environment(monkeypatch):
    """Return a function that sets environment variables; those of a real mpirun are removed."""
    for names in LAUNCHERS:
        for name in filter(None, names):
            monkeypatch.delenv(name, raising=False)

    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (1, 0, 1)),
        ({"PMI_SIZE": "1", "PMI_RANK": "0"}, (1, 0, 1)),
        ({"PMI_SIZE": "4", "PMI_RANK": "3", "MPI_LOCALNRANKS": "2"}, (4, 3, 2)),
        (
            {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
            (2, 1, 2),
        ),
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"}, (8, 5, 1)),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, (1, 0, 1)),  # a batch script, which runs once
    ],
)
def test_the_environment_shows_which_program_started_the_process(environment, variables, expected):
    environment(**variables)
    assert launch()[:3] == expected


def test_without_mpi4py_the_message_says_what_to_install(environment, monkeypatch):
    environment(PMI_SIZE="2", PMI_RANK="0")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(UserError, match=r"2 processes .* mpi4py .*pip install 'npformer\[mpi\]'"):
        ranks_of_launch()


def test_an_mpi4py_for_another_mpi_is_refused(environment, monkeypatch):
    environment(PMI_SIZE="2", PMI_RANK="0")
    world = SimpleNamespace(rank=0, size=1)
    mpi = SimpleNamespace(COMM_WORLD=world, Get_library_version=lambda: "Open MPI v5.0.1, package: x\nmore")
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=mpi))
    with pytest.raises(UserError, match=r"PMI_SIZE says .* 2 .*Open MPI v5\.0\.1, sees 1: use the mpirun"):
        ranks_of_launch()
    world.size = 2
    assert ranks_of_launch().size == 2


def test_ranks_of_one_machine_share_its_cores(environment, monkeypatch):
    monkeypatch.setattr(module.os, "cpu_count", lambda: 8)
    assert share_of(9) == 9  # alone: unchanged
    environment(PMI_SIZE="6", PMI_RANK="0", MPI_LOCALNRANKS="3")
    assert share_of(8) == 2
    assert share_of(1) == 1  # already bound to one core
