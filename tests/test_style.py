"""The names and the docstrings: old names stay out, and docstrings keep the form that contributors agree on.

The old names are those of the renaming in CHANGELOG.md. Each one is forbidden only where it had the old
meaning: `rate` as a name for the dropout probability, `step` as the method of a layer that decodes one
position, `word` for a token id. "Learning rate" and "training step" are of course fine. The test parses
identifiers, modules, settings, flags and table rows. It does not search prose.
"""

import ast
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import npformer

ROOT = Path(npformer.__file__).parent.parent
PACKAGE = ROOT / "npformer"
EVERYWHERE = ("npformer/*", "tests/*", "lessons/*")
LAYERS = ("npformer/nn/*", "npformer/models/*")
MATHEMATICS = (*LAYERS, "npformer/functional/*", "npformer/kernels/*")


class OldName(NamedTuple):
    """Old names and the places where they are forbidden."""

    pattern: str  # a regular expression for the whole name
    now: str  # the new name
    files: tuple[str, ...] = EVERYWHERE
    kinds: tuple[str, ...] = ("function", "class", "argument", "attribute", "variable", "field", "keyword")


OLD_NAMES = (
    # dropout
    OldName(r"(\w+_)?keep", "dropout_mask", MATHEMATICS),
    OldName("rate", "p in functions, dropout in layers", MATHEMATICS),
    OldName("KeptCache|draw_kept|random_kept", "DropoutMask, draw_dropout_mask, random_keep_mask"),
    # attention
    OldName(r"(hard_|latent_)?look_up(_backward|_cases)?", "attend, hard_attend, latent_attend"),
    OldName(r"(Hard|Latent)?LookUpCache", "AttendCache"),
    OldName(r"weigh(_backward|ed)?|WeighCache", "attention_weights, weights_cache"),
    OldName("_look(_backward)?|looked", "_attend, attended", MATHEMATICS),
    OldName("likeliest", "one_hot_argmax, most_probable, argmax"),
    OldName("multinoulli", "one_hot_sample"),
    OldName("check_words|find_words", "check_token_mask, find_tokens"),
    OldName("likeness", "similarity"),
    # decoding one position after the other
    OldName("KeysValues", "KVCache"),
    OldName("Remembered", "EncodedSource"),
    OldName("past", "kv_cache", (*MATHEMATICS, "npformer/generation/*")),
    OldName("remember|recall", "project_memory, attend_memory", (*MATHEMATICS, "npformer/generation/*")),
    OldName("step", "decode_step", (*LAYERS, "npformer/generation/*"), ("method",)),
    # tokens
    OldName("n_words", "vocab_size"),
    OldName("words?", "token, tokens, vocab_size, token_mask", MATHEMATICS),
    OldName("MaskedWordModel|NextWordModel", "MaskedLanguageModel, CausalLanguageModel"),
    OldName("train_masked_words|train_next_words", "train_masked_language_model, ..."),
    OldName("next_words|hidden_words|hide_words", "causal_batch, masked_batch"),
    OldName("CachedWords|AllWords|NextWords", "CachedTokens, AllTokens, NextTokens"),
    OldName("best_words?|forbidden_words|word_limits", "best_token, forbidden_tokens, length_limits"),
    # recurrent layers
    OldName("hold(_backward)?", "masked_update", MATHEMATICS),
    OldName("BothWays(Cache)?|both_ways", "Bidirectional"),
    OldName("recalled", "hidden_gates"),
    # modules and training
    OldName("room|overwrite", "Parameter.accumulate", LAYERS),
    OldName("packs", "supports_packing"),
    OldName("meet|add_up|_add_up|leave", "all_gather, all_reduce, abort", ("npformer/training/*",)),
    OldName("keep_freed_memory", "keep_freed_memory_in_process"),
    OldName("Clock|restart_rate", "Timer, restart_throughput", ("npformer/*",)),
    # checking
    OldName("Scene|scene", "DiagnosisContext", ("npformer/checking/*", "npformer/learn/*")),
    OldName("Subject|subject", "CheckTarget", ("npformer/checking/*", "npformer/learn/*")),
    OldName("pull", "vjp", ("npformer/checking/*", "npformer/learn/*")),
    # one name, one thing
    OldName("Score|Row|Place|Recipe", "a name of its own", ("npformer/*",), ("class",)),
    OldName("load_places|save_place|lesson_place|code_place", "load_progress, lesson_location, ..."),
    # generation
    OldName("take_exam|show_exam|strongest_look|describe_look", "evaluate_families, strongest_head, ..."),
    OldName("written", "detokenize", ("npformer/generation/*", "npformer/data/*")),
    # figures and tasks
    OldName("Look", "ForwardPass"),
    OldName(r"(s0|illustrated)_\w+", "jianshu_..., datawhale_..."),
    OldName(r"\w*ifthen\w*", "if_then"),
)

# allowed names that have another meaning in these files, each with the reason
ALLOWED = {
    ("npformer/kernels/cpu/adam.py", "rate"): "the learning rate",
    ("npformer/kernels/gpu/adam.py", "rate"): "the learning rate",
}

OLD_MODULES = {
    "npformer/training": ("heap", "finite", "matching", "longer", "stream", "clock"),
    "npformer/generation": ("exam", "forms", "many", "rules"),
    "npformer/cli": ("trained",),
    "npformer/functional": ("look_up",),
    "npformer/checking": ("scene", "subject"),
    "npformer/storage": ("sealed", "tables", "settings"),
    "npformer/learn/course": ("places",),
    "npformer/learn/experiments": ("longer",),
    "npformer/learn/figures": ("s0_*", "illustrated_*"),
    "npformer": ("gradcheck", "zoo", "layers", "commands", "decoding", "ifthen"),
    "npformer/models": ("ifthen",),
}

