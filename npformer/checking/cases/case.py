"""Case: a component, its inputs and its settings."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from npformer import functional as F
from npformer.checking.check import gradcheck
from npformer.checking.report import Report

# batch, source, target, d_model, heads, d_ff, vocabulary: small, and as different as possible
B, S, T, D, H, FF, V = 2, 5, 4, 6, 3, 7, 9

Maker: TypeAlias = Callable[[np.random.Generator], Any]  # builds a component, or draws one of its inputs


@dataclass(frozen=True)
class Case:
    """A component, its inputs and its settings."""

    name: str
    build: Callable[[np.random.Generator], tuple[Any, ...]]  # rng -> (thing, *inputs)
    settings: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-12  # for the complex step

    def check(self, method: str = "complex", seed: int = 0) -> Report:
        """Return the report of the gradient check. The complex step checks second derivatives as well."""
        thing, *inputs = self.build(np.random.default_rng(seed + 1))
        exact = method == "complex"
        options: dict[str, Any] = {"hessian": exact, "tolerance": self.tolerance if exact else None}
        return gradcheck(thing, *inputs, method=method, seed=seed, name=self.name, **options, **self.settings)


def floats(*shape: int) -> Maker:
    """Return a function that draws normal numbers of this shape."""
    return lambda rng: rng.standard_normal(shape)


def given(thing: Any) -> Maker:
    """Return a function that returns this object, such as ids or a pair."""
    return lambda rng: thing


def make_case(name: str, make: Maker, *makers: Maker, tolerance: float = 1e-12, **settings: Any) -> Case:
    """Return the case of a component.

    Args:
        name: The name of the case.
        make: The function that builds the component.
        makers: The functions that draw its inputs.
        tolerance: The largest error that passes with the complex step.
        settings: The keyword arguments of forward.
    """
    return Case(name, lambda rng: (make(rng), *(maker(rng) for maker in makers)), settings, tolerance)


def pair_case(name: str, pair: Any, *makers: Maker, **settings: Any) -> Case:
    """Return the case of a pure pair, or of the pair to which a function of npformer.functional belongs."""
    pair = pair if isinstance(pair, tuple) else (pair, getattr(F, f"{pair.__name__}_backward"))
    return make_case(name, given(pair), *makers, **settings)


def made(kind: Any, /, *sizes: Any, **settings: Any) -> Maker:
    """Return a function that builds a layer or a model, in float64 and with parameters of the generator."""
    takes = inspect.signature(kind).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())

    def make(rng: np.random.Generator) -> Any:
        drawn = {"rng": rng, "dtype": np.float64}
        own = {name: value for name, value in drawn.items() if takes_all or name in takes}
        return kind(*sizes, **{**own, **settings})

    return make
