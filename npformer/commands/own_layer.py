"""A learner's own layer, taken from a file and checked."""

import difflib
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

from npformer.errors import UserError
from npformer.gradcheck import Report, gradcheck


def check_own_layer(what: str, shapes: list[str] | None, method: str, seed: int) -> Report:
    """Check FILE.py:NAME on normal inputs of these shapes.

    Errors: UserError where the file cannot be read or run, or the name is not in it.
    """
    file, _, name = what.partition(":")
    if not name:
        raise UserError(f"{what} names a file and nothing in it: write {file}:NAME")
    if not shapes:
        raise UserError(f"the shape of {name}'s input is not known: give --shape 2,5,8 (one for each input)")
    thing = _find(_load(Path(file)), name, file)
    rng = np.random.default_rng(seed + 1)
    inputs = [rng.standard_normal(_shape(text)) for text in shapes]
    try:
        return gradcheck(thing, *inputs, method=method, seed=seed, name=name)
    except UserError:
        raise
    except Exception as error:  # whatever the learner's code raises
        raise UserError(f"{what} raised {_describe(error, file)}") from error


def _load(path: Path) -> ModuleType:
    """The file as a module."""
    if not path.is_file():
        raise UserError(f"there is no file {path}: give the path of a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the learner's code raises
        raise UserError(f"{path} could not be run: {_describe(error, str(path))}") from error
    return module


def _find(module: ModuleType, name: str, file: str):
    """The layer, or the pair of functions, of that name."""
    thing = getattr(module, name, None)
    if thing is None:
        near = difflib.get_close_matches(name, vars(module), n=1)
        raise UserError(f"{file} has no {name}" + (f": did you mean {near[0]}?" if near else ""))
    if isinstance(thing, type):
        try:
            return thing()
        except TypeError as error:
            raise UserError(
                f"{file}:{name} cannot be made without arguments ({error}): make one in the file, "
                "as layer = ..., and give that name"
            ) from error
    if callable(thing) and not hasattr(thing, "forward"):
        backward = getattr(module, f"{name}_backward", None)
        if backward is None:
            raise UserError(f"{file} has {name} and no {name}_backward: write both")
        return thing, backward
    return thing


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in text.split(","))
    except ValueError:
        raise UserError(f"--shape {text!r} is not a shape: write whole numbers, as 2,5,8") from None


def _describe(error: Exception, file: str) -> str:
    """The error in a few words, with the line of the learner's file that it came from."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(Path(file).name):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" in line {line}" if line else ""
    return f"{type(error).__name__}{where}: {error}"
