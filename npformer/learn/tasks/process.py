"""Run a learner's code in a child process with limits, and judge what it answers.

The learner's code may loop forever, exit, crash, print without end, start processes or take all memory. None
of this affects the parent process. The child returns what the code computed (see child.py). The parent
compares it with the right results and comes to the verdict. So a learner's file cannot write its own verdict.
"""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from npformer.errors import UserError
from npformer.language import current_language, say
from npformer.learn.tasks.answer import MOST_VALUES, DamagedAnswer, decode, transported
from npformer.learn.tasks.child import Request, observe_file
from npformer.learn.tasks.folder import option_for
from npformer.learn.tasks.limits import FILE_SIZE, HAS_TIMER
from npformer.learn.tasks.registry import T, TaskRegistry
from npformer.learn.tasks.supervisor import FAREWELL, STARTUP
from npformer.learn.tasks.verdict import Verdict
from npformer.storage.json_files import most_values

SECONDS = 10.0  # the default limit on processor time
PATIENCE = 20.0  # additional seconds by the clock
MEMORY = 2 << 30  # bytes that all processes together may reserve
# one thread for each product: the tasks are small, and the time limit counts the time of all threads
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")


@dataclass
class Answer:
    """The answer of a child process."""

    values: list[Any] = field(default_factory=list)
    printed: str = ""  # the beginning of the output of the learner's code
    problem: str = "your code ended the program before the check was over"  # "" if the answer is complete


# ---------------------------------------------------------------------------------------------------------
# Tasks


def check(tasks: TaskRegistry[T], task: T, file: Path, seconds: float = SECONDS) -> Verdict:
    """Judge a learner's file, which runs in a child process.

    Args:
        tasks: The registry that the task belongs to.
        task: The exercise or bug.
        file: The learner's file.
        seconds: The limit on processor time.

    Returns:
        The verdict. If the learner's code was stopped or ended the process, the message says so.

    Raises:
        UserError: If there is no such file.
    """
    if not file.is_file():
        start = tasks.start_command(task) + option_for(file.parent, tasks.folder)
        raise UserError(f"there is no file {file}: {start} writes it")
    function = "npformer.learn.tasks.child:observe_task"
    answer = ask_child(function, [tasks.source, task.name, str(file)], file, seconds=seconds)
    return judge_answer(tasks, task, answer, str(file))


def check_here(tasks: TaskRegistry[T], task: T, file: str) -> Verdict:
    """Judge a learner's file, which runs in this process and without limits.

    Args:
        tasks: The registry that the task belongs to.
        task: The exercise or bug.
        file: The path of the learner's file.
    """
    observations = [transported(observation) for observation in observe_file(tasks, task, file)]
    return judge_answer(tasks, task, Answer(observations, problem=""), file)


def judge_answer(tasks: TaskRegistry[T], task: T, answer: Answer, file: str) -> Verdict:
    """Return the verdict on what a child process observed.

    Args:
        tasks: The registry that the task belongs to.
        task: The exercise or bug.
        answer: The answer of the child process: observations of the trials.
        file: The path of the learner's file.
    """
    match answer.values:
        case [*observations, {"unusable": str(problem)}]:
            pass
        case observations:
            problem = answer.problem
    try:
        verdict = tasks.judge(task, observations, file)
    except DamagedAnswer:
        verdict = Verdict(
            False, say("the results of your code cannot be read: does it write into open files?")
        )
    if verdict is None:  # nothing was wrong as far as it went
        verdict = Verdict(False, problem or say("your code left out a part of the check"))
    verdict.printed = answer.printed
    return verdict


# ---------------------------------------------------------------------------------------------------------
# The child process


