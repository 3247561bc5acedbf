"""The names and the docstrings: old names stay out, and docstrings keep the form that contributors agree on.

Each old name is forbidden only where it had the old meaning: `rate` as a name for the dropout probability,
`step` as the method of a layer that decodes one position, `word` for a token id. "Learning rate" and
"training step" are of course fine. Only identifiers are compared, and no prose.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import npformer

ROOT = Path(npformer.__file__).parent.parent
PACKAGE = ROOT / "npformer"


class OldNames(NamedTuple):
    """Old names, and the places where they are forbidden."""

    names: str  # a regular expression for the whole name
    files: str = ""  # a regular expression for the beginning of the path; "" for all files
    kinds: tuple[str, ...] = ()  # of identifiers; () for all


MATHEMATICS = "npformer/(nn|models|functional|kernels)/"
DECODING = "npformer/(nn|models|functional|kernels|generation)/"
OLD_NAMES = (
    OldNames(
        r"KeptCache|draw_kept|random_kept|(hard_|latent_)?look_up(_backward|_cases)?|(Hard|Latent)?LookUpCache"
        r"|weigh(_backward|ed)?|WeighCache|likeliest|multinoulli|check_words|find_words|likeness|KeysValues"
        r"|Remembered|n_words|MaskedWordModel|NextWordModel|train_masked_words|train_next_words|next_words"
        r"|hidden_words|hide_words|CachedWords|AllWords|NextWords|best_words?|forbidden_words|word_limits"
        r"|BothWays(Cache)?|both_ways|recalled|packs|keep_freed_memory|load_places|save_place|lesson_place"
        r"|code_place|take_exam|show_exam|strongest_look|describe_look|Look|(s0|illustrated)_\w+|\w*ifthen\w*"
    ),
    OldNames(r"(\w+_)?keep|_look(_backward)?|looked|words?|hold(_backward)?", MATHEMATICS),
    OldNames("rate", MATHEMATICS + "(?!.*/adam.py)"),  # where it is the learning rate
    OldNames("past|remember|recall", DECODING),
    OldNames("step", "npformer/(nn|models|generation)/", ("method",)),
    OldNames("room|overwrite", "npformer/(nn|models)/"),
    OldNames("meet|add_up|_add_up|leave", "npformer/training/"),
    OldNames("Clock|restart_rate", "npformer/"),
    OldNames("[Ss]cene|[Ss]ubject|pull", "npformer/(checking|learn)/"),
    OldNames("Score|Row|Place|Recipe", "npformer/", ("class",)),  # one name, one thing
    OldNames("written", "npformer/(generation|data)/"),
)

QUESTION_WORDS = re.compile(r"(What|Which|Where|Whether|Who|How|Whose)\b")

# the files that a learner repairs, whose comments would give the bug away
SPECIMENS = "npformer/learn/bugs/specimens/"
# the declarations of single bugs and exercises, whose functions nobody else calls
DECLARATIONS = ("npformer/learn/bugs/cases/", "npformer/learn/exercises/topics/", SPECIMENS)
# the solutions that learners write, whose functions the texts of the exercises describe
SOLUTIONS = "npformer/learn/exercises/plain/"


@cache
def sources(folder: str) -> tuple[tuple[str, ast.Module], ...]:
    """Return (path relative to the root, syntax tree) of every Python file below a folder."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return tuple(
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths
    )


def identifiers(tree):
    """Return {name: {kind: line}} for every identifier in a file."""
    found = {}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.ClassDef(name=name, body=body):
                found.setdefault(name, {})["class"] = line
                for member in body:
                    if isinstance(member, ast.FunctionDef):
                        found.setdefault(member.name, {})["method"] = member.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.setdefault(name, {})["function"] = line
            case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)):
                found.setdefault(name, {})["argument"] = line
            case ast.Attribute(attr=name) | ast.Name(id=name):
                found.setdefault(name, {})["variable"] = line
            case ast.alias(name=name, asname=other):
                found.setdefault((other or name).rpartition(".")[2], {})["variable"] = line
    return found


