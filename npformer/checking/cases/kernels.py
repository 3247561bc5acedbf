"""Cases of the kernels: each one in float32 and in float64, beside its plain pair in float64.

Kernels take no complex numbers, so the plain pair, which the other cases check, is the reference. The inputs
are rounded to float32 first, so that both compute with the same numbers. A sum of n terms is correct to n
times the precision of its dtype, and that is the tolerance (Higham 2002, section 4.2).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from npformer import functional as F
from npformer import kernels
from npformer.backend import Array, is_array
from npformer.checking.cases.case import FF, B, D, H, S, T, V
from npformer.checking.report import CheckRow, Report
from npformer.checking.trees import draw_like
from npformer.functional.masks import causal_mask
from npformer.functional.packing import find_tokens, pack, unpack
from npformer.kernels.cpu.long_attention import LONG, long_attention, long_attention_backward

Pair: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]
DTYPES = (np.float32, np.float64)
OTHER_ROUNDINGS = 32  # those of exp, division, square root and the products before and after the longest sum
LONG_SENTENCE = 160  # a head with 160² scores is computed by long_attention
assert LONG_SENTENCE**2 > LONG


@dataclass(frozen=True)
class KernelCase:
    """A kernel beside its plain pair.

    Args:
        name: The name of the case.
        kernel: The pair of functions of npformer.kernels.
        plain: The pair of functions of npformer.functional.
        draw: A function rng -> the inputs. Arrays of floats are rounded to float32.
        gradients: The names of the gradients, in the order in which backward returns them.
        terms: The number of terms in the longest sum.
        settings: The keyword arguments of the forward pass. rng=7 seeds a new generator for each run.
    """

    name: str
    kernel: Pair
    plain: Pair
    draw: Callable[[np.random.Generator], list[Any]]
    gradients: tuple[str, ...]
    terms: int
    settings: dict[str, Any] = field(default_factory=dict)

    def check(self, method: str = "complex", seed: int = 0) -> Report:
        """Return the report of the kernel beside its plain pair. Any method gives the same report."""
        rng = np.random.default_rng(seed + 1)
        inputs = [_cast(x, np.float32) for x in self.draw(rng)]
        rows = []
        for dtype in DTYPES:
            state = int(rng.integers(1 << 32))  # both pairs get the same dy
            right = self._run(self.plain, [_cast(x, np.float64) for x in inputs], state)
            found = self._run(self.kernel, [_cast(x, dtype) for x in inputs], state)
            tolerance = (self.terms + OTHER_ROUNDINGS) * float(np.finfo(dtype).eps)
            for tensor in right:
                rows.append(_row(self.name, tensor, found[tensor], right[tensor], dtype, tolerance))
        return Report(self.name, rows)

    def _run(self, pair: Pair, inputs: list[Any], state: int) -> dict[str, Array]:
        """Return y and the gradients by name."""
        settings = dict(self.settings)
        if "rng" in settings:
            settings["rng"] = np.random.default_rng(settings["rng"])
        f, f_backward = pair
        y, cache = f(*inputs, **settings)
        dy = draw_like(y, np.random.default_rng(state))
        dy = dy if np.ndim(dy) == 0 else _cast(dy.astype(np.float32), y.dtype)
        returned = f_backward(dy, cache)
        grads = returned if isinstance(returned, tuple) else (returned,)
        return {"y": np.asarray(y)} | dict(zip(self.gradients, map(np.asarray, grads), strict=True))


def _cast(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if is_array(x) and x.dtype.kind == "f" else x


def _row(name: str, tensor: str, found: Array, right: Array, dtype: Any, tolerance: float) -> CheckRow:
    """Return the row of an output or of a gradient."""
    how = f"{np.dtype(dtype)} beside float64"
    if found.dtype != dtype or found.shape != right.shape:
        why = (
            f"it has dtype {found.dtype} and shape {found.shape}: {np.dtype(dtype)} {right.shape} is correct"
        )
        return CheckRow(name, tensor, np.inf, how, tolerance, None, why)
    error = np.linalg.norm(found - right) / max(np.linalg.norm(right), np.finfo(dtype).tiny)
    return CheckRow(name, tensor, float(error), how, tolerance)


def kernel_cases() -> Iterator[KernelCase]:
    """Yield a case of every kernel, with every option that changes its way."""
    x, w = (B, T, D), (D,)
    yield _case("linear", _floats(x, (D, FF), (FF,)), ("dx", "dweight", "dbias"), B * T)
    yield _case("layer_norm", _floats(x, w, w), ("dx", "dgain", "dbias"), B * T)
    dropped: dict[str, Any] = {"p": 0.4, "rng": 5}
    yield _case("dropout", _floats(x), ("dx",), 1, **dropped)
    for name, settings in {"": {}, ", dropout": dropped}.items():
        gradients = ("dx", "dh", "dgain", "dbias")
        yield _case("add_norm", _floats(x, x, w, w), gradients, B * T, name, **settings)
        for activation in ("relu", "gelu", "gelu_tanh"):
            own = {"activation": activation, **settings}
            yield _case("activation_dropout", _floats(x), ("dx",), 1, f", {activation}{name}", **own)
    ids = np.array([[4, 1, 1, 0], [1, 8, 0, 0]])
    yield _case("embedding", lambda rng: [ids, rng.standard_normal((V, D)), 2.5, 0], ("dtable",), B * T)
    yield from _attention_cases(dropped)
    yield from _cross_entropy_cases(ids)
    moments = (kernels.adam_update, F.adam_update)
    pairs = [(_updated(update), lambda dy, cache: dy) for update in moments]
    yield KernelCase("kernel adam_update", pairs[0], pairs[1], _adam_inputs, ("dy",), 1)
    yield from _packing_cases(ids)


def _case(
    function: str,
    draw: Callable[[np.random.Generator], list[Any]],
    gradients: tuple[str, ...],
    terms: int,
    option: str = "",
    **settings: Any,
) -> KernelCase:
    """Return the case of a kernel that has the name of its plain pair."""
    pairs = [(getattr(module, function), getattr(module, f"{function}_backward")) for module in (kernels, F)]
    return KernelCase(f"kernel {function}{option}", pairs[0], pairs[1], draw, gradients, terms, settings)


def _floats(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [rng.standard_normal(shape) for shape in shapes]


def _attention_cases(dropped: dict[str, Any]) -> Iterator[KernelCase]:
    gradients = ("dq", "dk", "dv")
    draw = _floats((B, H, T, 3), (B, H, S, 3), (B, H, S, 2))
    mask = np.ones((B, 1, T, S), bool)
    mask[0, 0, 1] = False  # a query that may attend to no key
    for name, settings in {"": {}, ", mask": {"mask": mask}, ", dropout": dropped}.items():
        yield _case("attention", draw, gradients, S, name, **settings)
    long = _floats(*((1, 2, LONG_SENTENCE, n) for n in (3, 3, 2)))
    causal: dict[str, Any] = {"mask": causal_mask(LONG_SENTENCE, np.zeros(1))}
    for name, settings in {"": {}, ", causal": causal}.items():
        yield _case("attention", long, gradients, LONG_SENTENCE, f" of long sentences{name}", **settings)
    kernel = (_long_attention, long_attention_backward)
    plain = (_plain_long_attention, F.attention_backward)
    name = "kernel attention of long sentences, dropout"
    yield KernelCase(name, kernel, plain, long, gradients, LONG_SENTENCE, dropped)


def _long_attention(q: Array, k: Array, v: Array, p: float, rng: np.random.Generator) -> tuple[Array, Any]:
    return long_attention(q, k, v, None, 0.5, p, rng)


def _plain_long_attention(q: Array, k: Array, v: Array, p: float, rng: np.random.Generator) -> Any:
    """Compute attention with the dropout mask of the kernel, which draws one for each block."""
    dropout_mask = _long_attention(q, k, v, p, rng)[1].dropout_mask
    _, cache = F.attention(q, k, v, scale=0.5)
    return (cache.weights * dropout_mask) @ v, cache._replace(dropout_mask=dropout_mask)


def _cross_entropy_cases(targets: Array) -> Iterator[KernelCase]:
    def draw(rng: np.random.Generator) -> list[Array]:
        return [3 * rng.standard_normal((B, T, V)), targets]

    padding: dict[str, Any] = {"pad_id": 0}
    for name, settings in {
        "": {},
        ", padding": padding,
        ", label smoothing": {**padding, "smoothing": 0.1},
    }.items():
        yield _case("cross_entropy", draw, ("dlogits",), V, name, **settings)
        in_place = (kernels.cross_entropy_in_place, kernels.cross_entropy_backward)
        plain = (F.cross_entropy, F.cross_entropy_backward)
        case = f"kernel cross_entropy_in_place{name}"
        yield KernelCase(case, in_place, plain, draw, ("dlogits",), V, settings)


def _adam_inputs(rng: np.random.Generator) -> list[Array]:
    """Return values, gradients, and their two moving averages, of which the second is positive."""
    return [*rng.standard_normal((3, 700)), rng.uniform(0.1, 1, 700)]


def _updated(update: Callable[..., None]) -> Callable[..., Any]:
    """Return a function that returns what an update of Adam writes into its arguments."""

    def updated(*arrays: Array) -> tuple[Array, None]:
        update(*arrays, lr=0.1, t=3, betas=(0.9, 0.98), eps=1e-9)
        return np.stack(arrays), None

    return updated


def _packing_cases(ids: Array) -> Iterator[KernelCase]:
    """Yield pack and unpack, whose backward passes are each other, beside their definitions."""
    rows, columns = np.nonzero(ids)
    packing = find_tokens(ids, 0)

    def unpacked(x: Array) -> Array:
        y = np.zeros((*ids.shape, x.shape[-1]), x.dtype)
        y[rows, columns] = x
        return y

    plain = (lambda x: (x[rows, columns], None), lambda dy, cache: unpacked(dy))
    pair = (lambda x: (pack(x, packing), packing), unpack)
    yield KernelCase("pack", pair, plain, _floats((*ids.shape, D)), ("dx",), 0)
    plain = (lambda x: (unpacked(x), None), lambda dy, cache: dy[rows, columns])
    pair = (lambda x: (unpack(x, packing), packing), pack)
    yield KernelCase("unpack", pair, plain, _floats((len(rows), D)), ("dx",), 0)
