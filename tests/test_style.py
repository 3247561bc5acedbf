"""The options of the commands, and the docstrings, which keep the form that contributors agree on."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import npformer

ROOT = Path(npformer.__file__).parent.parent
PACKAGE = ROOT / "npformer"

QUESTION_WORDS = re.compile(r"(What|Which|Where|Whether|Who|How|Whose)\b")

# the files that a learner repairs, whose comments would give the bug away
SPECIMENS = "npformer/learn/bugs/specimens/"
# the declarations of single bugs and exercises, whose functions nobody else calls
DECLARATIONS = ("npformer/learn/bugs/cases/", "npformer/learn/exercises/topics/", SPECIMENS)


@cache
def sources(folder: str) -> tuple[tuple[str, ast.Module], ...]:
    """Return (path relative to the root, syntax tree) of every Python file below a folder."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return tuple(
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths
    )


def test_models_are_read_with_model_and_runs_written_with_run():
    """A run is written or resumed with --run, which `train` alone takes; a model is read with --model."""
    for path, tree in sources("npformer/cli"):
        flags = {
            str(argument.value).split()[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and "add"
            in (getattr(node.func, "id", ""), getattr(node.func, "attr", "").removesuffix("_argument"))
            for argument in node.args
            if isinstance(argument, ast.Constant) and argument.value
        }
        if path.endswith("/train.py"):
            assert "--run" in flags
            assert "--model" not in flags, "train takes --architecture"
        else:
            assert "--run" not in flags, f"{path}: a model is read with --model"


# ---------------------------------------------------------------------------------------------------------
# Docstrings


def documented(tree):
    """Yield every node that may have a docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def public(tree):
    """Yield the functions and classes of a module that do not begin with _."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            yield node


def test_no_docstring_begins_with_a_question_word():
    wrong = [
        f"{path}:{getattr(node, 'lineno', 1)}: {docstring.splitlines()[0]}"
        for path, tree in sources("npformer")
        for node in documented(tree)
        if QUESTION_WORDS.match(docstring := ast.get_docstring(node) or "")
    ]
    assert not wrong, "\n".join(wrong)


def test_everything_public_has_a_docstring():
    wrong = [
        f"{path}:{node.lineno}: {node.name}"
        for path, tree in sources("npformer")
        for node in public(tree)
        if not ast.get_docstring(node)
    ]
    assert not wrong, "\n".join(wrong)


def named_arguments(function):
    """Return the names of a function's arguments, without self, *args and **settings."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in named if argument.arg not in ("self", "cls")]


def public_functions(tree):
    """Yield (name, function) for the public functions of a module."""
    for node in public(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node


def public_methods(tree):
    """Yield (dotted name, method) for the public methods of the public classes of a module."""
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef) and not owner.name.startswith("_"):
            for name, method in public_functions(owner):
                yield f"{owner.name}.{name}", method


def undocumented_arguments(path, functions):
    """Return a line for each function with more than two arguments that does not document them all."""
    wrong = []
    for title, function in functions:
        names = named_arguments(function)
        section = (ast.get_docstring(function) or "").partition("Args:\n")[2]
        missing = [
            name for name in names if not re.search(rf"^ +([\w, ]+, )?{name}\b", section, re.MULTILINE)
        ]
        if len(names) > 2 and missing:
            wrong.append(f"{path}:{function.lineno}: {title} does not document {', '.join(missing)}")
    return wrong


@pytest.mark.parametrize(
    ("functions_of", "excluded"),
    [(public_functions, DECLARATIONS), (public_methods, SPECIMENS)],
    ids=["functions", "methods"],
)
def test_more_than_two_arguments_are_documented(functions_of, excluded):
    files = [(path, tree) for path, tree in sources("npformer") if not path.startswith(excluded)]
    assert files
    wrong = [line for path, tree in files for line in undocumented_arguments(path, functions_of(tree))]
    assert not wrong, "\n".join(wrong)


# The JavaScript of the explorer and of the site


def test_javascript_is_as_narrow_as_python_and_its_files_are_short():
    """Check the JavaScript of our own: vendor/ has that of others."""
    modules = [path for part in ("explorer", "learn/site") for path in (PACKAGE / part / "web").rglob("*.js")]
    modules = [path for path in modules if path.parent.name != "vendor"]
    assert len(modules) > 10
    for path in modules:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [(path, number) for number, line in enumerate(lines, 1) if len(line) > 110] == []
        assert len(lines) <= 300, path
