"""Bug: the second gradient of a shared weight overwrites the first."""

from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Descent, cut, learn, learn_tokens, walks
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal

IDS, DLOGITS = np.array([[1, 2, 1]]), normal(1, 3, 7)


def train(own: Names) -> Run:
    """Train on predicting the next token."""
    rng = np.random.default_rng(3)
    model = own.NextToken(12, 16, rng=rng)

    def step(_: int) -> float:
        return learn_tokens(model, *cut(walks(rng, 16, 9)))

    return Run(learn(model, step, steps=150, lr=0.2, optimizer=Descent(model)), {})


def trained_once(model: Any, times: int = 1) -> Any:
    """Return the model after some forward and backward passes."""
    for _ in range(times):
        _, cache = model.forward(IDS)
        model.backward(DLOGITS, cache)
    return model


def input_end(own: Names) -> dict[str, Any]:
    """Compare the gradients of the rows that are read, for which the projection's part is 0."""
    model = own.NextToken(7, 4)
    for parameter in (model.between.weight, model.between.bias):
        parameter.value = np.zeros_like(parameter.value)
    return {"weight.grad": (trained_once(model).weight.grad, np.zeros((7, 4)))}


def twice(own: Names) -> dict[str, Any]:
    """Check that the gradients of two backward passes accumulate."""
    one, two = (trained_once(own.NextToken(7, 4), times) for times in (1, 2))
    return {say("weight.grad after two backward passes"): (two.weight.grad, 2 * one.weight.grad)}


def unread(own: Names) -> dict[str, Any]:
    """Check that a token which is never an input gets a gradient from the projection."""
    gets_one = bool(trained_once(own.NextToken(7, 4)).weight.grad[3:].all())
    return {say("whether the rows of tokens that are never inputs get a gradient"): (gets_one, True)}


def linear_alone(own: Names) -> dict[str, Any]:
    """Compare the gradients of the linear map between the two uses."""
    model = trained_once(own.NextToken(7, 4))
    x, weight = model.weight.value[IDS], model.weight.value
    h = np.tanh(x @ model.between.weight.value + model.between.bias.value)
    dz = DLOGITS @ weight * (1 - h * h)
    return {"between.bias.grad": (model.between.bias.grad, dz.sum((0, 1)))}


BUG = Specimen(
    summary="the model learns, but too slowly",
    symptom="""
    A language model has tied weights: the embedding and the output layer use the same table. After
    {bug[steps]} steps its loss is {bug[last]:.2f}. Without the bug it is {right[last]:.2f} after the same
    number of steps. (The lowest possible loss is 0.69.) There is no other sign of an error.
    """,
    train=train,
    trials=(
        equal("the gradients of the layer between embedding and output layer", linear_alone),
        equal("the gradient from the embedding if the one from the output layer is 0", input_end),
        gradients("gradient check of the whole model", lambda own: (own.NextToken(7, 4), IDS)),
        equal("a token that is never an input gets a gradient", unread),
        equal("the gradients of two backward passes are added", twice),
        float32_stays(
            lambda own: (own.NextToken(7, 4, dtype=np.float32), np.array([[1, 2]])), "logits", "weight.grad"
        ),
    ),
    english_hints=(
        "The embedding alone is correct, and so is the output layer alone. What do they have in common?",
        "Check the gradients of the whole model: npformer.gradcheck(NextToken(), np.array([[1, 2, 1]])).",
        "Read backward line by line. Which lines write to weight.grad, and what does it contain before?",
    ),
    story="""
    The shared weight has two gradients, one from the output layer and one from the embedding. The second one
    overwrote the first one, because the code had = instead of +=. The model still learned from the gradient
    of the embedding, but more slowly. Its loss was {bug[last]:.2f} after {bug[steps]} steps. With your repair
    it is {right[last]:.2f}. If you check each layer separately, all gradients are correct: for a single
    gradient that is added to 0, = and += give the same result. Two tests find the bug: a gradient check of
    the whole model, and two backward passes without setting the gradients to 0. gradcheck does both.
    """,
    repair="""
-        self.weight.grad[...] = dtable
+        self.weight.grad += dtable
""",
)
