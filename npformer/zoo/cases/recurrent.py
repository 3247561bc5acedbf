"""Bug: the gradient of a state that was handed on through padding ends there."""

import numpy as np

from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.layers import Embedding, Linear, Recurrent
from npformer.module import Module
from npformer.zoo.ground import adapt
from npformer.zoo.specimen import Run, Specimen
from npformer.zoo.trials import equal, float32_stays, gradients, normal, random_parameters

STEPS, LR, MOST, WORDS = 150, 0.01, 8, 8
ALL = np.ones((2, 5), bool)
SHORTER = np.arange(5) < np.array([[3], [5]])  # (B, T) the first sentence ends in padding
EARLIER = SHORTER[:, ::-1]  # or begins with it


class Model(Module):
    """Word vectors, the file's reader, and logits from the state at the last place."""

    def __init__(self, own, rng):
        self.words = Embedding(WORDS, 8, rng=rng, dtype=np.float64)
        self.reader = own.Reader(8, 16, rng=rng)
        self.output = Linear(16, WORDS, rng=rng, dtype=np.float64)

    def learn(self, ids, mask, right):
        """Adds the gradients. Returns the loss."""
        x, words = self.words.forward(ids)
        states, read = self.reader.forward(x, mask)
        logits, output = self.output.forward(states[:, -1])
        loss, cache = cross_entropy(logits, right)
        dstates = np.zeros_like(states)
        dstates[:, -1] = self.output.backward(cross_entropy_backward(1.0, cache), output)
        self.words.backward(self.reader.backward(dstates, read), words)
        return float(loss)


def learn(own, shortest: int) -> list[float]:
    """Read sentences of shortest .. MOST words, padded to MOST, and name the first word of each."""
    rng = np.random.default_rng(3)
    model = Model(own, rng)

    def step(_):
        ids = rng.integers(0, WORDS, (32, MOST))
        mask = np.arange(MOST) < rng.integers(shortest, MOST + 1, (32, 1))
        return model.learn(ids, mask, ids[:, 0])

    return adapt(model, step, steps=STEPS, lr=LR)


def train(own) -> Run:
    """Sentences of all lengths in one batch; and, bare of padding, all of one length."""
    return Run(learn(own, 1), {"bare": Run(learn(own, MOST), {}).numbers()["last"]})


def reader_of(own, dtype=np.float64):
    """A reader whose parameters are not as they start."""
    return random_parameters(own.Reader(4, 3, dtype=dtype))


def beside_the_package(own, mask):
    """Values and gradients, and the package's with the same parameters."""
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


def read_alone(own):
    """What a sentence hears whose last state is asked for: with padding behind it, and by itself."""
    reader, x, dlast = reader_of(own), normal(1, 5, 4), normal(1, 3, seed=5)
    heard = []
    for length in (5, 3):
        states, cache = reader.forward(x[:, :length], SHORTER[:1, :length])
        dstates = np.zeros_like(states)
        dstates[:, -1] = dlast
        heard.append((states[:, -1], reader.backward(dstates, cache)[:, :3]))
    (padded, dpadded), (bare, dbare) = heard
    return {"the last state with padding behind": (padded, bare), "dx with padding behind": (dpadded, dbare)}


def low(own):
    """Everything that comes of float32."""
    reader, x = own.Reader(4, 3, dtype=np.float32), normal(2, 5, 4).astype(np.float32)
    states, cache = reader.forward(x, SHORTER)
    return {"states": states, "dx": reader.backward(np.ones_like(states), cache)}


RECURRENT = Specimen(
    number=19,
    name="recurrent",
    seen="it learns slowly from sentences of different lengths",
    symptom="""
    The task is to name the first word of a sentence of one to eight words, from the state after the last.
    After {bug[steps]} steps the loss is {bug[last]:.2f}, and should be {right[last]:.2f}. Where all
    sentences have eight words, which is harder, it is {bug[bare]:.2f}, as without the bug.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check of sentences of one length", lambda own: (reader_of(own), normal(2, 5, 4), ALL)
        ),
        equal("the same beside the package's", lambda own: beside_the_package(own, ALL)),
        gradients(
            "gradient check with padding behind", lambda own: (reader_of(own), normal(2, 5, 4), SHORTER)
        ),
        gradients(
            "gradient check with padding before", lambda own: (reader_of(own), normal(2, 5, 4), EARLIER)
        ),
        equal("padding behind a sentence changes nothing", read_alone),
        equal("values and gradients beside the package's", lambda own: beside_the_package(own, SHORTER)),
        float32_stays("float32 stays float32", low),
    ),
    hints=(
        "The loss speaks to the last place. Print dx: which sentences of a batch hear anything?",
        "gradcheck(Reader(4, 3), x, mask) with a mask that is False somewhere. Without one it finds nothing.",
        "state = where(real, new, state) has two arrays to choose from. Each number of the gradient belongs "
        "to one of the two.",
    ),
    story="""
    "Padding gets no gradient" is true of what stood there, and it was not read. But the state was handed on
    through it: state = where(real, new, state) takes its numbers from one of two arrays, and where it took
    the old one, the gradient is the old one's. backward set it to 0. So a sentence that ended before the
    last place heard nothing from the loss at the last place, and each batch taught what its longest
    sentences had to teach: a loss of {bug[last]:.2f} after {bug[steps]} steps, where yours has
    {right[last]:.2f}. The forward pass was right, so everything that one can evaluate was as it should be;
    and gradient checks passed, as long as nobody gave them padding.
    """,
    repair="""
-            dstate = dh + self.recall.backward(drecalled, step.recall)
+            dheld = np.where(step.real, 0, dstate)
+            dstate = dh + self.recall.backward(drecalled, step.recall) + dheld
""",
)
