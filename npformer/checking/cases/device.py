"""Components on a GPU beside the same components on the host: outputs and all gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array, is_array, to_backend, to_numpy
from npformer.checking.cases.case import Case
from npformer.checking.check_target import settings_of
from npformer.checking.report import CheckRow, Report
from npformer.checking.trees import draw_like, is_real, leaves, map_tree
from npformer.nn.module import Module

TOLERANCES = {"float64": 1e-12, "float32": 2e-6}
# it lists all draws one by one, in order to study estimators of a gradient
HOST_ONLY = ("score function, all draws",)


def check_on_device(case: Case, seed: int = 0) -> Report:
    """Compute a component with CuPy and with NumPy, in float64 and in float32, and compare all arrays.

    Args:
        case: The component with its inputs.
        seed: The seed of the inputs, of the parameters and of the gradient of the output.

    Returns:
        A report with a row for each output and each gradient. An error is the largest difference of an array
        relative to the largest entry of all arrays, since a gradient that is 0 has rounding errors too.
    """
    rows = []
    for dtype, tolerance in TOLERANCES.items():
        here, there = (_arrays(case, dtype, backend, seed) for backend in ("numpy", "cupy"))
        size = max(float(np.abs(array).max(initial=0.0)) for array in here.values())
        for name, expected in here.items():
            found = there[name]
            if (found.dtype, found.shape) == (expected.dtype, expected.shape):
                error, why = float(np.abs(found - expected).max(initial=0.0)) / size, ""
            else:
                error, why = float("inf"), f"it has dtype {found.dtype} and shape {found.shape} on the device"
            rows.append(CheckRow(case.name, name, error, f"{dtype}, CuPy beside NumPy", tolerance, None, why))
    return Report(case.name, rows)


def _arrays(case: Case, dtype: str, backend: str, seed: int) -> dict[str, Array]:
    """Return the outputs of a component and all gradients by name, on the host."""

    def placed(value: Any) -> Any:
        if not is_array(value):
            return value
        return to_backend(value.astype(dtype) if value.dtype == np.float64 else value, backend)

    thing, *inputs = case.build(np.random.default_rng(seed + 1))
    settings = dict(case.settings)
    moved = [name for name in settings if "mask" in name or name == "buckets"]
    settings |= {name: placed(settings[name]) for name in moved}
    if "rng" in settings:
        settings["rng"] = np.random.default_rng(settings["rng"])
    if isinstance(thing, tuple):
        forward, backward = thing
        _place_closure(forward, placed)
    else:
        wrapped = [part for part in vars(thing).values() if isinstance(part, Module)]
        for module in [thing] if isinstance(thing, Module) else wrapped:
            module.astype(dtype).to(backend)
        forward, backward = thing.forward, thing.backward
        settings = settings_of(forward, settings)
    y, cache = forward(*map(placed, inputs), **settings)
    dy = map_tree(placed, draw_like(map_tree(to_numpy, y), np.random.default_rng(seed + 2)))
    grads = backward(dy, cache)
    parameters = [] if isinstance(thing, tuple) else thing.named_parameters()
    found = {f"output {place}": part for place, part in enumerate(leaves(y))}
    found |= {f"gradient {place}": part for place, part in enumerate(leaves(grads)) if part is not None}
    found |= {f"{name}.grad": parameter.grad for name, parameter in parameters}
    on_host = {name: to_numpy(part) for name, part in found.items()}
    return {name: part for name, part in on_host.items() if is_real(part)}


def _place_closure(function: Callable[..., Any], placed: Callable[[Any], Any]) -> None:
    """Move the arrays that a function of a case is bound to, such as the targets of a loss."""
    for cell in function.__closure__ or ():
        cell.cell_contents = map_tree(placed, cell.cell_contents)
