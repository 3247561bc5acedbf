"""The folder of a run: log.jsonl, last.safetensors, best.safetensors, and snapshots to average.

The first line of the log is {"format": 1}, which logs of earlier versions do not have. Each further line is
an entry, an object of numbers with at least "step" and "seconds".
"""

import contextlib
import io
import json
import os
import shlex
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from npformer.errors import UserError
from npformer.storage.atomic import (
    create_atomically,
    make_folder,
    reason,
    refuse_link_outside,
    remove_abandoned,
    write_file,
)
from npformer.storage.bounded import read_up_to
from npformer.storage.json_files import parse_json, require_object, require_version
from npformer.validation import has_type, is_number

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


FORMAT = 1  # of the log; increases when an older npformer could no longer read a new one
_HEADER = json.dumps({"format": FORMAT}).encode() + b"\n"
MOST_BYTES, MOST_LINES = 1 << 28, 2_000_000  # of a log: those of 20 million steps
_LAST_STEP = 10**15


class Cut(NamedTuple):
    """The result of cutting the log: the run's seconds until then, and a note if lines were damaged."""

    seconds: float
    note: str | None


class RunFolder:
    """The paths of a run's files. As a context, it opens the log, locks the folder and tidies it.

    A killed run may leave the temporary file of a checkpoint that is never written again, because the best
    one stays the best. So all such files are removed.

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
        make_folder(self.path, advice="choose another folder for the run")
        self._file = self._open_log()
        remove_abandoned(self.path)
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

    def _open_log(self) -> io.FileIO:
        """Open the log to append to it, and lock it."""
        try:
            for path in (self.log, self.last, self.best, self.averaged):
                refuse_link_outside(path)
            file = io.FileIO(self.log, "ab")  # without a buffer: the system gets each line at once
        except (OSError, ValueError) as error:
            raise UserError(
                f"the run folder {self.path} cannot be used ({reason(error)}): choose another"
            ) from None
        try:
            if fcntl is not None:  # the lock ends with the process, however it ends
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise UserError(f"another process is training in {self.path}: wait for it, or stop it") from None
        return file

    def write_log(self, **entry: Any) -> None:
        """Add a line to the log.

        Raises:
            UserError: If the disk is full.
        """
        assert self._file is not None
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        try:
            if os.fstat(self._file.fileno()).st_size == 0:
                line = _HEADER + line
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

    def cut(self, step: int) -> Cut:
        """Remove snapshots and log entries after this step.

        If lines of the log are damaged, it is copied to log.damaged.jsonl first, and the other lines stay.

        Raises:
            UserError: If a newer npformer wrote the log, or if a file cannot be written.
        """
        assert self._file is not None
        data = read_up_to(self.log, MOST_BYTES, "move the folder away", what=f"the log {self.log}")
        content = _parse_log(data, self.log)
        for path in self.snapshots():
            if path > self.snapshot(step):
                path.unlink()
        kept = [line for line in content.lines if line.entry["step"] <= step]
        seconds = kept[-1].entry["seconds"] if kept else 0.0
        if content.damaged:
            return Cut(seconds, self._repair(data, [line.text for line in kept], content.damaged))
        with self._explained_log_errors():
            # the steps do not decrease, so the lines that stay are at the beginning of the log
            self._file.truncate(kept[-1].end if kept else 0)
        return Cut(seconds, None)

    def _repair(self, data: bytes, kept: list[bytes], damaged: list[int]) -> str:
        """Copy a damaged log, replace it by the lines to keep, and return a note about it."""
        assert self._file is not None
        copy = self._free_path("log.damaged")
        with self._explained_log_errors():
            create_atomically(copy, data)
        write_file(self.log, _HEADER + b"".join(kept), advice="free some space, then resume again")
        file, self._file = self._file, self._open_log()  # the log is a new file now
        file.close()
        one = len(damaged) == 1
        which = f"line {damaged[0]} of {self.log}" if one else f"{len(damaged)} lines of {self.log}"
        left_out = "was left out" if one else "were left out"
        return f"{which} cannot be read and {left_out}; the whole log before is kept in {copy}"

    def _free_path(self, stem: str) -> Path:
        """Return the path of a file in the folder that does not exist yet."""
        path, number = self.path / f"{stem}.jsonl", 1
        while os.path.lexists(path):
            number += 1
            path = self.path / f"{stem}-{number}.jsonl"
        return path

    @contextlib.contextmanager
    def _explained_log_errors(self) -> Iterator[None]:
        """Convert an OSError to a UserError about the log."""
        try:
            yield
        except OSError as error:
            raise self._log_error(error) from None

    def _log_error(self, error: OSError) -> UserError:
        return UserError(
            f"the log {self.log} cannot be written ({error.strerror}), and the checkpoints are untouched: "
            f"free some space, then continue with {self.resume_command}"
        )


def read_log(run_dir: str | PathLike[str]) -> list[dict[str, Any]]:
    """Return the entries of the log in order.

    There are entries of steps ("loss"), of validations ("valid_loss"), of BLEU ("valid_bleu") and, at the
    end, of the average ("averaged_loss"). A last line that a crash cut short is left out.

    Raises:
        UserError: If the log cannot be read, a line of it is damaged, or a newer npformer wrote it.
    """
    run = RunFolder(run_dir)
    data = read_up_to(run.log, MOST_BYTES, "give a run's folder", what=f"the log {run.log}")
    content = _parse_log(data, run.log)
    if content.damaged:
        raise UserError(
            f"line {content.damaged[0]} of {run.log} is damaged: {run.resume_command} leaves such lines out "
            "and keeps a copy of the log"
        )
    return [line.entry for line in content.lines]


class _Line(NamedTuple):
    """A line of the log."""

    text: bytes
    entry: dict[str, Any]
    end: int  # the length of the log up to its end


class _Content(NamedTuple):
    """The lines of the log, and the numbers of those that are not entries."""

    lines: list[_Line]
    damaged: list[int]


def _parse_log(data: bytes, path: Path) -> _Content:
    """Return the lines of a log. A last line without an end, which a crash cut short, counts as missing.

    Raises:
        UserError: If a newer npformer wrote the log.
    """
    lines: list[_Line] = []
    damaged: list[int] = []
    end = step = 0
    for number, text in enumerate(data.split(b"\n")[:-1], 1):
        if len(lines) + len(damaged) == MOST_LINES:
            raise UserError(f"the log {path} has more than {MOST_LINES:,} lines: give another run's folder")
        end += len(text) + 1
        try:
            entry = require_object(parse_json(text, "", ""), "", "")
        except UserError:
            damaged.append(number)
            continue
        if number == 1 and entry.keys() == {"format"}:
            require_version(entry, f"the log {path}", FORMAT)
        elif _is_entry(entry) and entry["step"] >= step:
            step = entry["step"]
            lines.append(_Line(text + b"\n", entry, end))
        else:
            damaged.append(number)
    return _Content(lines, damaged)


def _is_entry(entry: dict[str, Any]) -> bool:
    """Return whether an object has a step, the seconds of the run, and only numbers."""
    if not all(is_number(value) or isinstance(value, bool) for value in entry.values()):
        return False
    step, seconds = entry.get("step", -1), entry.get("seconds", -1.0)
    return has_type(step, int) and 0 <= step <= _LAST_STEP and is_number(seconds) and seconds >= 0