def ask_child(
    function: str,
    arguments: Sequence[str],
    file: Path,
    *,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    confined_to: Path | None = None,
    isolated: bool = True,
) -> Answer:
    """Run a function of child.py's kind in a child process and return its answer.

    Args:
        function: The function, as "MODULE:NAME".
        arguments: Its arguments.
        file: The file with the code that runs. Messages name its lines.
        seconds: The limit on processor time.
        memory: The limit on memory, in bytes.
        confined_to: The working folder of the child process, the only one that it can write to where the
            system allows such a limit. By default it has the working folder of this process and no limit.
        isolated: Leave the child process no network and no other processes, where the system allows it.
    """
    seconds = min(max(seconds, 0.01), 1e6)  # what timers take
    with tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as stack:
        altogether = _altogether(seconds)
        confined = "" if confined_to is None else str(confined_to)
        request = Request(
            function, [*arguments], seconds, altogether, memory, isolated, confined, current_language()
        )
        status = _run_child(request, answers, stack)
        answer = _read(answers)
        if answer.problem:
            answer.problem = _problem(status, _text(stack), answer.problem, file, seconds)
    return answer


def _altogether(seconds: float) -> float:
    """Return the limit on time by the clock: a busy machine gives a process a small share of its time."""
    return 5 * seconds + PATIENCE if HAS_TIMER else seconds


def _run_child(request: Request, answers: BinaryIO, stack: BinaryIO) -> int | None:
    """Return the exit status of the child process, or None if the supervisor did not end it in time."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    # the environment of a teacher may hold passwords
    kept = {name: os.environ[name] for name in os.environ if not request.confined or name in KEPT}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "npformer.learn.tasks.child"],
        stdin=subprocess.PIPE,  # for the request; when it closes, the supervisor ends all processes
        stdout=answers,
        stderr=stack,
        start_new_session=True,
        cwd=request.confined or None,
        env=kept | ONE_THREAD | {"PYTHONPATH": path},
    )
    try:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        return process.wait(2 * request.altogether + 2 * STARTUP)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the child process and every process that it started."""
    assert process.stdin is not None
    process.stdin.close()
    if hasattr(os, "killpg"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2 * FAREWELL)  # the supervisor ends the others
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # where it could not
    process.kill()
    process.wait()


def _read(answers: BinaryIO) -> Answer:
    """Read the lines of an answer. What follows a line that cannot be read is not read either."""
    answer = Answer()
    answers.seek(0)
    data = answers.read(FILE_SIZE)
    if most_values(data) > MOST_VALUES:
        return Answer(
            problem=say(
                "its results are too large to be checked (more than {most:,} values)", most=MOST_VALUES
            )
        )
    for line in io.BytesIO(data):
        if not line.strip():
            continue
        try:
            content = decode(line)
        except DamagedAnswer:
            break
        match content:
            case {"value": value}:
                answer.values.append(value)
            case {"stopped": str(why)}:
                answer.problem = why
                break
            case {"complete": True, "printed": str(printed)}:
                answer.printed, answer.problem = printed, ""
                break
            case _:
                break
    return answer


def _text(stack: BinaryIO) -> str:
    stack.seek(0)
    return stack.read(1 << 16).decode(errors="replace")


def _problem(status: int | None, stack: str, why: str, file: Path, seconds: float) -> str:
    """Return one sentence about the reason why the answer is not complete."""
    line = re.search(rf'{re.escape(file.name)}", line (\d+)', stack)
    where = say(", in line {line}", line=line[1]) if line else ""
    if hasattr(signal, "SIGPROF") and status == -signal.SIGPROF:
        return say(
            "it was stopped after {seconds:g} seconds{where}: is there an infinite loop?",
            seconds=seconds,
            where=where,
        )
    if status is None or "Timeout (" in stack:
        guess = say("does it wait for something?") if HAS_TIMER else say("is there an infinite loop?")
        return say(
            "it was stopped after {seconds:g} seconds{where}: {guess}",
            seconds=_altogether(seconds),
            where=where,
            guess=guess,
        )
    if why != Answer.problem:
        return say("it was stopped: {why}", why=why)
    how = (
        say("was killed by signal {value}", value=-status)
        if status < 0
        else say("ended the program with status {status}", status=status)
    )
    return say("your code {how} before the check was over", how=how)
