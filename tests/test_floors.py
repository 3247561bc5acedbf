"""The structure: a file imports from floors below its own, and nothing but what its floor may use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import npformer

PACKAGE = Path(npformer.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# the lowest floor first; a name is a file or a folder of the package
FLOORS = [
    ["errors", "atomic", "tables"],
    ["settings", "sealed"],
    ["backend", "bleu"],
    ["functional", "module", "ids", "masks", "positions", "show"],
    ["kernels"],
    ["layers", "optim", "leaks"],
    ["attention"],
    ["transformer", "recurrent", "ifthen"],
    ["models"],
    ["gradcheck", "data", "plots"],
    ["decoding"],
    ["training"],
    ["pretrained", "bench"],
    ["figures"],
    ["exercises"],
    ["zoo"],
    ["terminal"],
    ["course"],
    ["commands"],
    ["cli"],
    ["__main__", "__init__"],
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}

# who may import what is not NumPy or the standard library
ALLOWED = {
    "cupy": {"backend"},
    "cupyx": {"backend"},
    "matplotlib": {"plots", "figures"},
    "PIL": {"plots"},
    "markdown_it": {"course"},
    "mpi4py": {"training"},
    "pygments": {"course"},
    "rich": {"terminal", "course", "commands"},
    "sacrebleu": {"bleu"},
    "safetensors": {"sealed"},
    "sentencepiece": {"data"},
    "threadpoolctl": {"decoding", "training", "commands"},
    "torch": {"bench"},
}


def part_of(path):
    """The file or folder of the package that a source belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """The dotted names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            if node.module == "npformer":
                yield from (f"npformer.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_from_below(path):
    own = part_of(path)
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top != "npformer":
            assert top in sys.stdlib_module_names or top == "numpy" or own in ALLOWED.get(top, ()), name
            continue
        other = rest.split(".")[0]
        if other in FLOOR and other != own:
            assert FLOOR[other] < FLOOR[own], f"{own} imports {other}, which stands no lower"


def test_every_part_has_a_floor():
    assert {part_of(path) for path in SOURCES} == set(FLOOR)


def test_no_import_cycles_within_a_part():
    """Within a folder, too, files import each other in one direction."""
    graph = {}
    for path in SOURCES:
        module = ".".join(("npformer", *path.relative_to(PACKAGE).with_suffix("").parts))
        graph[module] = {name for name in top_level_imports(path) if name.startswith("npformer.")}
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path, module])
        if module in done:
            return
        path.append(module)
        for other in graph.get(module, ()):
            visit(other)
        path.pop()
        done.add(module)

    for module in graph:
        visit(module)


def top_level_imports(path):
    """The modules that are imported when the file is; those inside functions come later."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_fit_on_a_page(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            lines = node.end_lineno - node.lineno + 1
            docstring = ast.get_docstring(node, clean=False) or ""
            assert lines - docstring.count("\n") <= 45, node.name


def test_import_needs_numpy_alone_and_is_quick():
    """No other package is loaded, and it takes under 0.3 s beside NumPy's own time."""
    code = (
        "import sys, time, numpy; before = set(sys.modules); start = time.perf_counter(); import npformer; "
        "seconds = time.perf_counter() - start; new = set(sys.modules) - before; "
        "print(seconds, *sorted({m.split('.')[0] for m in new} - set(sys.stdlib_module_names)))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(3)
    ]
    assert all(names == ["npformer"] for _, *names in printed)
    assert min(float(seconds) for seconds, *_ in printed) < 0.3
