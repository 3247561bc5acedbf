"""The profile of a training step: the time of each component, forward and backward."""

import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from npformer.bench.own_step import wait_for
from npformer.bench.setups import LEARNING_RATE, AnySetup
from npformer.nn.module import Module
from npformer.training import step as training_step
from npformer.training.optimizer import Adam
from npformer.training.step import make_step

WARM_UP = 2  # steps
REST = "the rest of the step"

# the methods of layers that are timed; the time of other methods counts as their caller's
METHODS = ("forward", "backward")
HEADS = ("attend", "attend_backward")  # the computation of an attention layer's heads
# the component of a module: the first pattern that is found in its dotted name
COMPONENTS = (
    (r"^(source|target|embedding)", "embeddings"),
    (r"^output", "logits"),
    (r"(attention|cross)\.(query|key|value)", "attention: queries, keys and values"),
    (r"(attention|cross)\.output", "attention: heads, joined by Wo"),
    (r"(attention|cross)$", "attention: splitting and merging heads"),
    (r"feed_forward\.(inner|outer)", "feed-forward: linear maps"),
    (r"feed_forward$", "feed-forward: activation, dropout"),
    # the norms and dropouts of a layer, and the layer itself, which adds
    (r"(norm|dropout|process)\d|layer(s\.\d+)?$", "residual, dropout, norm"),
    (r"norm", "final norms"),
    (r"", "stacks of layers"),
)
# the functions of a step that do not belong to a layer
FUNCTIONS = {
    "cross_entropy_in_place": "cross-entropy",
    "cross_entropy_backward": "cross-entropy",
    "clip_global_norm": "clipping and checks for NaN",
    "check_gradients": "clipping and checks for NaN",
    "check_parameters": "clipping and checks for NaN",
    "check_loss": "clipping and checks for NaN",
}


class Line(NamedTuple):
    """The seconds of one component in one step, without those of the components that it calls."""

    component: str
    forward: float
    backward: float

    @property
    def seconds(self) -> float:
        """The seconds of both passes."""
        return self.forward + self.backward


class Stopwatch:
    """The total time of each watched function, without the time of other watched functions that it calls."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self.wait = wait  # waits until the GPU has finished
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)  # by component and direction
        self.inside: list[float] = []  # for every running function, the time of the functions that it called

    def watch(self, function: Callable[..., Any], component: str, direction: str) -> Callable[..., Any]:
        """Return the function, wrapped so that its time is added to its component.

        Args:
            function: The function.
            component: The component to which its time is added.
            direction: The pass to which its time is added, "forward" or "backward".

        Returns:
            A function with the same arguments and the same result.
        """

        def watched(*args: Any, **kwargs: Any) -> Any:
            self.wait()
            start = time.perf_counter()
            self.inside.append(0.0)
            try:
                result = function(*args, **kwargs)
                self.wait()
            finally:
                seconds = time.perf_counter() - start
                self.seconds[component, direction] += seconds - self.inside.pop()
                if self.inside:
                    self.inside[-1] += seconds
            return result

        return watched

    def watch_in(self, owner: Any, name: str, component: str) -> None:
        """Replace the function of an object or module that has this name by the watched one.

        Args:
            owner: The object or module.
            name: The name of the function.
            component: The component to which its time is added.
        """
        direction = "backward" if name.endswith("backward") else "forward"
        setattr(owner, name, self.watch(getattr(owner, name), component, direction))


def profile(setup: AnySetup, *, backend: str, seconds: float) -> list[Line]:
    """Return the seconds of each component of a step, the longest first. Their sum is the whole step.

    The step runs in one thread, since the time that threads wait for each other belongs to no component.

    Args:
        setup: The model and its batch.
        backend: "numpy" or "cupy".
        seconds: The shortest time of the measurement.
    """
    model: Any = setup.build().to(backend)
    adam, batch = setup.optimizer(model), setup.batch()
    stopwatch = Stopwatch(lambda: wait_for(model.values))
    step = stopwatch.watch(make_step, REST, "forward")
    steps: list[dict[tuple[str, str], float]] = []
    with watching(stopwatch, model, adam):
        began, number = time.perf_counter(), 0
        while len(steps) < WARM_UP + 3 or time.perf_counter() - began < seconds:
            number += 1
            stopwatch.seconds.clear()
            step(model, adam, [batch], setup.rngs(number), LEARNING_RATE, setup.clip_norm)
            steps.append(dict(stopwatch.seconds))
    return lines(steps[WARM_UP:])


def lines(steps: list[dict[tuple[str, str], float]]) -> list[Line]:
    """Return the medians over the steps, the longest first."""
    components = {component for step in steps for component, _ in step}

    def median(component: str, direction: str) -> float:
        return statistics.median(step.get((component, direction), 0.0) for step in steps)

    table = [Line(c, median(c, "forward"), median(c, "backward")) for c in components]
    return sorted(table, key=lambda line: -line.seconds)


@contextmanager
def watching(stopwatch: Stopwatch, model: Module, adam: Adam) -> Iterator[None]:
    """Let the stopwatch watch every layer of the model, Adam and the loss inside this context.

    Args:
        stopwatch: The stopwatch.
        model: The model.
        adam: Its optimizer.
    """
    for path, module in model.named_modules():
        for method in METHODS + HEADS:
            if hasattr(module, method):
                stopwatch.watch_in(module, method, component_of(path, method))
    stopwatch.watch_in(adam, "step", "Adam")
    plain = {name: getattr(training_step, name) for name in FUNCTIONS}
    try:
        for name, component in FUNCTIONS.items():
            stopwatch.watch_in(training_step, name, component)
        yield
    finally:
        for name, function in plain.items():
            setattr(training_step, name, function)


def component_of(path: str, method: str) -> str:
    """Return the component of a method of the module with this dotted name."""
    if method in HEADS:
        return "attention: scores, softmax, values"
    return next(component for pattern, component in COMPONENTS if re.search(pattern, path))
