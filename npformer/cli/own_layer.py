"""Check a layer in a user's file, which runs in a child process with limits.

The child makes the report itself, and refuses to if the file has replaced functions of npformer or NumPy.
"""

import contextlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from npformer.checking import Report, gradcheck
from npformer.checking.foreign import is_autograd_function, library_of_function
from npformer.cli.limits import require_arrays
from npformer.errors import UserError, did_you_mean
from npformer.learn.tasks.answer import DamagedAnswer
from npformer.learn.tasks.process import Answer, ask_child
from npformer.learn.tasks.reports import plain_rows, report_from
from npformer.learn.tasks.untouched import Untouched

MEMORY = 16 << 30  # bytes that one process may allocate
SECONDS = 600.0  # the default limit on processor time

# ---------------------------------------------------------------------------------------------------------
# The parent process


def check_own_layer(
    what: str, shapes: list[tuple[int, ...]] | None, method: str, seed: int, seconds: float
) -> tuple[Report, str]:
    """Check FILE.py:NAME on normally distributed inputs of these shapes.

    Args:
        what: The file and the name, as FILE.py:NAME.
        shapes: The shape of each input, as (2, 5, 8).
        method: "complex" or "difference".
        seed: The seed of the inputs.
        seconds: The limit on processor time.

    Returns:
        The report, and the beginning of what the file printed.

    Raises:
        UserError: If the file cannot be read or run, if the name is not in it, or if it ended the check.
    """
    file, _, name = what.partition(":")
    if not name:
        raise UserError(f"{what} names a file, and no layer or function in it: write {file}:NAME")
    if not shapes:
        raise UserError(f"the shape of {name}'s input is not known: give --shape 2,5,8 (one for each input)")
    require_arrays(shapes)
    if not Path(file).is_file():
        raise UserError(f"there is no file {file}: give the path of a Python file")
    arguments = [file, name, json.dumps(shapes), method, str(seed)]
    answer = ask_child(
        "npformer.cli.own_layer:observe_layer",
        arguments,
        Path(file),
        seconds=seconds,
        memory=MEMORY,
        isolated=False,
    )
    return _report(what, name, answer), answer.printed


def _report(what: str, name: str, answer: Answer) -> Report:
    match answer.values:
        case [{"error": str(message)}]:
            raise UserError(" ".join(message.split()))
        case [{"rows": rows, "notes": [*notes]}] if all(isinstance(text, str) for text in notes):
            with contextlib.suppress(DamagedAnswer):
                report = report_from(name, rows)
                report.notes += notes
                return report
    raise UserError(f"{what} could not be checked: {answer.problem or 'its answer cannot be read'}")


# ---------------------------------------------------------------------------------------------------------
# The child process


def observe_layer(file: str, name: str, shapes: str, method: str, seed: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of the report, or a sentence about the mistake of the user.

    Args:
        file: The file.
        name: The name of the layer or function in it.
        shapes: The shape of each input, as JSON.
        method: "complex" or "difference".
        seed: The seed of the inputs.
    """
    untouched = Untouched()
    try:
        thing = _find(_load_module(Path(file)), name, file)
        untouched.require(file)
        rng = np.random.default_rng(int(seed) + 1)
        inputs = [rng.standard_normal(shape) for shape in json.loads(shapes)]
        library = library_of_function(thing)
        report = gradcheck(thing, *inputs, method=method, seed=int(seed), name=name, library=library)
        untouched.require(file)
    except UserError as error:
        yield {"error": str(error)}
    except SystemExit as error:
        yield {"error": f"{file} ended the program (SystemExit {error.code}): leave out exit()"}
    except BaseException as error:  # the user's code may raise anything
        yield {"error": f"{file}:{name} raised {_describe(error, file)}"}
    else:
        yield {"rows": plain_rows(report), "notes": report.notes}


def _load_module(path: Path) -> ModuleType:
    """Run the file and return it as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"{path} could not be run: {_describe(error, str(path))}") from error
    return module


def _find(module: ModuleType, name: str, file: str) -> Any:
    """Return the layer, or the pair of functions, of that name."""
    thing = getattr(module, name, None)
    if thing is None:
        things = vars(module).items()
        known = [each for each, value in things if each[:2] != "__" and not isinstance(value, ModuleType)]
        hint = did_you_mean(name, known) if known else "define it there"
        raise UserError(f"{file} has no {name}: {hint}")
    if isinstance(thing, type) and not is_autograd_function(thing):
        try:
            return thing()
        except TypeError as error:
            raise UserError(
                f"{file}:{name} cannot be made without arguments ({error}): make one in the file, "
                "as layer = ..., and give that name"
            ) from error
    if library_of_function(thing) is None and callable(thing) and not hasattr(thing, "forward"):
        backward = getattr(module, f"{name}_backward", None)
        if backward is None:
            raise UserError(f"{file} has {name} and no {name}_backward: write both")
        return thing, backward
    return thing


def _describe(error: BaseException, file: str) -> str:
    """Return the error in a few words, with the line of the user's file where it was raised."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(Path(file).name):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" in line {line}" if line else ""
    # NumPy says this of `grad += ...` where the gradient of a broadcast array was not summed
    remedy = ": sum over the axes of the broadcast" if "non-broadcastable output" in str(error) else ""
    return f"{type(error).__name__}{where}: {error}{remedy}"
