"""The files and cells that students get, and the same with the solution for the teacher."""

import ast
import re
import textwrap

from npformer.learn.exercises import Exercise
from npformer.mistakes.mutants import source_of

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # nbgrader replaces what stands between them


def solved_stub(exercise: Exercise) -> str:
    """Return the stub of an exercise with the plain solution in each function, between `BEGIN` and `END`."""
    lines = exercise.stub.strip("\n").splitlines()
    functions = [node for node in ast.parse("\n".join(lines)).body if isinstance(node, ast.FunctionDef)]
    for node in reversed(functions):  # from the last one, so that the numbers of lines stay true
        body = textwrap.indent(_body(exercise, node.name), "    ").splitlines()
        lines[node.end_lineno : node.end_lineno] = [f"    {BEGIN}", *body, f"    {END}"]
    return "\n".join(lines) + "\n"


def _body(exercise: Exercise, name: str) -> str:
    """Return the body of a plain solution with the names of the stub and without types."""
    source = source_of(exercise.plain[name])
    first = ast.parse(source).body[0]
    assert isinstance(first, ast.FunctionDef)
    text = textwrap.dedent("\n".join(source.splitlines()[first.body[0].lineno - 1 :]))
    text = re.sub(r"(: Any| -> Any)(?=[,):=]| =|:$)", "", text, flags=re.MULTILINE)
    return re.sub(r"\b([a-z_]+[a-z])_\(", r"\1(", text)  # softmax_ is the package's softmax
