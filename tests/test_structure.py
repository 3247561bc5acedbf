"""The structure: packages import only from packages below them, and few of them import other libraries."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

import npformer

PACKAGE = Path(npformer.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# the order of the packages from the top: a package imports only from packages below it
ORDER = [
    "__main__",
    "__init__",
    "cli",
    "pytest_plugin",
    "learn",
    "explorer",
    "bench",
    "pretrained",
    "interop",
    "training",
    "generation",
    "checking",
    "models",
    "nn",
    "kernels",
    "plots",
    "functional",
    "data",
    "storage",
    "backend",
    "errors",
]

# methods for the user's convenience reach upward: their files, and the packages that they import when called
UPWARD = {("pretrained/loaded.py", "explorer")}

# the parts that may import libraries other than NumPy and the standard library
ALLOWED = {
    "cupy": {"backend"},
    "cupyx": {"backend"},
    "matplotlib": {"plots", "learn"},
    "PIL": {"plots"},
    "IPython": {"learn"},
    "latex2mathml": {"learn"},
    "markdown_it": {"learn"},
    "mpi4py": {"training"},
    "pygments": {"learn"},
    "rich": {"cli", "learn"},
    "sacrebleu": {"generation"},
    "safetensors": {"interop", "storage"},
    "sentencepiece": {"data", "interop"},
    "threadpoolctl": {"generation", "training", "bench", "cli", "learn"},
    "tokenizers": {"interop"},
    "jax": {"checking"},
    "pytest": {"pytest_plugin"},
    "torch": {"bench", "checking", "interop"},
}


def part_of(path):
    """Return the file or folder of the package that a source belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """Return the dotted names that a file imports, at any place in it."""
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
def test_a_file_imports_only_from_packages_below(path):
    own = part_of(path)
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top != "npformer":
            assert top in sys.stdlib_module_names or top == "numpy" or own in ALLOWED.get(top, ()), name
            continue
        other = rest.split(".")[0]
        if (path.relative_to(PACKAGE).as_posix(), other) in UPWARD:
            continue
        if other in ORDER and other != own:
            assert ORDER.index(own) < ORDER.index(other), f"{own} imports {other}, which is not below it"


@pytest.mark.parametrize(("file", "package"), UPWARD)
def test_upward_imports_are_needed_and_lazy(file, package):
    """Each exception is used, and loading the file does not load the package."""
    path = PACKAGE / file
    assert any(name.startswith(f"npformer.{package}") for name in imports_of(path))
    assert not any(name.startswith(f"npformer.{package}") for name in top_level_imports(path))


def test_the_packages_are_those_of_the_order():
    assert {part_of(path) for path in SOURCES} == set(ORDER)


def test_no_import_cycles_within_a_part():
    """Within a folder, files also import each other in one direction only."""
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


# test files of a topic that concerns several modules
TOPICS = {
    "checking": {"blind_spots", "collection", "gradcheck"},
    "cli": {"forged_models", "fuzz", "ignored_options", "subwords"},
    "data/corpus": {"corpus", "spelling"},
    "explorer": {"animation", "engine", "lessons", "views"},
    "functional": {"broadcasting", "document_numbers", "golden", "pairs"},
    "kernels": {"gpu_training_step", "random_cases"},
    "learn/bugs": {"bugs"},
    "learn/classroom": {"exports"},
    "learn/course": {"citations", "explorer_lessons", "index_and_glossary", "lessons", "real_translator"},
    "learn/exercises": {"exercises"},
    "learn/figures": {"all_figures", "changed_inputs"},
    "learn/site": {"search"},
    "models": {
        "backward_details",
        "document_numbers",
        "initial_values",
        "language_models",
        "torch_parity",
        "translators",
    },
    "nn": {"batch_norm", "input_errors", "protocol"},
    "storage": {"command_kills", "damaged_files", "writers"},
    "training": {"kills", "mpi"},
}


def test_each_test_file_has_the_name_of_a_module_or_of_a_topic():
    """Check that tests/ mirrors npformer/: tests/nn/test_norm.py or test_norm_torch.py tests nn/norm.py."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        if folder == "." or folder.startswith("helpers"):
            continue
        assert (PACKAGE / folder).is_dir(), f"{path} has no package"
        modules = {part.stem for part in (PACKAGE / folder).iterdir() if part.suffix in ("", ".py")}
        topic = path.stem.removeprefix("test_")
        names = modules | TOPICS.get(folder, set())
        assert any(topic == name or topic.startswith(f"{name}_") for name in names), path


def top_level_imports(path):
    """Return the modules that are imported together with the file, without the imports inside functions."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_fit_on_a_screen(path):
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            lines = node.end_lineno - node.lineno + 1
            docstring = ast.get_docstring(node, clean=False) or ""
            assert lines - docstring.count("\n") <= 45, node.name


def test_import_needs_only_numpy_and_is_fast():
    """No other package is loaded, and the import takes under 0.3 s of processor time besides NumPy's own."""
    code = (
        "import sys, time, numpy; before = set(sys.modules); start = time.process_time(); import npformer; "
        "seconds = time.process_time() - start; new = set(sys.modules) - before; "
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
