"""Run independent jobs in processes of their own, each of which computes on one thread."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from npformer.errors import UserError

T = TypeVar("T")
Job = Callable[[], T]


def run_jobs(jobs: Sequence[Job[T]], folder: Path, workers: int, done: Callable[[], None]) -> list[T]:
    """Run all jobs and return their results in order. The jobs begin in order, too.

    Args:
        jobs: The jobs. With several workers, each of them must be one that Python can pickle.
        folder: The working folder of the jobs, a temporary one.
        workers: The number of processes. With 1, the jobs run in this process.
        done: Is called after each job.

    Raises:
        UserError: If a job raises it, or if the system ended a process.
    """
    if workers == 1:
        return list(_in_turn(jobs, folder, done))
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, context, _prepare, (folder,)) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            _wait_for(futures, done)
        except BaseException:  # Ctrl-C, too: the lessons that are running would go on for a minute
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise
        return [future.result() for future in futures]


def _in_turn(jobs: Sequence[Job[T]], folder: Path, done: Callable[[], None]) -> Iterator[T]:
    """Run the jobs in this process, one after the other."""
    for job in jobs:
        with contextlib.chdir(folder), threadpool_limits(1, user_api="blas"):
            result = job()
        done()
        yield result


def _wait_for(futures: Sequence[Future[T]], done: Callable[[], None]) -> None:
    """Wait until all jobs have ended, or until one has failed.

    Raises:
        UserError: If a job raised it, or if the system ended a process.
    """
    try:
        for future in as_completed(futures):
            future.result()
            done()
    except BrokenProcessPool:
        raise UserError(
            "the system ended a process that ran lessons, perhaps for lack of memory: close other programs, "
            "or build a part of the site with --only"
        ) from None


def _prepare(folder: Path) -> None:
    """Prepare a process for its jobs. The first process receives Ctrl-C and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    os.chdir(folder)
    threadpool_limits(1, user_api="blas")


def _end_with_parent(folder: Path) -> None:
    """End this process, and remove the temporary working folder, once the first process was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
