"""Bug: the gradient of a state that is carried through padding stops there."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import adapt
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal, random_parameters
from npformer.nn import Embedding, Linear, Recurrent
from npformer.nn.module import Module

STEPS, LR, MOST, WORDS = 150, 0.01, 8, 8
ALL = np.ones((2, 5), bool)
SHORTER = np.arange(5) < np.array([[3], [5]])  # (B, T) the first sentence ends in padding
EARLIER = SHORTER[:, ::-1]  # or begins with it


class Model(Module):
    """A model with embeddings, the file's reader, and logits from the state at the last position."""

    def __init__(self, own: Names, rng: np.random.Generator) -> None:
        self.tokens = Embedding(WORDS, 8, rng=rng, dtype=np.float64)
        self.reader = own.Reader(8, 16, rng=rng)
        self.output = Linear(16, WORDS, rng=rng, dtype=np.float64)

    def learn(self, ids: Array, mask: Array, right: Any) -> Any:
        """Add the gradients and return the loss.

        Args:
            ids: The tokens, (B, T).
            mask: Bool (B, T), True at tokens.
            right: The target token of each sentence, (B,).
        """
        x, tokens = self.tokens.forward(ids)
        states, read = self.reader.forward(x, mask)
        logits, output = self.output.forward(states[:, -1])
        loss, cache = cross_entropy(logits, right)
        dstates = np.zeros_like(states)
        dstates[:, -1] = self.output.backward(cross_entropy_backward(1.0, cache), output)
        self.tokens.backward(self.reader.backward(dstates, read), tokens)
        return float(loss)


def learn(own: Names, shortest: int) -> list[float]:
    """Train on naming the first token of sentences of `shortest` to MOST tokens, padded to MOST."""
    rng = np.random.default_rng(3)
    model = Model(own, rng)

    def step(_: int) -> float:
        ids = rng.integers(0, WORDS, (32, MOST))
        mask = np.arange(MOST) < rng.integers(shortest, MOST + 1, (32, 1))
        return model.learn(ids, mask, ids[:, 0])

    return adapt(model, step, steps=STEPS, lr=LR)


def train(own: Names) -> Run:
    """Train on sentences of all lengths in one batch; and, without padding, on sentences of one length."""
    return Run(learn(own, 1), {"bare": Run(learn(own, MOST), {}).numbers()["last"]})


def reader_of(own: Names, dtype: Any = np.float64) -> Any:
    """Return a reader whose parameters are not the initial ones."""
    return random_parameters(own.Reader(4, 3, dtype=dtype))


def compare_with_package(own: Names, mask: Array) -> Any:
    """Compare the states and the gradients with the package's for the same parameters."""
    reader, right = reader_of(own), Recurrent(4, 3, kind="gru", dtype=np.float64)
    for mine, theirs in zip(reader.parameters(), right.parameters(), strict=True):
        theirs.value = mine.value
    x, dstates = normal(2, 5, 4), normal(2, 5, 3, seed=5)
    states, cache = reader.forward(x, mask)
    right_states, right_cache = right.forward(x, mask=mask)
    found = {
        "states": (states, right_states),
        "dx": (reader.backward(dstates, cache), right.backward(dstates, right_cache)),
    }
    pairs = zip(reader.named_parameters(), right.parameters(), strict=True)
    return found | {f"{name}.grad": (mine.grad, theirs.grad) for (name, mine), theirs in pairs}


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
    return {"the last state with padding": (padded, bare), "dx with padding": (dpadded, dbare)}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    reader, x = own.Reader(4, 3, dtype=np.float32), normal(2, 5, 4).astype(np.float32)
    states, cache = reader.forward(x, SHORTER)
    return {"states": states, "dx": reader.backward(np.ones_like(states), cache)}


RECURRENT = Specimen(
    number=19,
    name="recurrent",
    summary="learning is slow if the sentences have different lengths",
    symptom="""
    A recurrent network reads a sentence of one to eight tokens. From its last state, a linear layer has to
    predict the first token of the sentence. After {bug[steps]} steps the loss is {bug[last]:.2f}. Without the
    bug it is {right[last]:.2f}. If all sentences have eight tokens, the task is harder, but then the loss is
    {bug[bare]:.2f}, with and without the bug.
    """,
    train=train,
    trials=(
        gradients("gradient check without padding", lambda own: (reader_of(own), normal(2, 5, 4), ALL)),
        equal(
            "without padding, values and gradients are those of the package",
            lambda own: compare_with_package(own, ALL),
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
        equal(
            "with padding, values and gradients are those of the package",
            lambda own: compare_with_package(own, SHORTER),
        ),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
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
