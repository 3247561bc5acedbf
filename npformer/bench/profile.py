"""Where the time of a training step goes: component by component, forward and backward."""

import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from npformer.bench.own_step import wait_for
from npformer.bench.setups import BETAS, EPS, LEARNING_RATE, SEED, Setup
from npformer.module import Module
from npformer.optim import Adam
from npformer.training import step as training_step
from npformer.training.step import dropout_rngs, make_step
from npformer.transformer import Transformer

WARM_UP = 2  # steps
REST = "the rest of the step"

# methods of layers that are components of their own; what others take is their caller's time
METHODS = ("forward", "backward", "enter", "enter_backward", "join", "join_backward")
HEADS = ("attend", "attend_backward")  # of an attention layer: what its heads do
# the component of a module by its dotted name: the first pattern that is found in it
COMPONENTS = (
    (r"^(source|target)", "embeddings"),
    (r"^output", "logits"),
    (r"(attention|cross)\.(query|key|value)", "attention: queries, keys and values"),
    (r"(attention|cross)\.output", "attention: heads, joined by Wo"),
    (r"(attention|cross)$", "attention: splitting and merging heads"),
    (r"feed_forward\.(inner|outer)", "feed-forward: linear maps"),
    (r"feed_forward$", "feed-forward: ReLU, dropout"),
    (r"residual", "residual, dropout, norm"),
    (r"norm", "final norms"),
    (r"", "stacks: passing on"),
)
# functions of a step that belong to no layer
FUNCTIONS = {
    "cross_entropy": "cross-entropy",
    "cross_entropy_backward": "cross-entropy",
    "clip_global_norm": "clipping, and looking for NaN",
    "check_gradients": "clipping, and looking for NaN",
    "check_parameters": "clipping, and looking for NaN",
    "check_loss": "clipping, and looking for NaN",
}


class Line(NamedTuple):
    """The seconds of one component in one step, without those of the components inside it."""

    component: str
    forward: float
    backward: float

    @property
    def seconds(self) -> float:
        """Both ways."""
        return self.forward + self.backward


class Stopwatch:
    """Adds up the time of functions, each without the functions that it calls and that are watched too."""

    def __init__(self, wait: Callable[[], None]):
        self.wait = wait  # until the GPU has done what was asked of it
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)  # by component and direction
        self.inside: list[float] = []  # for every function that runs now: the time of those it called

    def watch(self, function: Callable, component: str, direction: str) -> Callable:
        """The function, with its time added up."""

        def watched(*args, **kwargs):
            self.wait()
            start = time.perf_counter()
            self.inside.append(0.0)
            try:
                result = function(*args, **kwargs)
                self.wait()
            finally:
                took = time.perf_counter() - start
                self.seconds[component, direction] += took - self.inside.pop()
                if self.inside:
                    self.inside[-1] += took
            return result

        return watched


def profile(setup: Setup, *, backend: str, seconds: float) -> list[Line]:
    """The time of each component of a step, in seconds, the longest first; they sum up to the whole step.

    All in one thread, the caller's: of threads that wait for each other no one could say who took the time.
    """
    model = Transformer(setup.config(), rng=np.random.default_rng(SEED)).to(backend)
    adam, batch = Adam(model, betas=BETAS, eps=EPS), setup.batch()
    stopwatch = Stopwatch(lambda: wait_for(model.values))
    step = stopwatch.watch(make_step, REST, "forward")
    steps: list[dict[tuple[str, str], float]] = []
    with watching(stopwatch, model, adam):
        began, number = time.perf_counter(), 0
        while len(steps) < WARM_UP + 3 or time.perf_counter() - began < seconds:
            number += 1
            stopwatch.seconds.clear()
            step(model, adam, [batch], dropout_rngs(SEED, number, 1), LEARNING_RATE)
            steps.append(dict(stopwatch.seconds))
    return lines(steps[WARM_UP:])


def lines(steps: list[dict[tuple[str, str], float]]) -> list[Line]:
    """The medians over the steps, the longest first."""
    components = {component for step in steps for component, _ in step}

    def median(component, direction):
        return statistics.median(step.get((component, direction), 0.0) for step in steps)

    table = [Line(c, median(c, "forward"), median(c, "backward")) for c in components]
    return sorted(table, key=lambda line: -line.seconds)


@contextmanager
def watching(stopwatch: Stopwatch, model: Transformer, adam: Adam) -> Iterator[None]:
    """While inside, the stopwatch watches every layer of the model, Adam, and the loss."""
    for path, module in named_modules(model):
        for method in METHODS + HEADS:
            if hasattr(module, method):
                set_watched(stopwatch, module, method, component_of(path, method))
    set_watched(stopwatch, adam, "step", "Adam")
    plain = {name: getattr(training_step, name) for name in FUNCTIONS}
    try:
        for name, component in FUNCTIONS.items():
            set_watched(stopwatch, training_step, name, component)
        yield
    finally:
        for name, function in plain.items():
            setattr(training_step, name, function)


def set_watched(stopwatch: Stopwatch, owner: Any, name: str, component: str) -> None:
    """Put the watched function in the place of the plain one."""
    direction = "backward" if name.endswith("backward") else "forward"
    setattr(owner, name, stopwatch.watch(getattr(owner, name), component, direction))


def named_modules(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """Pairs (dotted name, module), the model itself included."""
    yield path, module
    for name, child in module.children():
        if isinstance(child, Module):
            yield from named_modules(child, f"{path}.{name}" if path else name)


def component_of(path: str, method: str) -> str:
    """The component to which a method of the module with this dotted name belongs."""
    if method in HEADS:
        return "attention: scores, softmax, values"
    return next(component for pattern, component in COMPONENTS if re.search(pattern, path))
