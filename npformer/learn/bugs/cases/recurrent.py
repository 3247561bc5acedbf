"""Bug: the gradient of a state that is carried through padding stops there."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import learn
from npformer.learn.bugs.trials import (
    as_right_layer,
    equal,
    float32_stays,
    gradients,
    normal,
    random_parameters,
    with_parameters_of,
)
from npformer.nn import Embedding, Linear, Recurrent
from npformer.nn.module import Module

MOST, WORDS = 8, 8
ALL = np.ones((2, 5), bool)
SHORTER = np.arange(5) < np.array([[3], [5]])  # (B, T) the first sentence ends in padding
EARLIER = SHORTER[:, ::-1]  # or begins with it
PARAMETERS = (
    "input_projection.weight",
    "input_projection.bias",
    "hidden_projection.weight",
    "hidden_projection.bias",
)
COMPARED = ("states", "dx", *(f"{name}.grad" for name in PARAMETERS))


class Model(Module):
    """A model with embeddings, the file's reader, and logits from the state at the last position."""

    def __init__(self, own: Names, rng: np.random.Generator) -> None:
        self.tokens = Embedding(WORDS, 8, rng=rng, dtype=np.float64)
        self.reader = own.Reader(8, 16, rng=rng)
        self.output = Linear(16, WORDS, rng=rng, dtype=np.float64)

    def learn(self, ids: Array, mask: Array) -> Any:
        """Add the gradients of naming the first token, and return the loss. Shapes: both (B, T)."""
        x, tokens = self.tokens.forward(ids)
        states, read = self.reader.forward(x, mask)
        logits, output = self.output.forward(states[:, -1])
        loss, cache = cross_entropy(logits, ids[:, 0])
        dstates = np.zeros_like(states)
        dstates[:, -1] = self.output.backward(cross_entropy_backward(1.0, cache), output)
        self.tokens.backward(self.reader.backward(dstates, read), tokens)
        return float(loss)


def trained(own: Names, shortest: int) -> Run:
    """Train on naming the first token of sentences of `shortest` to MOST tokens, padded to MOST."""
    rng = np.random.default_rng(3)
    model = Model(own, rng)

    def step(_: int) -> float:
        ids = rng.integers(0, WORDS, (32, MOST))
        return model.learn(ids, np.arange(MOST) < rng.integers(shortest, MOST + 1, (32, 1)))

    return Run(learn(model, step, steps=150, lr=0.01), {})


def reader_of(own: Names) -> Any:
    """Return a reader whose parameters are not the initial ones."""
    return random_parameters(own.Reader(4, 3))


def beside_package(own: Names) -> Any:
    """Return the file's reader, the package's, and an input."""
    reader, right = reader_of(own), Recurrent(4, 3, kind="gru", dtype=np.float64)
    return reader, with_parameters_of(reader, right), normal(2, 5, 4)


def read_alone(own: Names) -> dict[str, Any]:
    """Compare the gradient of a sentence's last state with and without padding at its end."""
    reader, x, dlast = reader_of(own), normal(1, 5, 4), normal(1, 3, seed=5)
    heard = []
    for length in (5, 3):
        states, cache = reader.forward(x[:, :length], SHORTER[:1, :length])
        dstates = np.zeros_like(states)
        dstates[:, -1] = dlast
        heard.append((states[:, -1], reader.backward(dstates, cache)[:, :3]))
    (padded, dpadded), (bare, dbare) = heard
    return {say("the last state with padding"): (padded, bare), say("dx with padding"): (dpadded, dbare)}


BUG = Specimen(
    summary="learning is slow if the sentences have different lengths",
    symptom="""
    A recurrent network reads a sentence of one to eight tokens. From its last state, a linear layer has to
    predict the first token of the sentence. After {bug[steps]} steps the loss is {bug[last]:.2f}. Without the
    bug it is {right[last]:.2f}. If all sentences have eight tokens, the task is harder, but then the loss is
    {bug[bare]:.2f}, with and without the bug.
    """,
    # sentences of all lengths in one batch; and, without padding, sentences of one length
    train=lambda own: Run(trained(own, 1).losses, {"bare": trained(own, MOST).numbers()["last"]}),
    trials=(
        gradients("gradient check without padding", lambda own: (reader_of(own), normal(2, 5, 4), ALL)),
        as_right_layer(
            "without padding, values and gradients are those of the package",
            beside_package,
            *COMPARED,
            mask=ALL,
        ),
        gradients(
            "gradient check with padding after the tokens",
            lambda own: (reader_of(own), normal(2, 5, 4), SHORTER),
        ),
        gradients(
            "gradient check with padding before the tokens",
            lambda own: (reader_of(own), normal(2, 5, 4), EARLIER),
        ),
        equal("padding after a sentence changes nothing", read_alone),
        as_right_layer(
            "with padding, values and gradients are those of the package",
            beside_package,
            *COMPARED,
            mask=SHORTER,
        ),
        float32_stays(
            lambda own: (own.Reader(4, 3, dtype=np.float32), normal(2, 5, 4), SHORTER), "states", "dx"
        ),
    ),
    english_hints=(
        "The loss uses only the state at the last position. Print dx. For which sentences of a batch is it "
        "not 0?",
        "Run gradcheck(Reader(4, 3), x, mask) with a mask that is False at some positions. If the mask is "
        "True everywhere, the check passes.",
        "state = where(real, new, state) takes each number from one of two arrays. In the backward pass, the "
        "gradient goes to the array from which the number was taken. Is this done for both arrays?",
    ),
    story="""
    It is true that the vectors of padding get no gradient, because the network does not read them. But the
    old state is passed on through padding: state = where(real, new, state). Where real is False, the gradient
    of the state belongs to the old state, and backward set it to 0. So if a sentence ended before the last
    position, the gradient of the loss did not reach any of its tokens. The model learned only from the
    longest sentences of each batch. The loss was {bug[last]:.2f} after {bug[steps]} steps. With your repair
    it is {right[last]:.2f}. The forward pass was correct, so no evaluation shows the bug. Gradient checks
    pass too, unless their inputs contain padding.
    """,
    repair="""
-            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
+            dheld = np.where(step.real, 0, dstate)
+            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection) + dheld
""",
)
