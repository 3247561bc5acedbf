"""Case: a component, what goes into it, and its settings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.gradcheck.check import gradcheck
from npformer.gradcheck.report import Report

# batch, source, target, d_model, heads, d_ff, vocabulary: small, and as few alike as can be
B, S, T, D, H, FF, V = 2, 5, 4, 6, 3, 7, 9


@dataclass(frozen=True)
class Case:
    """A component, what goes into it, and its settings."""

    name: str
    build: Callable[[np.random.Generator], tuple]  # rng -> (thing, *inputs)
    settings: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-12  # by complex step

    def check(self, method="complex", seed=0) -> Report:
        """Run the gradient check, that of second derivatives included."""
        thing, *inputs = self.build(np.random.default_rng(seed + 1))
        exact = method == "complex"
        options = {"hessian": exact, "tolerance": self.tolerance if exact else None}
        return gradcheck(thing, *inputs, method=method, seed=seed, name=self.name, **options, **self.settings)


def floats(*shape):
    """A maker of normal numbers of this shape."""
    return lambda rng: rng.standard_normal(shape)


def given(thing):
    """A maker of this very thing: ids, or a pair."""
    return lambda rng: thing


def make_case(name, make, *makers, tolerance=1e-12, **settings):
    """A case of what `make` makes; each of the makers draws one of its inputs."""
    return Case(name, lambda rng: (make(rng), *(maker(rng) for maker in makers)), settings, tolerance)


def pair_case(name, pair, *makers, **settings):
    """A case of a pure pair."""
    return make_case(name, given(pair), *makers, **settings)
