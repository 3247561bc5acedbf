"""Bug: the second gradient of a shared weight overwrites the first."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import descend, learn_tokens, walks
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal

STEPS, LR = 150, 0.2


def train(own: Names) -> Run:
    """Train on predicting the next token."""
    rng = np.random.default_rng(3)
    model = own.NextToken(12, 16, rng=rng)

    def step(_: int) -> float:
        ids = walks(rng, 16, 9)
        return learn_tokens(model, ids[:, :-1], ids[:, 1:])

    return Run(descend(model, step, steps=STEPS, lr=LR), {})


def gradients_of(own: Names, ids: Array, dlogits: Array, times: int = 1) -> Any:
    """Return a new model after forward and backward.

    Args:
        own: The names that the code defines.
        ids: The tokens, (B, T).
        dlogits: The gradient of the logits, (B, T, V).
        times: The number of forward and backward passes.
    """
    model = own.NextToken(7, 4)
    for _ in range(times):
        _, cache = model.forward(ids)
        model.backward(dlogits, cache)
    return model


def input_end(own: Names) -> dict[str, Any]:
    """Compare the gradients of the rows that are read, for which the projection's part is 0."""
    model = own.NextToken(7, 4)
    for parameter in (model.between.weight, model.between.bias):
        parameter.value = np.zeros_like(parameter.value)
    ids, dlogits = np.array([[1, 2, 1]]), normal(1, 3, 7)
    _, cache = model.forward(ids)
    model.backward(dlogits, cache)
    return {"weight.grad": (model.weight.grad, np.zeros((7, 4)))}


def twice(own: Names) -> dict[str, Any]:
    """Check that the gradients of two backward passes accumulate."""
    ids, dlogits = np.array([[1, 2, 1]]), normal(1, 3, 7)
    one, two = gradients_of(own, ids, dlogits), gradients_of(own, ids, dlogits, times=2)
    return {"weight.grad after two backward passes": (two.weight.grad, 2 * one.weight.grad)}


def unread(own: Names) -> dict[str, Any]:
    """Check that a token which is never an input gets a gradient from the projection."""
    model = gradients_of(own, np.array([[1, 2, 1]]), normal(1, 3, 7))
    return {
        "whether the rows of tokens that are never inputs get a gradient": (
            bool(model.weight.grad[3:].all()),
            True,
        )
    }


def linear_alone(own: Names) -> dict[str, Any]:
    """Compare the gradients of the linear map between the two uses."""
    model = own.NextToken(7, 4)
    ids, dlogits = np.array([[1, 2, 1]]), normal(1, 3, 7)
    _, cache = model.forward(ids)
    model.backward(dlogits, cache)
    x, weight = model.weight.value[ids], model.weight.value
    h = np.tanh(x @ model.between.weight.value + model.between.bias.value)
    dz = dlogits @ weight * (1 - h * h)
    return {"between.bias.grad": (model.between.bias.grad, dz.sum((0, 1)))}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    model = own.NextToken(7, 4, dtype=np.float32)
    logits, cache = model.forward(np.array([[1, 2]]))
    model.backward(np.ones_like(logits), cache)
    return {"logits": logits, "weight.grad": model.weight.grad}


TIED_WEIGHTS = Specimen(
    number=7,
    name="tied-weights",
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
        gradients(
            "gradient check of the whole model", lambda own: (own.NextToken(7, 4), np.array([[1, 2, 1]]))
        ),
        equal("a token that is never an input gets a gradient", unread),
        equal("the gradients of two backward passes are added", twice),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
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
