"""Ranks: processes that mpirun started, on one machine or many, and that train one model together.

Every rank has the whole model, computes the gradients of its share of each batch, and makes the same update
from the same sum of all: so their parameters stay equal, and only gradients travel. The first rank alone
measures, writes and tells.
"""

import atexit
import os
import zlib
from typing import Any, NamedTuple, TypeVar

from npformer.backend import is_array, like, to_numpy
from npformer.errors import UserError

Brought = TypeVar("Brought")


class Launch(NamedTuple):
    """What mpirun told this process in its environment."""

    size: int = 1  # how many processes it started
    rank: int = 0  # which of them this is
    here: int = 1  # how many of them are on this machine
    variable: str = ""  # where the size stood


# the variables in which size, rank and the number on this machine stand
LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),  # Open MPI
    ("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"),  # MPICH and Intel MPI
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", ""),  # srun, which gives each of them cores of its own
)


class RankError(UserError):
    """Another rank has ended, with the error that the sentence tells."""


class Ended(NamedTuple):
    """What a rank brings to its last meeting: the error that ended it, if any."""

    error: str | None


class Ranks:
    """All ranks of a run, or one process alone, for which everything here costs nothing.

    As a context: an error in one rank is raised in all. A rank that has one brings it to the meeting that
    the others stand in, or come to next; so nobody waits for somebody who never comes.
    comm: a communicator of mpi4py, or what has its rank, size, allgather, Allreduce and Abort.
    """

    def __init__(self, comm: Any = None):
        self.comm = comm
        self.rank: int = 0 if comm is None else comm.rank
        self.size: int = 1 if comm is None else comm.size
        self.launcher = "" if comm is None else f"mpirun -n {self.size} "  # before a command that goes on
        self._left = False

    @property
    def first(self) -> bool:
        """Whether this is the rank that measures, writes and tells."""
        return self.rank == 0

    def meet(self, mine: Brought) -> list[Brought]:
        """What each rank brings, in their order. Errors: RankError where one has ended instead."""
        if self.comm is None:
            return [mine]
        brought = self.comm.allgather(mine)
        ended = [isinstance(thing, Ended) for thing in brought]
        if any(ended):
            self._part(brought)
            raise RankError(f"rank {ended.index(True)} has ended before the others")
        return brought

    def add_up(self, loss: float, grads: Any) -> float:
        """Make the gradients (P,) the sum of those of all ranks, in place; returns the sum of the losses."""
        losses = self.meet(loss)  # so none is missing from what follows
        if self.comm is not None:
            total = to_numpy(grads)
            self.comm.Allreduce(None, total)  # None: what is to be added stands where the sum will
            if total is not grads:  # which lie on a GPU
                grads[...] = like(total, grads)
        return sum(losses)

    def require_same(self, what: str, mine: Any) -> None:
        """Refuse to go on where a rank has another array, or other settings, than the first one has.

        Errors: UserError that names the rank.
        """
        if self.comm is None:
            return
        content = to_numpy(mine).tobytes() if is_array(mine) else repr(mine).encode()
        sums = self.meet(zlib.crc32(content))
        for rank, checksum in enumerate(sums):
            if checksum != sums[0]:
                raise UserError(
                    f"rank {rank} has other {what} than rank 0: start all ranks by one command, with the "
                    "same files and the same versions, on machines of one kind"
                )

    def leave(self) -> None:
        """Go at once, in the middle of a step: the end of this process is the end of all."""
        if self.comm is not None:
            self._left = True
            atexit.register(self.comm.Abort, 130)

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self.comm is None or self._left:
            return
        if error is not None and not isinstance(error, Exception):  # a Ctrl-C, wherever it struck
            self.leave()
            return
        self._part(self.comm.allgather(Ended(_told(error))))

    def _part(self, brought: list[Any]) -> None:
        """Raise the first error that is brought to this meeting, the last, unless this rank brought it."""
        self._left = True
        for rank, thing in enumerate(brought):
            if isinstance(thing, Ended) and thing.error is not None:
                if rank == self.rank:
                    return
                raise RankError(f"rank {rank}: {thing.error}")


def launch() -> Launch:
    """Whether mpirun started this process, from its environment alone."""
    for size, rank, here in LAUNCHERS:
        if int(os.environ.get(size, 1)) > 1:
            return Launch(
                int(os.environ[size]), int(os.environ.get(rank, 0)), int(os.environ.get(here, 1)), size
            )
    return Launch()


def share_of(cores: int) -> int:
    """How many of these cores are for this process, where mpirun started others on the machine."""
    here = launch().here
    # mpirun may have bound each of them to some cores already
    return cores if here == 1 else max(1, min(cores, (os.cpu_count() or 1) // here))


def ranks_of_launch() -> Ranks:
    """The ranks that mpirun started; this process alone where there was none.

    Errors: UserError where mpi4py is missing, or belongs to another MPI than mpirun does.
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
            "where each process shall train a model of its own"
        )
    return ranks


def _told(error: BaseException | None) -> str | None:
    """The error as the other ranks are told it."""
    if error is None:
        return None
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
