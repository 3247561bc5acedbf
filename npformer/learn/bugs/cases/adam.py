"""Bug: the step counter is increased once for each parameter."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, draw_gradients, learn, regression
from npformer.learn.bugs.trials import all_float32, equal
from npformer.nn import Linear
from npformer.nn.module import Module, Parameter
from npformer.training.optimizer import Adam

DEPTH = 6


def train(own: Names) -> Run:
    """Train seven linear maps, which have fourteen parameters, with the file's Adam."""
    rng = np.random.default_rng(3)
    layers = []
    for n_in in (8, *[16] * (DEPTH - 1)):
        layers += [Linear(n_in, 16, rng=rng, dtype=np.float64), (relu, relu_backward)]
    model = Chain(*layers, Linear(16, 4, rng=rng, dtype=np.float64))
    adam = own.Adam(model.parameters())
    losses = learn(model, regression(model, 32), steps=150, lr=0.02, optimizer=adam)
    return Run(losses, {"parameters": len(model.parameters())})


class Several(Module):
    """Parameters of the given sizes."""

    def __init__(self, *sizes: int, dtype: Any = np.float64) -> None:
        rng = np.random.default_rng(1)
        self.parts = [Parameter(rng.standard_normal(size).astype(dtype)) for size in sizes]


def steps(own: Names, *sizes: int) -> Any:
    """Compare the values after each of four steps with the package's."""
    settings: dict[str, Any] = {"betas": (0.8, 0.95), "eps": 1e-3}
    models, result = (Several(*sizes), Several(*sizes)), {}
    optimizers = own.Adam(models[0].parts, **settings), Adam(models[1], **settings)
    for number in range(1, 5):
        for model, optimizer in zip(models, optimizers, strict=True):
            draw_gradients(model, number)
            optimizer.step(0.1)
        found, right = (np.concatenate([part.value for part in model.parts]) for model in models)
        result[say("the values after step {number}", number=number)] = (found, right)
    return result


def order(own: Names) -> dict[str, Any]:
    """Compare a parameter that is the first of three with the same parameter as the last."""
    forth, back = Several(2, 2, 2), Several(2, 2, 2)
    adams = [own.Adam(forth.parts), own.Adam(back.parts[::-1])]
    for number in range(3):
        for several, adam in zip((forth, back), adams, strict=True):
            draw_gradients(several, number)
            adam.step(0.1)
    return {
        say("the first parameter of a list, moved to its end"): (back.parts[0].value, forth.parts[0].value)
    }


def float32_results(own: Names) -> dict[str, Any]:
    """Return the values after a step in float32."""
    several = Several(3, dtype=np.float32)
    several.parts[0].grad = np.ones(3, np.float32)
    own.Adam(several.parts).step(0.1)
    return {"value": several.parts[0].value}


BUG = Specimen(
    summary="the first steps are too large, and the final loss too high",
    symptom="""
    A network with {bug[parameters]} parameter arrays is trained with this implementation of Adam. The loss is
    {bug[first]:.2f} at the beginning and {bug[last]:.2f} after {bug[steps]} steps. Without the bug it is
    {right[last]:.2f} at the end. A model with a single parameter array learns normally.
    """,
    train=train,
    trials=(
        equal("four steps with one parameter", lambda own: steps(own, 5)),
        equal("four steps with three parameters", lambda own: steps(own, 2, 4, 3)),
        equal("the order of the parameters does not matter", order),
        all_float32("float32 stays float32", float32_results),
    ),
    english_hints=(
        "With one parameter the steps are correct, and with several they are not. Which variable do the "
        "parameters share?",
        "Make two parameters with equal values and equal gradients. Make two steps, and print both "
        "parameters after each step.",
        "What is t after the first step of a model with three parameters? What should it be?",
    ),
    story="""
    t was increased once for each parameter instead of once for each step. Adam uses t to correct m and v,
    which start at 0 and are too small at first. With β2 = 0.999, v needs some thousand steps to reach its
    final size. With {bug[parameters]} parameters, t was larger than 1000 after 80 steps. At this time v had
    only a thirteenth of its final size, but it was hardly corrected any more, so the steps were three times
    too large. In the first step, the last parameter moved half as far as the first one. After some thousand
    steps all corrections are nearly 1, so the bug has no effect any more. It disturbs only the beginning of
    training, which is its most sensitive phase. The loss was {bug[last]:.2f} after {bug[steps]} steps. With
    your repair it is {right[last]:.2f}. A gradient check does not test the optimizer, and a test with a
    single parameter passes.
    """,
    repair="""
         beta1, beta2 = self.betas
+        self.t += 1

-            self.t += 1
""",
)
