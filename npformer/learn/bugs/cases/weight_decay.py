"""Bug: AdamW lets all parameters decay, also gains and biases."""

from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, draw_gradients, learn_numbers
from npformer.learn.bugs.trials import all_float32, equal, normal
from npformer.nn import LayerNorm, Linear
from npformer.training.optimizer import AdamW

STEPS, LR, DECAY, OFFSET = 400, 0.1, 1.0, 20.0


def train(own: Names) -> Run:
    """Train a network with a layer norm on targets whose mean is far from 0."""
    rng = np.random.default_rng(3)
    first, norm = Linear(8, 16, rng=rng, dtype=np.float64), LayerNorm(16, dtype=np.float64)
    model = Chain(first, norm, Linear(16, 4, rng=rng, dtype=np.float64))
    adamw, teacher = own.AdamW(model.parameters(), weight_decay=DECAY), normal(8, 4, seed=5)
    losses = []
    for number in range(STEPS):
        x = rng.standard_normal((32, 8))
        model.zero_grad()
        losses.append(learn_numbers(model, x, np.tanh(x @ teacher) + OFFSET))
        adamw.step(LR if number < 0.75 * STEPS else LR / 10)
    bias = model.parameters()[-1]
    return Run(losses, {"gain": float(norm.gain.value.mean()), "bias": float(bias.value.mean())})


def network(norm: bool = True, dtype: Any = np.float64) -> Any:
    """Return a linear map, and a layer norm if wanted, with parameters that are not the initial ones."""
    rng = np.random.default_rng(2)
    model = Chain(
        Linear(3, 4, bias=False, rng=rng, dtype=dtype), *([LayerNorm(4, dtype=dtype)] if norm else [])
    )
    for parameter in model.parameters():
        parameter.value[...] += rng.standard_normal(parameter.shape)
    return model


def values(model: Any) -> dict[str, Any]:
    """Return a copy of every parameter's value by name."""
    return {name: np.array(parameter.value) for name, parameter in model.named_parameters()}


def steps(own: Names, norm: bool) -> Any:
    """Compare the values after each of three steps with the package's."""
    settings: dict[str, Any] = {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.5}
    mine, package, result = network(norm), network(norm), dict[str, Any]()
    found, right = own.AdamW(mine.parameters(), **settings), AdamW(package, **settings)
    for number in range(1, 4):
        for model, optimizer in ((mine, found), (package, right)):
            draw_gradients(model, number)
            optimizer.step(0.1)
        due = values(package)
        result |= {
            say("{name} after step {number}", name=name, number=number): (value, due[name])
            for name, value in values(mine).items()
        }
    return result


def without_gradients(own: Names) -> dict[str, Any]:
    """Make a step with gradients that are 0: only the matrix changes, by the decay."""
    model = network()
    before = values(model)
    own.AdamW(model.parameters(), weight_decay=0.5).step(0.1)
    return {
        say("{name} after a step without gradients", name=name): (
            value,
            before[name] * (0.95 if value.ndim > 1 else 1),
        )
        for name, value in values(model).items()
    }


def without_decay(own: Names) -> dict[str, Any]:
    """Compare a step with the decay 0 with the package's."""
    mine, package = network(), network()
    for model in (mine, package):
        draw_gradients(model, 1)
    own.AdamW(mine.parameters(), weight_decay=0.0).step(0.1)
    AdamW(package, weight_decay=0.0).step(0.1)
    due = values(package)
    return {
        say("{name} with the decay 0", name=name): (value, due[name]) for name, value in values(mine).items()
    }


def float32_results(own: Names) -> dict[str, Any]:
    """Return the values after a step in float32."""
    model = network(dtype=np.float32)
    draw_gradients(model, 1)
    own.AdamW(model.parameters()).step(0.1)
    return values(model)


BUG = Specimen(
    summary="with weight decay, the loss stays too high",
    symptom="""
    A network with a layer norm is trained with this implementation of AdamW. The targets have the mean 20.
    After {bug[steps]} steps the loss is {bug[last]:.2f}. Without the bug it is {right[last]:.2f}. The mean of
    the gains of the layer norm is {bug[gain]:.2f} at the end. Without the bug it is {right[gain]:.2f}. With a
    weight decay of 0, both programs give the same results.
    """,
    train=train,
    trials=(
        equal("three steps of a model with one matrix", lambda own: steps(own, False)),
        equal("a step with the decay 0", without_decay),
        equal("three steps of a model with a matrix, a gain and a bias", lambda own: steps(own, True)),
        equal("without gradients, only matrices change", without_gradients),
        all_float32("float32 stays float32", float32_results),
    ),
    english_hints=(
        "Read the docstring of AdamW. Which parameters decay, and which should?",
        "Make a step with gradients that are 0. Which parameters of a LayerNorm change?",
        "p.value.ndim is 2 for a matrix. What is it for a gain and for a bias?",
    ),
    story="""
    The decay was applied to all parameters. A weight decay pulls each of them towards 0. For a matrix this is
    wanted. But a gain of 0 erases its input, and a bias that is pulled to 0 cannot represent a mean of 20.
    The gains fell to {bug[gain]:.2f}, and the loss was {bug[last]:.2f}. With your repair the loss is
    {right[last]:.2f}, and the mean gain is {right[gain]:.2f}. A single matrix is a common test of an
    optimizer, and it passes. In large models the bug is hard to see, because the next matrices partly
    compensate for smaller gains. So implementations put their parameters into two groups: those with two or
    more axes decay, and the others do not.
    """,
    repair="""
-            p.value *= 1 - lr * self.weight_decay
+            if p.value.ndim > 1:
+                p.value *= 1 - lr * self.weight_decay
""",
)
