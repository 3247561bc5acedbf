"""The docstring of every public name says all that its page of the API needs, and sends nobody elsewhere."""

import ast
import functools
import importlib
import inspect
import re
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import npformer
from npformer.backend import Array

PACKAGE = Path(npformer.__file__).parent
PACKAGES = ("nn", "functional", "models", "checking", "plots", "interop")
SAYS_WHAT_IT_RETURNS = re.compile(
    r"\A(Return|Yield|Compute|Draw)\b|^Returns:|^Yields:|->|, and return ", re.MULTILINE
)
SENT_AWAY = re.compile(r": as in\b", re.IGNORECASE)  # "rng, dtype: As in Encoder."
SHAPE = re.compile(r"\bshapes?\b|\((\.\.\.|1\b[,)]|[A-Z]\b)|\(\)|\b(matrix|scalar|vectors?)\b")


class Public(NamedTuple):
    """A public function, class or method."""

    name: str
    thing: object
    owner: type | None  # of a method

    @property
    def docstring(self):
        return inspect.cleandoc(self.thing.__doc__ or "")

    @property
    def function(self):
        """The function whose arguments the docstring describes, or None for a class of fields."""
        if not inspect.isclass(self.thing):
            return self.thing
        return vars(self.thing).get("__init__") if not hasattr(self.thing, "_fields") else None


def packages():
    """Yield npformer and the packages of the API, with the packages inside them."""
    yield npformer
    for path in sorted(PACKAGE.rglob("__init__.py")):
        parts = path.parent.relative_to(PACKAGE).parts
        if parts and parts[0] in PACKAGES and ("torch" not in parts or find_spec("torch")):
            yield importlib.import_module(".".join(("npformer", *parts)))


@functools.cache
def public():
    """Return the public functions, classes and methods, each one once."""
    found = {}
    for package in packages():
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            if not (inspect.isroutine(thing) or inspect.isclass(thing)):
                continue
            if not thing.__module__.startswith("npformer"):
                continue
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing, None
            if inspect.isclass(thing):
                for method, function in inspect.getmembers(thing, inspect.isfunction):
                    if not method.startswith("_") and function.__module__.startswith("npformer"):
                        found[f"{function.__module__}.{function.__qualname__}"] = function, thing
    return [Public(name, *rest) for name, rest in sorted(found.items())]


def parameters_of(function):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return [each for each in found if each.kind not in kinds and each.name not in ("self", "cls")]


def section(docstring, title):
    """Return the lines of a section of a docstring, or the empty string."""
    match = re.search(rf"^{title}:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    return match.group(1) if match else ""


def lacks(item):
    """Yield what the docstring of a public thing lacks."""
    text = item.docstring
    if not text:
        yield "a docstring"
    if SENT_AWAY.search(text):
        yield "its own description, since it sends the reader to another docstring"
    function = item.function
    if function is None or is_generated(item):
        return
    arguments = parameters_of(function)
    described = section(text, "Args")
    missing = [
        a.name for a in arguments if not re.search(rf"^    (\*?\w+, )*{a.name}\b.*:", described, re.MULTILINE)
    ]
    if len(arguments) == 1 and f"`{arguments[0].name}`" in text.partition("\n")[0]:
        missing = []  # the first sentence says what the only argument is
    if missing and len(arguments) >= (1 if inspect.isclass(item.thing) else 3):
        yield f"arguments: {', '.join(missing)}"
    in_order = [a.name for a in arguments if re.search(rf"^    {a.name}:", described, re.MULTILINE)]
    if [name for name in re.findall(r"^    (\w+):", described, re.MULTILINE) if name in in_order] != in_order:
        yield "the order of its arguments"
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    annotated = [each for each in ast.walk(node.args) if isinstance(each, ast.arg) and each.annotation]
    arrays = [each.arg for each in annotated if ast.unparse(each.annotation).startswith("Array")]
    if arrays and not SHAPE.search(text):
        yield f"the shape of {', '.join(arrays)}"
    returned = ast.unparse(node.returns) if node.returns else "None"
    if (
        not inspect.isclass(item.thing)
        and returned not in ("None", "NoReturn", "Self")
        and not SAYS_WHAT_IT_RETURNS.search(text)
    ):
        yield "what it returns"
    raised = [n for n in ast.walk(node) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    where = text + (item.owner.__doc__ or "" if item.owner else "")
    if raised and not re.search(r"^ *Raises:|\ARaise\b", where, re.MULTILINE):
        yield f"the error {ast.unparse(raised[0].exc.func)}"


def is_generated(item):
    """Return whether a class gets its constructor from its fields, which have comments."""
    return inspect.isclass(item.thing) and hasattr(item.thing, "__dataclass_fields__")


def test_every_public_docstring_stands_alone():
    assert len(public()) > 200
    wrong = [f"{item.name} lacks {what}" for item in public() for what in lacks(item)]
    assert not wrong, "\n".join(wrong)


class Incomplete:
    """A layer whose docstrings lack something."""

    def __init__(self, width):
        self.width = width

    def two(self, x: Array, y: Array) -> Array:
        """Add two arrays."""
        return x + y

    def three(self, x, y, *, train):
        """Return a sum.

        Args:
            x, train: Numbers.
        """
        if y is None:
            raise ValueError("y is None")
        return x + y + train

    def elsewhere(self, x):
        """Return x.

        Args:
            x: As in `three`.
        """


def test_what_a_docstring_lacks_is_found():
    of_class = Public("Incomplete", Incomplete, None)
    two, three, elsewhere = (
        Public(name, vars(Incomplete)[name], Incomplete) for name in ("two", "three", "elsewhere")
    )
    assert list(lacks(of_class)) == ["arguments: width"]
    assert list(lacks(two)) == ["the shape of x, y", "what it returns"]
    assert list(lacks(three)) == ["arguments: y", "the error ValueError"]
    assert list(lacks(elsewhere)) == ["its own description, since it sends the reader to another docstring"]
