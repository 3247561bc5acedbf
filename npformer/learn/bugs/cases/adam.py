"""Bug: the step counter advances once for each parameter."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, regression
from npformer.learn.bugs.trials import equal, float32_stays, normal
from npformer.nn import Linear
from npformer.nn.module import Parameter
from npformer.training.optimizer import Adam

STEPS, LR, DEPTH = 150, 0.02, 6


def train(own: Names) -> Run:
    """Train seven linear maps, which have fourteen parameters, with the file's Adam."""
    rng = np.random.default_rng(3)
    layers = []
    for n_in in (8, *[16] * (DEPTH - 1)):
        layers += [Linear(n_in, 16, rng=rng, dtype=np.float64), (relu, relu_backward)]
    model = Chain(*layers, Linear(16, 4, rng=rng, dtype=np.float64))
    adam, step = own.Adam(model.parameters()), regression(model, 32)
    losses = []
    for number in range(STEPS):
        model.zero_grad()
        losses.append(step(number))
        adam.step(LR)
    return Run(losses, {"parameters": len(model.parameters())})


class Several:
    """Parameters of the given sizes, both in one buffer and each by itself."""

    def __init__(self, *sizes: Any, dtype: Any = np.float64) -> None:
        value = normal(sum(sizes)).astype(dtype)
        self.cuts = np.cumsum(sizes)[:-1]
        self.parts = [Parameter(np.array(part)) for part in np.split(value, self.cuts)]
        self.values, self.grads = value, np.zeros_like(value)

    def give(self, seed: int) -> None:
        """Set the gradients for the next step."""
        self.grads[...] = normal(len(self.grads), seed=seed)
        for part, grad in zip(self.parts, np.split(self.grads, self.cuts), strict=True):
            part.grad = np.array(grad)


def steps(own: Names, *sizes: Any) -> Any:
    """Compare the values after each of four steps with the package's."""
    several = Several(*sizes)
    mine = own.Adam(several.parts, betas=(0.8, 0.95), eps=1e-3)
    package = Adam(several, betas=(0.8, 0.95), eps=1e-3)
    result = {}
    for number in range(1, 5):
        several.give(number)
        mine.step(0.1)
        package.step(0.1)
        found = np.concatenate([part.value for part in several.parts])
        result[f"the values after step {number}"] = (found, np.array(several.values))
    return result


def order(own: Names) -> dict[str, Any]:
    """Compare a parameter that is the first of three with the same parameter as the last."""
    forth, back = Several(2, 2, 2), Several(2, 2, 2)
    adams = [own.Adam(forth.parts), own.Adam(back.parts[::-1])]
    for number in range(3):
        for several, adam in zip((forth, back), adams, strict=True):
            several.give(number)
            adam.step(0.1)
    return {"a parameter that comes first in the list, and last": (back.parts[0].value, forth.parts[0].value)}


def float32_results(own: Names) -> dict[str, Any]:
    """Return the values after a step in float32."""
    several = Several(3, dtype=np.float32)
    several.parts[0].grad = np.ones(3, np.float32)
    own.Adam(several.parts).step(0.1)
    return {"value": several.parts[0].value}


ADAM = Specimen(
    number=6,
    name="adam",
    summary="the first steps jump about, and it never makes up for them",
    symptom="""
    A network with {bug[parameters]} parameters learns with this Adam. The loss starts at {bug[first]:.2f},
    is {bug[last]:.2f} after {bug[steps]} steps, and with the right one {right[last]:.2f}. A model with one
    single parameter learns as it should.
    """,
    train=train,
    trials=(
        equal("four steps with one parameter", lambda own: steps(own, 5)),
        equal("four steps with three parameters", lambda own: steps(own, 2, 4, 3)),
        equal("the order of the parameters does not matter", order),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "One parameter: right. Several: wrong. What do they share?",
        "Make two parameters with equal values and equal gradients, take two steps, and print both after "
        "each.",
        "What is t after the first step of a model with three parameters?",
    ),
    story="""
    t went up once for each parameter, not once a step. It corrects m and v, which start at 0: with β2 =
    0.999 the mean of squares needs some thousand steps to fill. With {bug[parameters]} parameters t was
    over a thousand after 80 steps, when v held a thirteenth of what it should and was taken nearly at its
    word: the steps were three times too long. The very first was half as long for the last parameter as for
    the first. After some thousand steps all corrections are 1 and the bug is gone without a trace: it costs
    the warm-up, where training is most easily lost. The loss was {bug[last]:.2f} after {bug[steps]} steps,
    and is {right[last]:.2f} with yours. No gradient check looks at an optimizer, and a test with one
    parameter passes.
    """,
    repair="""
         beta1, beta2 = self.betas
+        self.t += 1

-            self.t += 1
""",
)
