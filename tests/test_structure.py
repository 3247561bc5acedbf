"""The structure: packages import from packages below them, in no circles, and few import other libraries."""

import ast
import importlib
import inspect
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from paths import ROOT

import npformer
from npformer.interop.families import Family
from npformer.models.bert import Bert
from npformer.models.gpt import GPT
from npformer.models.transformer import Transformer

PACKAGE = Path(npformer.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# the order of the packages from the top: a package imports only from packages below it, in functions too
ORDER = [
    "__main__",
    "__init__",
    "cli",
    "pytest_plugin",
    "learn",
    "explorer",
    "bench",
    "pretrained",
    "lenses",
    "interop",
    "training",
    "generation",
    "checking",
    "mistakes",
    "models",
    "nn",
    "kernels",
    "plots",
    "functional",
    "data",
    "storage",
    "backend",
    "escaping",
    "validation",
    "language",
    "errors",
    "version",
]

# explore() of a loaded model reaches upward: the files, and the package that they import when it is called
UPWARD = {("pretrained/loaded.py", "explorer"), ("pretrained/text_model.py", "explorer")}
UPWARD |= {("plots/attention_arrays.py", "interop")}  # the attention of a module of PyTorch

# the parts that may import libraries other than NumPy and the standard library
ALLOWED = {
    "cupy": {"backend"},
    "cupyx": {"backend"},
    "docutils": {"learn"},
    "jinja2": {"interop", "learn"},
    "joblib": {"learn"},
    "matplotlib": {"plots", "learn"},
    "PIL": {"plots"},
    "IPython": {"learn"},
    "latex2mathml": {"learn"},
    "markdown_it": {"learn"},
    "mpi4py": {"training"},
    "polib": {"language", "learn"},
    "pygments": {"learn"},
    "rich": {"cli", "learn", "lenses"},
    "sacrebleu": {"generation"},
    "safetensors": {"interop", "storage"},
    "sentencepiece": {"data", "interop"},
    "sphinx": {"learn"},
    "threadpoolctl": {"generation", "training", "bench", "cli", "learn"},
    "tokenizers": {"interop"},
    "jax": {"checking"},
    "pytest": {"pytest_plugin"},
    "torch": {"bench", "checking", "interop"},
}


def part_of(path):
    """Return the file or folder of the package that a source belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path):
    """Return the dotted name of a source."""
    return ".".join(("npformer", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module_of(path) for path in SOURCES}


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def is_for_types(node):
    """Return whether a node is `if TYPE_CHECKING:`, whose imports are not made when the program runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def imports_of(path, *, with_types=True):
    """Return the dotted names that a file imports, at any place in it, also inside functions."""
    tree, left_out = tree_of(path), set()
    if not with_types:
        left_out = {inner for node in ast.walk(tree) if is_for_types(node) for inner in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name if name in MODULES else node.module for name in named]
    return found


def is_allowed(path, name):
    """Return whether a file may import a module."""
    own = part_of(path)
    top, _, rest = name.partition(".")
    if top != "npformer":
        return top in sys.stdlib_module_names or top == "numpy" or own in ALLOWED.get(top, ())
    other = rest.partition(".")[0] or "__init__"
    if (path.relative_to(PACKAGE).as_posix(), other) in UPWARD or other == own:
        return True
    return other in ORDER and ORDER.index(own) < ORDER.index(other)


def test_a_file_imports_only_from_packages_below():
    wrong = [(path, name) for path in SOURCES for name in imports_of(path) if not is_allowed(path, name)]
    assert wrong == []


def test_upward_imports_are_needed_and_lazy():
    """Each exception is used, and loading the file does not load the package."""
    for file, package in UPWARD:
        path, above = PACKAGE / file, f"npformer.{package}"
        assert any(name.startswith(above) for name in imports_of(path))
        assert not any(name.startswith(above) for name in top_level_imports(path))


def test_the_packages_are_those_of_the_order():
    assert {part_of(path) for path in SOURCES} == set(ORDER)


def test_no_files_import_each_other():
    """Files import each other in one direction only, also inside functions; UPWARD is the one exception."""
    graph = {}
    for path in SOURCES:
        upward = tuple(f"npformer.{above}" for file, above in UPWARD if path == PACKAGE / file)
        graph[module_of(path)] = {
            name for name in imports_of(path, with_types=False) if not (upward and name.startswith(upward))
        }
    TopologicalSorter(graph).prepare()  # raises CycleError, whose message has the cycle


# test files of a topic that concerns several modules
TOPICS = {
    "checking": {"blind_spots", "collection", "gradcheck"},
    "cli": {"fuzz", "refusals", "subwords"},
    "data/corpus": {"corpus"},
    "explorer": {"animation", "engine", "lessons", "views"},
    "functional": {"broadcasting", "document_numbers", "golden", "pairs"},
    "kernels": {"both_devices", "gpu_training_step", "random_cases"},
    "learn/bugs": {"bugs"},
    "learn/classroom": {"exports"},
    "learn/course": {"citations", "index_and_glossary", "lessons", "notation", "real_translator"},
    "learn/exercises": {"exercises"},
    "learn/figures": {"all_figures", "changed_inputs"},
    "learn/site": {"search", "translated_pages", "zoo_pages"},
    "models": {
        "backward_details",
        "initial_values",
        "torch_parity",
        "translators",
    },
    "nn": {"batch_norm", "edges", "half", "input_errors", "protocol"},
    "storage": {"damaged_files", "interrupted_commands", "writers"},
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
    return [node.module for node in tree_of(path).body if isinstance(node, ast.ImportFrom)]


def test_functions_fit_on_a_screen():
    long = [
        (path, node.name)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno - node.lineno - (ast.get_docstring(node, clean=False) or "").count("\n") > 44
    ]
    assert long == []


def test_import_needs_only_numpy_and_is_fast():
    """No other package is loaded, and the import takes under 0.3 s of processor time besides NumPy's own."""
    code = (
        "import sys, time, numpy; before = set(sys.modules); start = time.process_time(); import npformer; "
        "seconds = time.process_time() - start; new = set(sys.modules) - before; "
        "print(seconds, *sorted({m.split('.')[0] for m in new} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *names = done.stdout.split()
    assert names == ["npformer"]
    assert float(seconds) < 0.3


def test_a_family_of_models_can_be_read_in_five_minutes():
    """Its file in interop/families/ and its own model, if it is not a GPT, a BERT or a Transformer."""
    bases = {GPT, Bert, Transformer}
    lines = {}
    for path in sorted((PACKAGE / "interop/families").glob("[!_]*.py")):
        module = importlib.import_module(f"npformer.interop.families.{path.stem}")
        models = {each.model for each in vars(module).values() if isinstance(each, Family)}
        files = [path, *(inspect.getsourcefile(model) for model in models - bases)]
        if models:
            lines[path.stem] = sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files)
    assert len(lines) > 15
    assert {name: count for name, count in lines.items() if count > 250} == {}
