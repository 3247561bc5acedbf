"""The child process in which a learner's code runs, with limits. It answers, and judges nothing.

The parent starts it as

    python -m npformer.learn.tasks.child

and writes a line of JSON to its standard input: what to run, and the limits (see Request). They are not
arguments, which the learner's code could read. The function loads what it needs and returns an iterator that
runs the learner's code. The limits apply to the iterator. Its values are the answer: a line of the standard
output each (see answer.py). A last line says that the answer is complete.
"""

import importlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from npformer.language import say, speaking
from npformer.learn.tasks.answer import TooLarge, encode
from npformer.learn.tasks.confinement import confine_to
from npformer.learn.tasks.folder import option_for
from npformer.learn.tasks.limits import limit_resources, limit_time
from npformer.learn.tasks.registry import T, TaskRegistry
from npformer.learn.tasks.supervisor import Limits, fork_under_supervision
from npformer.learn.tasks.verdict import describe_error

PRINTED = 2000  # the number of characters of the learner's output that are kept


class Request(NamedTuple):
    """A request to the child process: what it runs, and the limits."""

    function: str  # as "MODULE:NAME"
    arguments: list[str]  # of the function
    seconds: float  # the limit on processor time
    altogether: float  # the limit on time by the clock, in seconds
    memory: int  # the limit on memory, in bytes
    isolated: bool  # without a network, and apart from other processes
    confined: str  # the only folder that may be written to, or "" for no such limit
    language: str  # of the messages


def main(request: Request) -> None:
    """Run the function's iterator within the limits, write its values and exit."""
    begun = None
    if hasattr(os, "fork"):
        limits = Limits(request.seconds, request.altogether, request.memory)
        begun = fork_under_supervision(limits, _report, isolated=request.isolated)
    answers, stack = _take_streams()
    module, _, name = request.function.partition(":")
    values = getattr(importlib.import_module(module), name)(*request.arguments)
    sys.stdout = sys.stderr = output = Beginning()
    worker = os.getpid()
    limit_resources(request.memory, request.seconds)
    if request.confined:
        confine_to(Path(request.confined))
    if begun is not None:
        os.close(begun)
    limit_time(request.seconds, request.altogether, stack)
    for value in values:
        if os.getpid() != worker:
            os._exit(0)  # a copy that the learner's code forked: one process answers
        _write(answers, {"value": value})
    _write(answers, {"complete": True, "printed": output.text})
    os._exit(0)  # nothing that the learner's code left for the end runs


def _report(why: str) -> None:
    """Write, as the supervisor, why the processes were ended."""
    os.write(1, b"\n" + encode({"stopped": why}) + b"\n")


def _take_streams() -> tuple[BinaryIO, io.TextIOWrapper]:
    """Return the standard streams for answers and for stacks, and leave the null device in their places."""
    answers, stack = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    return answers, stack


def _write(answers: BinaryIO, line: dict[str, Any]) -> None:
    """Write a line of the answer."""
    try:
        encoded = encode(line)
    except TooLarge as error:
        encoded = encode({"stopped": say("its results are too large to be checked ({error})", error=error)})
    answers.write(encoded + b"\n")
    answers.flush()


class Beginning(io.TextIOBase):
    """A stream that keeps only the beginning of what is written to it."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Keep the text if there is room, and return its length."""
        self.text += text[: PRINTED - len(self.text)]
        return len(text)

    def writable(self) -> bool:
        """Return True."""
        return True


# ---------------------------------------------------------------------------------------------------------
# Tasks


def observe_task(source: str, name: str, file: str) -> Iterator[Any]:
    """Load a task and return the iterator over the observations of a learner's file.

    Args:
        source: The registry of the task, as "MODULE:NAME".
        name: The name of the task.
        file: The learner's file.
    """
    module, _, registry = source.partition(":")
    tasks: TaskRegistry[Any] = getattr(importlib.import_module(module), registry)
    return observe_file(tasks, tasks.find(name), file)


def observe_file(tasks: TaskRegistry[T], task: T, file: str) -> Iterator[Any]:
    """Run a learner's file in this process and yield what its names do in the trials of the task.

    If the file cannot be used, or ends the check, the last observation says so under "unusable".

    Args:
        tasks: The registry that the task belongs to.
        task: The exercise or bug.
        file: The path of the learner's file.
    """
    namespace = {"__name__": "exercise", "__file__": file}
    try:
        text = Path(file).read_text(encoding="utf-8-sig")  # Notepad writes a byte-order mark
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, file, "exec"), namespace)
        if text.strip():
            yield from tasks.observe(task, namespace, file)
        else:
            start = tasks.start_command(task) + option_for(Path(file).parent, tasks.folder)
            yield {
                "unusable": say("the file is empty: move it away, and {start} writes it again", start=start)
            }
    except UnicodeDecodeError:
        yield {"unusable": say("the file is not UTF-8 text")}
    except SystemExit as error:
        yield {
            "unusable": say(
                "your code ended the program (SystemExit {code}): leave out exit()", code=error.code
            )
        }
    except GeneratorExit:
        raise
    except BaseException as error:  # the learner's code may raise anything
        yield {"unusable": describe_error(error, file)}


if __name__ == "__main__":
    _request = Request(*json.loads(sys.stdin.buffer.readline()))
    with speaking(_request.language):
        main(_request)