def old_names(path, text):
    """Return a line for each old name in a file, which is parsed only if its text contains one."""
    rules = [
        rule for rule in OLD_NAMES if re.match(rule.files, path) and re.search(rf"\b({rule.names})\b", text)
    ]
    names = identifiers(ast.parse(text)) if rules else {}
    return [
        f"{path}:{line}: {name} is an old name"
        for name, kinds in names.items()
        for rule in rules
        if re.fullmatch(rule.names, name)
        for kind, line in kinds.items()
        if not rule.kinds or kind in rule.kinds
    ]


def test_no_old_name_is_left():
    files = [path for folder in ("npformer", "tests", "lessons") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    assert [line for path, text in texts.items() for line in old_names(path, text)] == []


@pytest.mark.parametrize(
    ("path", "code", "old"),
    [
        ("npformer/nn/linear.py", "class Dropout:\n    def __init__(self, rate): pass", True),
        ("npformer/functional/norm.py", "y, source_keep = f(x)", True),
        ("npformer/models/gpt.py", "class Gpt:\n    def step(self, ids): pass", True),
        ("npformer/models/gpt.py", "from npformer.functional.attend import look_up", True),
        ("npformer/kernels/cpu/dropout.py", "f(x, rate=0.1)", True),
        ("lessons/05_x.py", "model = NextWordModel()", True),
        ("npformer/learn/course/index.py", "class Place: pass", True),
        ("npformer/training/optimizer.py", "def step(self, learning_rate): rate = 3", False),
        ("npformer/kernels/cpu/adam.py", "rate = 3", False),
        ("npformer/nn/norm.py", "step = 3", False),
        ("npformer/data/files.py", "words = line.split()", False),
    ],
)
def test_a_planted_old_name_is_found_and_the_same_name_with_another_meaning_is_not(path, code, old):
    assert bool(old_names(path, code)) == old


def test_no_command_has_an_old_flag():
    """A run is written or resumed with --run, which `train` alone takes; a model is read with --model."""
    for path, tree in sources("npformer/cli"):
        flags = {
            argument.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
            for argument in node.args
            if isinstance(argument, ast.Constant)
        }
        assert not flags & {"--recipe", "--pretrained"}, path
        if path.endswith("/train.py"):
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
    [(public_functions, (*DECLARATIONS, SOLUTIONS)), (public_methods, SPECIMENS)],
    ids=["functions", "methods"],
)
def test_more_than_two_arguments_are_documented(functions_of, excluded):
    files = [(path, tree) for path, tree in sources("npformer") if not path.startswith(excluded)]
    assert files
    wrong = [line for path, tree in files for line in undocumented_arguments(path, functions_of(tree))]
    assert not wrong, "\n".join(wrong)


UNDOCUMENTED = '''
def f(x, y, z):
    """Return x.

    Args:
        x, y: Arrays.
    """

class C:
    def two(self, x, y):
        """Return x."""

    def three(self, x, y, *, train):
        """Return x. The arguments are x, y and train."""

    def _private(self, x, y, z): ...

class _Private:
    def three(self, x, y, z): ...
'''


def test_a_missing_argument_is_found():
    tree = ast.parse(UNDOCUMENTED)
    assert undocumented_arguments("f.py", public_functions(tree)) == ["f.py:2: f does not document z"]
    (method,) = undocumented_arguments("f.py", public_methods(tree))
    assert method == "f.py:13: C.three does not document x, y, train"


# The JavaScript of the explorer and of the site


def test_javascript_is_as_narrow_as_python_and_its_files_are_short():
    modules = [path for part in ("explorer", "learn/site") for path in (PACKAGE / part / "web").rglob("*.js")]
    assert len(modules) > 10
    for path in modules:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [(path, number) for number, line in enumerate(lines, 1) if len(line) > 110] == []
        assert len(lines) <= 300, path
