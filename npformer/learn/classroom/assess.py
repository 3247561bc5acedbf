"""Grade one submitted solution: a child process runs it in a folder of its own, with limits.

The text of the solution is copied to a new folder, which is removed afterwards. So it does not matter where
the submitted file lies and what it is called, and what the solution writes beside itself is gone.
"""

import ast
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from npformer.language import say, speaking
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.copied import own_function_of_package
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.learn.tasks.child import observe_file
from npformer.learn.tasks.process import ask_child, judge_answer
from npformer.learn.tasks.verdict import Verdict
from npformer.storage.atomic import write_atomically

SOLVED, WRONG, UNTOUCHED, UNREADABLE, MISSING = "solved", "wrong", "untouched", "unreadable", "missing"
STATUSES = (SOLVED, WRONG, UNTOUCHED, UNREADABLE, MISSING)
NOBODY = 65534  # the number of the user and of the group "nobody"


@dataclass(frozen=True)
class Result:
    """The result of one exercise of one student.

    Args:
        exercise: The name of the exercise.
        status: One of `STATUSES`.
        points: The points that the student has.
        possible: The points of a correct solution.
        message: One sentence: what is wrong, or how many checks passed.
        clues: Likely causes of the mistake.
        picture: The entries that differ, as a grid of characters.
        printed: The beginning of what the solution printed.
        remark: A sentence for the teacher, or "".
    """

    exercise: str
    status: str
    points: float
    possible: float
    message: str
    clues: tuple[str, ...] = ()
    picture: str = ""
    printed: str = ""
    remark: str = ""

    def as_settings(self) -> dict[str, Any]:
        """Return the result as a JSON object has it."""
        return asdict(self) | {"clues": list(self.clues)}

    def as_text(self) -> str:
        """Return what was found as lines of text, for the student."""
        lines = [f"{self.exercise}: {self.message}", *(f"- {clue}" for clue in self.clues)]
        if self.picture:
            lines.append(self.picture)
        if self.printed:
            lines += [say("Your code printed:"), self.printed.rstrip()]
        return "\n".join(lines)


def without_solution(assignment: Assignment, exercise: str, status: str, message: str) -> Result:
    """Return the result of an exercise for which there is nothing to run. It has 0 points.

    Args:
        assignment: The assignment.
        exercise: The name of the exercise.
        status: `MISSING`, `UNREADABLE` or `UNTOUCHED`.
        message: One sentence that says why.
    """
    return Result(exercise, status, 0.0, assignment.points, message)


def assess(assignment: Assignment, name: str, text: str) -> Result:
    """Grade the text of a solution with the public and the hidden trials of an exercise.

    If this process is that of root, the solution runs as the user "nobody".

    Args:
        assignment: The assignment.
        name: The name of the exercise.
        text: The text of the solution.

    Returns:
        The result: all points if every trial passes, otherwise 0 and the diagnosis of the first mistake, in
        the language of the assignment.
    """
    with speaking(assignment.language):
        return _assess(assignment, EXERCISES.find(name), text)


def _assess(assignment: Assignment, exercise: Exercise, text: str) -> Result:
    """Do what `assess` does, in the current language."""
    if is_untouched(exercise, text):
        message = say("nothing was written: the solution is as it was given")
        return without_solution(assignment, exercise.name, UNTOUCHED, message)
    verdict = _verdict(assignment, exercise, text, _may_run_as_nobody())
    return Result(
        exercise.name,
        SOLVED if verdict.solved else WRONG,
        assignment.points if verdict.solved else 0.0,
        assignment.points,
        verdict.message,
        tuple(verdict.clues),
        verdict.picture,
        verdict.printed,
        own_function_of_package(exercise, text),
    )


def is_untouched(exercise: Exercise, text: str) -> bool:
    """Return whether a text is the stub of the exercise, whatever its comments and blank lines.

    Its imports may differ, as those of an earlier file do, if they import no function that is asked for.
    """
    asked = {*exercise.functions, "*"}
    started = (exercise.stub, exercise.file_text(), "")
    return _code_of(text, asked) in [_code_of(each, asked) for each in started]


