"""Ranks: processes on one machine or several, started by mpirun, that train one model together.

Every rank has the whole model and computes the gradients of its share of each batch. All ranks then make the
same update from the sum of all gradients, so their parameters stay equal, and only gradients are sent. Only
the first rank validates, writes files and reports.
"""

import atexit
import os
import zlib
from typing import Any, NamedTuple, TypeVar

from npformer.backend import is_array, like, to_numpy
from npformer.errors import UserError

Value = TypeVar("Value")


class Launch(NamedTuple):
    """The settings that mpirun gave this process in its environment."""

    size: int = 1  # the number of processes
    rank: int = 0  # the number of this process
    local_size: int = 1  # the number of processes on this machine
    variable: str = ""  # the environment variable with the size


# the environment variables with the size, the rank and the number of processes on this machine
LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),  # Open MPI
    ("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"),  # MPICH and Intel MPI
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", ""),  # srun, which gives each process its own cores
)


class RankError(UserError):
    """An error in another rank, whose message this error repeats."""


class Ended(NamedTuple):
    """The last object that a rank sends: the error that ended it, or None."""

    error: str | None


class Ranks:
    """All ranks of a run, or a single process, for which the methods do no communication.

    Used as a context, it raises the error of one rank in all ranks. The rank with the error sends the error
    instead of its own value in the current or the next exchange, so that no rank waits for one that has
    ended.

    Args:
        comm: A communicator of mpi4py, or an object with its rank, size, allgather, Allreduce and Abort. None
            is a single process.
    """

    def __init__(self, comm: Any = None) -> None:
        self.comm = comm
        self.rank: int = 0 if comm is None else comm.rank
        self.size: int = 1 if comm is None else comm.size
        self.launcher = "" if comm is None else f"mpirun -n {self.size} "  # before a command that resumes
        self._has_ended = False  # True once this rank takes part in no further exchange

    @property
    def first(self) -> bool:
        """True for the rank that validates, writes files and reports."""
        return self.rank == 0

    def all_gather(self, value: Value) -> list[Value]:
        """Exchange one object of each rank, and return the objects of all ranks, in their order.

        Raises:
            RankError: If a rank has ended.
        """
        if self.comm is None:
            return [value]
        values: list[Any] = self.comm.allgather(value)
        ended = [isinstance(each, Ended) for each in values]
        if any(ended):
            self._raise_first_error(values)
            raise RankError(f"rank {ended.index(True)} has ended before the others")
        return values

    def all_reduce(self, loss: float, grads: Any) -> float:
        """Replace the gradients (P,) by the sum over all ranks, in place. Return the sum of the losses."""
        losses = self.all_gather(loss)  # also makes sure that no rank has ended
        if self.comm is not None:
            total = to_numpy(grads)
            self.comm.Allreduce(None, total)  # None: the sum replaces the input
            if total is not grads:  # the gradients are on a GPU
                grads[...] = like(total, grads)
        return sum(losses)

    def require_same(self, what: str, value: Any) -> None:
        """Check that all ranks have the same array or the same settings.

        Args:
            what: The noun for the message.
            value: The array or settings of this rank.

        Raises:
            UserError: If a rank differs from the first one.
        """
        if self.comm is None:
            return
        content = to_numpy(value).tobytes() if is_array(value) else repr(value).encode()
        checksums = self.all_gather(zlib.crc32(content))
        for rank, checksum in enumerate(checksums):
            if checksum != checksums[0]:
                raise UserError(
                    f"rank {rank} and rank 0 have different {what}: start all ranks with one command, with "
                    "the same files and the same versions, on machines of one kind"
                )

    def abort(self) -> None:
        """Prepare to end in the middle of a step, so that the end of this process ends all others."""
        if self.comm is not None:
            self._has_ended = True
            atexit.register(self.comm.Abort, 130)

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self.comm is None or self._has_ended:
            return
        if error is not None and not isinstance(error, Exception):  # a Ctrl-C, possibly inside an exchange
            self.abort()
            return
        self._raise_first_error(self.comm.allgather(Ended(_error_message(error))))

    def _raise_first_error(self, values: list[Any]) -> None:
        """Raise the first error among the last values of all ranks, unless it is this rank's own."""
        self._has_ended = True
        for rank, value in enumerate(values):
            if isinstance(value, Ended) and value.error is not None:
                if rank == self.rank:
                    return
                raise RankError(f"rank {rank}: {value.error}")


def launch() -> Launch:
    """Return the settings of mpirun from the environment; the defaults if it did not start this process."""
    for size, rank, local_size in LAUNCHERS:
        if int(os.environ.get(size, 1)) > 1:
            return Launch(
                int(os.environ[size]), int(os.environ.get(rank, 0)), int(os.environ.get(local_size, 1)), size
            )
    return Launch()


def share_of(cores: int) -> int:
    """Return this process's share of the cores, if mpirun started several processes on this machine."""
    local_size = launch().local_size
    # mpirun may have bound each process to some cores already
    return cores if local_size == 1 else max(1, min(cores, (os.cpu_count() or 1) // local_size))


def ranks_of_launch() -> Ranks:
    """Return the ranks that mpirun started, or a single process without mpirun.

    Raises:
        UserError: If mpi4py is missing, or uses another MPI than mpirun.
    """
    started = launch()
    if started.size == 1:
        return Ranks()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # no mpi4py, or no MPI library for it
        raise UserError(
            f"{started.size} processes were started by MPI, which needs mpi4py ({error}): "
            "pip install 'npformer[mpi]', and an MPI library such as mpich or openmpi"
        ) from None
    ranks = Ranks(MPI.COMM_WORLD)
    if ranks.size != started.size:
        library = " ".join(MPI.Get_library_version().splitlines()[0].split(",")[0].split())
        raise UserError(
            f"{started.variable} says that {started.size} processes were started, and mpi4py, which uses "
            f"{library}, sees {ranks.size}: use the mpirun of that MPI, or unset {started.variable} "
            "to train a separate model in each process"
        )
    return ranks


def _error_message(error: BaseException | None) -> str | None:
    """Return the message of an error for the other ranks."""
    if error is None:
        return None
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
