"""Bug: the exponent is doubled twice, and half of the sinusoids hardly move."""

import numpy as np

from npformer.attention import MultiHeadAttention
from npformer.layers import Embedding, Linear
from npformer.module import Module
from npformer.positions import sinusoids
from npformer.zoo.ground import adapt, learn_words
from npformer.zoo.specimen import Run, Specimen
from npformer.zoo.trials import equal

STEPS, LR, LENGTH = 200, 0.01, 40


class Model(Module):
    """Words and the file's positions, attention, logits."""

    def __init__(self, own, rng):
        self.table = own.sinusoids(LENGTH, 16)
        self.words = Embedding(12, 16, rng=rng, dtype=np.float64)
        self.attention = MultiHeadAttention(16, 2, rng=rng, dtype=np.float64)
        self.output = Linear(16, 12, rng=rng, dtype=np.float64)

    def forward(self, ids):
        """Returns (logits, cache)."""
        x, words = self.words.forward(ids)
        x = x + self.table[: ids.shape[1]]
        h, attended = self.attention.forward(x)
        y, output = self.output.forward(x + h)
        return y, (words, attended, output)

    def backward(self, dy, cache):
        """Returns nothing."""
        words, attended, output = cache
        dx = self.output.backward(dy, output)
        self.words.backward(dx + self.attention.backward(dx, attended), words)


def train(own) -> Run:
    """Write sentences of 40 words backwards: a position must find one that is far away."""
    rng = np.random.default_rng(3)
    model = Model(own, rng)

    def step(_):
        ids = rng.integers(0, 12, (8, LENGTH))
        return learn_words(model, ids, ids[:, ::-1])

    losses = adapt(model, step, steps=STEPS, lr=LR)
    table = own.sinusoids(200, 64)
    still = float((np.ptp(table, axis=0) < 0.1).mean())
    return Run(losses, {"still": 100 * still})


def wavelengths(own):
    """How fast the slowest pair turns: 2π · 10000^(1 - 2/D) positions a turn."""
    table = own.sinusoids(3, 32)
    angle = np.arctan2(table[1, 30], table[1, 31])
    return {"the angle between two positions in the last pair": (float(angle), 10000 ** (-30 / 32))}


def beginning(own):
    """What does not depend on the exponent."""
    return {
        "position 0": (own.sinusoids(6, 8)[0], sinusoids(6, 8)[0]),
        "the first pair": (own.sinusoids(6, 8)[:, :2], sinusoids(6, 8)[:, :2]),
        "a width of 2": (own.sinusoids(6, 2), sinusoids(6, 2)),
    }


def rotation(own):
    """Moving by three positions is one rotation of each pair, wherever one starts."""
    table = own.sinusoids(12, 8)
    angle = np.arctan2(table[:, 0::2], table[:, 1::2])
    moved = np.exp(1j * (angle[3:] - angle[:-3]))
    return {"the angle of a move by 3": (np.angle(moved), np.broadcast_to(np.angle(moved[:1]), moved.shape))}


def beside_the_package(own):
    """Two tables."""
    return {f"sinusoids({n}, {d})": (own.sinusoids(n, d), sinusoids(n, d)) for n, d in ((10, 16), (50, 6))}


POSITIONS = Specimen(
    number=12,
    name="positions",
    seen="it loses its way in long sentences",
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
        equal("two tables beside the package's", beside_the_package),
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