def _code_of(text: str, asked: Collection[str]) -> str:
    """Return the code of a text without comments, docstrings and the marks that stand for missing code.

    Of its imports, those that bind the names that are asked for stay. A text that is not Python is returned
    itself.
    """
    try:
        tree = ast.parse(text)
        if ast.get_docstring(tree) is not None:
            tree.body = tree.body[1:]
        tree.body = [each for each in tree.body if not _is_import_of_others(each, asked)]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body = [each for each in node.body if not _stands_for_code(each)]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _is_import_of_others(node: ast.stmt, asked: Collection[str]) -> bool:
    """Return whether a statement imports something, and none of the names that are asked for."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return not {alias.asname or alias.name for alias in node.names} & {*asked}


def _stands_for_code(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring, or pass, ... or raise NotImplementedError()."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        return "NotImplementedError" in ast.dump(node.exc)
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass) or is_constant


# ---------------------------------------------------------------------------------------------------------
# The child process


def _verdict(assignment: Assignment, exercise: Exercise, text: str, as_nobody: bool) -> Verdict:
    """Return the verdict on a text, which runs in a folder of its own."""
    seed = hidden_seed(assignment, exercise.name, text)
    task = replace(assignment, seed=seed).task(exercise.name)
    with tempfile.TemporaryDirectory(prefix="npformer-", ignore_cleanup_errors=True) as name:
        work = Path(name, "work")
        work.mkdir()
        file = Path(name, f"{exercise.stem}.py")
        write_atomically(file, text.encode(errors="replace"))
        if as_nobody:
            os.chmod(name, 0o755)
            os.chmod(file, 0o644)
            os.chmod(work, 0o777)
        function = "npformer.learn.classroom.assess:observe_solution"
        arguments = [exercise.name, str(seed), str(file), "nobody" if as_nobody else "self"]
        limits: dict[str, Any] = {"seconds": assignment.seconds, "memory": assignment.memory}
        answer = ask_child(function, arguments, file, confined_to=work, **limits)
        verdict = judge_answer(EXERCISES, task, answer, str(file))
    return _without_path(verdict, str(file))


def hidden_seed(assignment: Assignment, name: str, text: str) -> int | None:
    """Return the seed of the hidden inputs of a solution, or None for the public inputs alone.

    Each text has inputs of its own, so it is of no use to a student that a solution prints its inputs.

    Args:
        assignment: The assignment.
        name: The name of the exercise.
        text: The text of the solution.
    """
    if assignment.seed is None:
        return None
    content = json.dumps([assignment.seed, name, text]).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:4], "little")


def observe_solution(name: str, seed: str, file: str, user: str) -> Iterator[Any]:
    """Return the iterator over the observations of a solution. It is called in the child process.

    Args:
        name: The name of the exercise.
        seed: The seed of the hidden inputs, or "None".
        file: The file of the solution.
        user: "nobody" to run it as this user, or "self".
    """
    task = Assignment((name,), seed=None if seed == "None" else int(seed)).task(name)
    if user == "nobody":
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return observe_file(EXERCISES, task, file)


def _may_run_as_nobody() -> bool:
    """Return whether this process is that of root, and others may read Python and npformer."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    files = (Path(sys.executable), Path(sys.executable).resolve(), Path(__file__).resolve())
    return all(folder.stat().st_mode & 0o001 for file in files for folder in file.parents)


def _without_path(verdict: Verdict, file: str) -> Verdict:
    """Return the verdict without the path of the temporary file, which means nothing to a student."""
    for path in (file, str(Path(file).parent)):
        verdict.message = verdict.message.replace(path, Path(file).name)
        verdict.clues = [clue.replace(path, Path(file).name) for clue in verdict.clues]
        verdict.printed = verdict.printed.replace(path, Path(file).name)
    return verdict
