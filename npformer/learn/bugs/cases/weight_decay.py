"""Bug: AdamW lets all parameters decay, also gains and biases."""

from typing import Any

import numpy as np

from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, squared_error
from npformer.learn.bugs.trials import equal, float32_stays, normal
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
        y, cache = model.forward(x)
        loss, dy = squared_error(y, np.tanh(x @ teacher) + OFFSET)
        model.backward(dy, cache)
        adamw.step(LR if number < 0.75 * STEPS else LR / 10)
        losses.append(loss)
    return Run(
        losses, {"gain": float(norm.gain.value.mean()), "bias": float(model.parameters()[-1].value.mean())}
    )


def network(norm: bool, dtype: Any = np.float64) -> Any:
    """Return a linear map, and a layer norm if wanted, with parameters that are not the initial ones."""
    rng = np.random.default_rng(2)
    layers: list[Any] = [Linear(3, 4, bias=False, rng=rng, dtype=dtype)]
    if norm:
        layers.append(LayerNorm(4, dtype=dtype))
    model = Chain(*layers)
    for parameter in model.parameters():
        parameter.value[...] += rng.standard_normal(parameter.shape)
    return model


def give(model: Any, seed: int) -> None:
    """Set the gradients for the next step."""
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.grad[...] = rng.standard_normal(parameter.shape)


def steps(own: Names, norm: bool) -> Any:
    """Compare the values after each of three steps with the package's."""
    settings: dict[str, Any] = {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.5}
    mine, package, result = network(norm), network(norm), {}
    found, right = own.AdamW(mine.parameters(), **settings), AdamW(package, **settings)
    for number in range(1, 4):
        for model, optimizer in ((mine, found), (package, right)):
            give(model, number)
            optimizer.step(0.1)
        for (name, p), (_, q) in zip(mine.named_parameters(), package.named_parameters(), strict=True):
            result[f"{name} after step {number}"] = (np.array(p.value), np.array(q.value))
    return result


def without_gradients(own: Names) -> dict[str, Any]:
    """Make a step with gradients that are 0: only the matrix changes, by the decay."""
    model = network(True)
    before = {name: np.array(parameter.value) for name, parameter in model.named_parameters()}
    own.AdamW(model.parameters(), weight_decay=0.5).step(0.1)
    return {
        f"{name} after a step without gradients": (
            np.array(parameter.value),
            before[name] * (0.95 if parameter.value.ndim > 1 else 1),
        )
        for name, parameter in model.named_parameters()
    }


def without_decay(own: Names) -> dict[str, Any]:
    """Compare a step with the decay 0 with the package's."""
    mine, package = network(True), network(True)
    for model in (mine, package):
        give(model, 1)
    own.AdamW(mine.parameters(), weight_decay=0.0).step(0.1)
    AdamW(package, weight_decay=0.0).step(0.1)
    pairs = zip(mine.named_parameters(), package.named_parameters(), strict=True)
    return {f"{name} with the decay 0": (np.array(p.value), np.array(q.value)) for (name, p), (_, q) in pairs}


def float32_results(own: Names) -> dict[str, Any]:
    """Return the values after a step in float32."""
    model = network(True, np.float32)
    give(model, 1)
    own.AdamW(model.parameters()).step(0.1)
    return {name: np.array(parameter.value) for name, parameter in model.named_parameters()}


WEIGHT_DECAY = Specimen(
    number=28,
    name="weight-decay",
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
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
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
