"""Bug: the exponent is doubled twice, so half of the sinusoids hardly change."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.positions import sinusoids
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import adapt, learn_tokens
from npformer.learn.bugs.trials import equal
from npformer.nn import Embedding, Linear
from npformer.nn.attention import MultiHeadAttention
from npformer.nn.module import Module

STEPS, LR, LENGTH = 200, 0.01, 40


class Model(Module):
    """A model with embeddings, the file's positions, attention and logits."""

    def __init__(self, own: Names, rng: np.random.Generator) -> None:
        self.table = own.sinusoids(LENGTH, 16)
        self.tokens = Embedding(12, 16, rng=rng, dtype=np.float64)
        self.attention = MultiHeadAttention(16, 2, rng=rng, dtype=np.float64)
        self.output = Linear(16, 12, rng=rng, dtype=np.float64)

    def forward(self, ids: Array) -> tuple[Any, Any]:
        """Return (logits, cache)."""
        x, tokens = self.tokens.forward(ids)
        x = x + self.table[: ids.shape[1]]
        h, attended = self.attention.forward(x)
        y, output = self.output.forward(x + h)
        return y, (tokens, attended, output)

    def backward(self, dy: Array, cache: Any) -> None:
        """Add the gradients of the parameters."""
        tokens, attended, output = cache
        dx = self.output.backward(dy, output)
        self.tokens.backward(dx + self.attention.backward(dx, attended), tokens)


def train(own: Names) -> Run:
    """Train on reversing sentences of 40 tokens: a position must find one that is far away."""
    rng = np.random.default_rng(3)
    model = Model(own, rng)

    def step(_: int) -> float:
        ids = rng.integers(0, 12, (8, LENGTH))
        return learn_tokens(model, ids, ids[:, ::-1])

    losses = adapt(model, step, steps=STEPS, lr=LR)
    table = own.sinusoids(200, 64)
    still = float((np.ptp(table, axis=0) < 0.1).mean())
    return Run(losses, {"still": 100 * still})


def wavelengths(own: Names) -> dict[str, Any]:
    """Compare the wavelength of the slowest pair with 2π · 10000^(1 - 2/D) positions."""
    table = own.sinusoids(3, 32)
    angle = np.arctan2(table[1, 30], table[1, 31])
    return {"the angle between two positions in the last pair": (float(angle), 10000 ** (-30 / 32))}


def beginning(own: Names) -> dict[str, Any]:
    """Check the entries that do not depend on the exponent."""
    return {
        "position 0": (own.sinusoids(6, 8)[0], sinusoids(6, 8)[0]),
        "the first pair": (own.sinusoids(6, 8)[:, :2], sinusoids(6, 8)[:, :2]),
        "a width of 2": (own.sinusoids(6, 2), sinusoids(6, 2)),
    }


def rotation(own: Names) -> dict[str, Any]:
    """Check that a shift by three positions rotates each pair by the same angle at every position."""
    table = own.sinusoids(12, 8)
    angle = np.arctan2(table[:, 0::2], table[:, 1::2])
    moved = np.exp(1j * (angle[3:] - angle[:-3]))
    return {"the angle of a move by 3": (np.angle(moved), np.broadcast_to(np.angle(moved[:1]), moved.shape))}


def compare_with_package(own: Names) -> Any:
    """Compare two tables with the package's."""
    return {f"sinusoids({n}, {d})": (own.sinusoids(n, d), sinusoids(n, d)) for n, d in ((10, 16), (50, 6))}


POSITIONS = Specimen(
    number=12,
    name="positions",
    summary="it loses its way in long sentences",
    symptom="""
    Sentences of 40 words must be written backwards. With these positions the loss is {bug[last]:.2f} after
    {bug[steps]} steps; with the right ones {right[last]:.2f}. In a table of 64 columns {bug[still]:.0f} %
    of them hardly move over 200 positions; {right[still]:.0f} % is as it should be.
    """,
    train=train,
    trials=(
        equal("position 0, the first pair, and a width of 2", beginning),
        equal("a move is the same rotation wherever it starts", rotation),
        equal("how slowly the last pair turns", wavelengths),
        equal("two tables beside the package's", compare_with_package),
    ),
    hints=(
        "There is nothing to learn here, and no gradient. Look at the table itself: plots.value_map draws "
        "one.",
        "The paper has wavelengths from 2π to 10000 · 2π. Over how many positions does the last column turn?",
        "Which values does i have in the formula, and which in the code?",
    ),
    story="""
    i counted 0, 2, 4 ..., so it was 2i of the formula already, and the code doubled it again. The
    wavelengths then went to 10000² · 2π: {bug[still]:.0f} % of the columns were as good as constant, and
    what distinguishes far positions had half the room. Positions 0, 1, 2 still differ, every test of shape
    and range passes, moving is a rotation as it should be, and the model learns. Sentences of 40
    words had a loss of {bug[last]:.2f}, and have {right[last]:.2f} with yours. This line stands in many
    tutorials, and the figure that one draws of it looks nearly like the paper's.
    """,
    repair="""
-    angle = position / 10000 ** (2 * i / d_model)  # (T, D/2)
+    angle = position / 10000 ** (i / d_model)  # (T, D/2)
""",
)