OLD_FLAGS = {"--recipe": "--preset", "--pretrained": "--model"}
OLD_ROWS = ("adds up", "leaves dy and cache alone", "linearity in dy")
OLD_SOURCES = ("S0", "S2", "S3", "S4")

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


@cache
def identifiers(tree):
    """Return {name: {(kind, line), ...}} for every identifier in a file."""
    names = {}
    for kind, name, line in _identifiers(tree):
        names.setdefault(name, set()).add((kind, line))
    return names


def _identifiers(tree):
    """Yield (kind, name, line) for every identifier."""
    methods = {
        id(member)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, ast.FunctionDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield "function", node.name, node.lineno
            if id(node) in methods:
                yield "method", node.name, node.lineno
        elif isinstance(node, ast.ClassDef):
            yield "class", node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield "argument", node.arg, node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield "keyword", node.arg, node.value.lineno
        elif isinstance(node, ast.Attribute):
            yield "attribute", node.attr, node.lineno
        elif isinstance(node, ast.Name):
            yield "variable", node.id, node.lineno
        elif isinstance(node, ast.alias):
            yield "variable", (node.asname or node.name).rpartition(".")[2], node.lineno
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield "field", node.target.id, node.lineno


def found(rule, path, tree):
    """Return the lines of a file that break a rule."""
    if not any(fnmatch(path, files) for files in rule.files):
        return []
    pattern = re.compile(rule.pattern)
    return sorted(
        {
            f"{path}:{line}: {name} is now {rule.now}"
            for name, places in identifiers(tree).items()
            if pattern.fullmatch(name) and (path, name) not in ALLOWED
            for kind, line in places
            if kind in rule.kinds
        }
    )


@pytest.mark.parametrize("rule", OLD_NAMES, ids=lambda rule: rule.pattern)
def test_no_old_name_is_left(rule):
    files = [*sources("npformer"), *sources("tests"), *sources("lessons")]
    wrong = [line for path, tree in files for line in found(rule, path, tree)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("npformer/nn/linear.py", "class Dropout:\n    def __init__(self, rate): pass"),
        ("npformer/functional/norm.py", "y, source_keep = f(x)"),
        ("npformer/models/gpt.py", "class Gpt:\n    def step(self, ids): pass"),
        ("npformer/models/gpt.py", "from npformer.functional.attend import look_up"),
        ("npformer/kernels/cpu/dropout.py", "f(x, rate=0.1)"),
        ("npformer/nn/embedding.py", "self.words = 3"),
        ("tests/nn/test_linear.py", "n_words = 3"),
        ("lessons/05_x.py", "model = NextWordModel()"),
        ("npformer/learn/course/index.py", "class Place: pass"),
        ("npformer/nn/residual.py", "class Residual:\n    room: int = 3"),
    ],
)
def test_a_planted_old_name_is_found(path, code):
    assert any(found(rule, path, ast.parse(code)) for rule in OLD_NAMES)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("npformer/training/optimizer.py", "def step(self, learning_rate): rate = 3"),
        ("npformer/nn/norm.py", "step = 3"),
        ("npformer/data/files.py", "words = line.split()"),
        ("npformer/training/loop.py", "keep = 3"),
    ],
)
def test_an_old_name_with_another_meaning_is_not(path, code):
    assert not any(found(rule, path, ast.parse(code)) for rule in OLD_NAMES)


def test_every_exception_is_needed():
    """A name is allowed only while a file still has it."""
    for path, name in ALLOWED:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in identifiers(tree), (path, name)


@pytest.mark.parametrize("folder", OLD_MODULES)
def test_no_module_has_an_old_name(folder):
    names = {path.stem for path in (ROOT / folder).iterdir() if not path.name.startswith((".", "__"))}
    assert [name for name in names for old in OLD_MODULES[folder] if fnmatch(name, old)] == []


def strings(tree):
    """Yield (value, line) of every string constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


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
        assert not flags & OLD_FLAGS.keys(), path
        if path.endswith("/train.py"):
            assert "--model" not in flags, "train takes --architecture"
        else:
            assert "--run" not in flags, f"{path}: a model is read with --model"


def test_the_checker_has_no_old_row():
    for path, tree in sources("npformer/checking"):
        assert [line for value, line in strings(tree) if value in OLD_ROWS] == [], path


def test_the_figures_name_their_sources_as_the_presets_do():
    for path, tree in sources("npformer/learn/figures"):
        assert [line for value, line in strings(tree) if value in OLD_SOURCES] == [], path


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


def test_a_missing_argument_of_a_function_is_found():
    functions = public_functions(ast.parse(UNDOCUMENTED))
    assert undocumented_arguments("f.py", functions) == ["f.py:2: f does not document z"]


def test_a_missing_argument_of_a_method_is_found():
    methods = public_methods(ast.parse(UNDOCUMENTED))
    assert undocumented_arguments("f.py", methods) == ["f.py:13: C.three does not document x, y, train"]


# The JavaScript of the explorer and of the site

MODULES = sorted(
    path for folder in ("explorer", "learn/site") for path in (PACKAGE / folder / "web").rglob("*.js")
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_javascript_is_as_narrow_as_python_and_its_files_are_short(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [(number, line) for number, line in enumerate(lines, 1) if len(line) > 110] == []
    assert len(lines) <= 300
