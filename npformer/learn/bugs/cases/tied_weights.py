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
    return {"whether the rows of words that are not read learn": (bool(model.weight.grad[3:].all()), True)}


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
    summary="it learns, and more slowly than it should",
    symptom="""
    A model whose word vectors serve at both ends has a loss of {bug[last]:.2f} after {bug[steps]} steps.
    The right one reaches {right[last]:.2f} in as many, and 0.69 would be perfect. Everything looks as it
    should, only slower.
    """,
    train=train,
    trials=(
        equal("the gradients of the map between the two ends", linear_alone),
        equal("the input's end alone, where the output's gradient is 0", input_end),
        gradients(
            "gradient check of the whole model", lambda own: (own.NextToken(7, 4), np.array([[1, 2, 1]]))
        ),
        equal("a word that is offered and never read learns", unread),
        equal("two backward passes add up", twice),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "Each end by itself is right. What do the two have in common?",
        "Check the gradients of the whole model: npformer.gradcheck(NextToken(), np.array([[1, 2, 1]])).",
        "Follow weight.grad through backward, line by line: who writes to it, and what was in it before?",
    ),
    story="""
    The weight has two gradients, one from each end, and the second was written over the first (= where +=
    belongs). The model still learns through the other end, so the loss falls, and takes far longer:
    {bug[last]:.2f} after {bug[steps]} steps, where yours has {right[last]:.2f}. Every layer checked by
    itself is right, since a single gradient that starts from 0 is the same with = and +=. A check of the
    whole model, or running backward twice, shows it; so gradcheck does both.
    """,
    repair="""
-        self.weight.grad[...] = dtable
+        self.weight.grad += dtable
""",
)
