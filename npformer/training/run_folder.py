"""The folder of a run: log.jsonl, last.safetensors, best.safetensors, and snapshots to average."""

import io
import json
import os
import shlex
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from npformer.errors import UserError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class RunFolder:
    """The paths of a run's files. As a context, it opens the log and locks the folder.

    Raises:
        UserError: On entering the context, if the folder cannot be made or written, or if another process
            trains in it.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.last = self.path / "last.safetensors"
        self.best = self.path / "best.safetensors"
        self.averaged = self.path / "averaged.safetensors"
        self.log = self.path / "log.jsonl"
        self._file: io.FileIO | None = None

    @property
    def resume_command(self) -> str:
        """The command that resumes this run."""
        return f"npformer train --resume {shlex.quote(str(self.path))}"

    def snapshot(self, step: int) -> Path:
        """Return the path of the parameters after this step, which are averaged with others."""
        return self.path / f"snapshot-{step:08}.safetensors"

    def snapshots(self) -> list[Path]:
        """Return the paths of all snapshots, in the order of their steps."""
        return sorted(self.path.glob("snapshot-????????.safetensors"))

    def __enter__(self) -> "RunFolder":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._file = open(self.log, "ab", buffering=0)  # the system gets each line at once
        except OSError as error:
            raise UserError(
                f"the run folder {self.path} cannot be used ({error.strerror}): choose another"
            ) from None
        try:
            if fcntl is not None:  # the lock ends with the process, however it ends
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UserError(f"another process is training in {self.path}: wait for it, or stop it") from None
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._file is not None
        self._file.close()

    def require_new(self) -> None:
        """Check that the folder holds no run yet.

        Raises:
            UserError: If it does.
        """
        if self.last.exists() or self.best.exists() or self.log.stat().st_size:
            raise UserError(
                f"{self.path} already holds a run: continue it with {self.resume_command}, "
                "or choose another folder"
            )

    def write_log(self, **entry: Any) -> None:
        """Add a line to the log.

        Raises:
            UserError: If the disk is full.
        """
        assert self._file is not None
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        try:
            while line:  # a disk that fills up accepts a part and refuses the rest
                line = line[self._file.write(line) :]
        except OSError as error:
            raise self._log_error(error) from None

    def sync_log(self) -> None:
        """Flush the log to the disk. This happens before each checkpoint, so that the log is never older."""
        assert self._file is not None
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._log_error(error) from None

    def cut(self, step: int) -> float:
        """Remove snapshots and log entries after this step, and return the run's seconds until then."""
        for path in self.snapshots():
            if path > self.snapshot(step):
                path.unlink()
        return self._cut_log(step)

    def _cut_log(self, step: int) -> float:
        """Remove the lines of the log after this step, and return the run's seconds until then."""
        assert self._file is not None
        end, seconds = 0, 0.0
        for line, entry in _entries(self.log.read_bytes()):
            if entry["step"] > step:
                break
            end += len(line)
            seconds = entry["seconds"]
        self._file.truncate(end)
        return seconds

    def _log_error(self, error: OSError) -> UserError:
        return UserError(
            f"the log {self.log} cannot be written ({error.strerror}), and the checkpoints are untouched: "
            f"free some space, then continue with {self.resume_command}"
        )


def read_log(run_dir: str | PathLike[str]) -> list[dict[str, Any]]:
    """Return the entries of the log in order.

    There are entries of steps ("loss"), of validations ("valid_loss"), of BLEU ("valid_bleu") and, at the
    end, of the average ("averaged_loss").

    Raises:
        UserError: If the log cannot be read.
    """
    path = RunFolder(run_dir).log
    try:
        return [entry for _, entry in _entries(path.read_bytes())]
    except OSError as error:
        raise UserError(f"the log {path} cannot be read ({error.strerror}): give a run's folder") from None


def _entries(data: bytes) -> list[tuple[bytes, dict[str, Any]]]:
    """Return pairs (line, entry), up to a line that a crash cut short."""
    entries = []
    for line in data.splitlines(keepends=True):
        try:
            entry = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n") or not isinstance(entry, dict) or not {"step", "seconds"} <= entry.keys():
            break
        entries.append((line, entry))
    return entries
