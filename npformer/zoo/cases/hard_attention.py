"""Bug: the baseline of a draw has seen the draw."""

from itertools import product

import numpy as np

from npformer.attention import Similarity
from npformer.attention.estimates import estimate, every_sample
from npformer.attention.hard_task import PLACES, SYMBOLS, make_places
from npformer.exercises.fault import Fault
from npformer.functional import log_softmax, log_softmax_backward, softmax
from npformer.gradcheck.cases.hard import SmallAnswer
from npformer.layers import Linear
from npformer.module import Module
from npformer.zoo.ground import adapt, descend
from npformer.zoo.specimen import Run, Specimen, Trial
from npformer.zoo.trials import equal, float32_stays, gradients, normal

STEPS, LR, ADAM_LR, BATCH = 300, 0.6, 0.03, 16


class Reader(Module):
    """What stands at the place that is asked for by name? The file's attention, and a linear map."""

    def __init__(self, own, draws, rng):
        width = PLACES + SYMBOLS
        self.similarity = Similarity("general", PLACES, width, rng=rng, dtype=np.float64)
        self.readout = Linear(width, SYMBOLS, rng=rng, dtype=np.float64)
        self.attention, self.rng = own.HardAttention(draws), rng

    def learn(self, places) -> float:
        """The loss of a batch; adds the gradients."""
        scores, compared = self.similarity.forward(places.query, places.memory)
        z, looked = self.attention.forward(scores, places.memory, rng=self.rng)
        logits, read = self.readout.forward(z)
        log_probs, _ = log_softmax(logits)  # (N, B, 1, C)
        at = (..., np.arange(len(scores)), 0, places.symbol)
        log_likelihood = log_probs[at]  # (N, B)
        dlog_probs = np.zeros_like(log_probs)
        dlog_probs[at] = -1 / log_likelihood.size
        dz = self.readout.backward(log_softmax_backward(dlog_probs, log_probs), read)
        dscores, _ = self.attention.backward(dz, log_likelihood, looked)
        self.similarity.backward(dscores, compared)
        return -log_likelihood.mean()


def learn(own, draws: int, optimize=descend, lr: float = LR) -> Run:
    """The task of the places, learnt by plain gradient descent or another way."""
    rng = np.random.default_rng(3)
    reader = Reader(own, draws, rng)
    return Run(optimize(reader, lambda _: reader.learn(make_places(BATCH, rng)), steps=STEPS, lr=lr), {})


def train(own) -> Run:
    """Two draws of every sentence; the same with one draw, and with Adam."""
    one, adam = learn(own, 1), learn(own, 2, adapt, ADAM_LR)
    return Run(learn(own, 2).losses, {"one": one.numbers()["last"], "adam": adam.numbers()["last"]})


def looked(own):
    """What is read, with the draws held fast, as a pair: only v has a gradient."""
    attention, scores = own.HardAttention(2), normal(1, 2, 3, seed=6)
    sample = every_sample(2, 3)[[1, 5]]  # (2, 1, T, S)

    def forward(v):
        return attention.forward(scores, v, sample=sample)

    def backward(dz, cache):
        return attention.backward(dz, np.full((2, 1), -1.0), cache)[1]

    return (forward, backward), normal(1, 3, 3, seed=7)


class Case:
    """Two queries to three places: few enough for all that several draws can give. f is log p(y | s)."""

    def __init__(self):
        self.scores, self.v = normal(1, 2, 3, seed=8), normal(1, 3, 3, seed=9)
        self.answer = SmallAnswer(np.random.default_rng(11))

    def exact(self):
        """The gradients (dscores, dv) of the loss's expectation, from the package."""
        return estimate(self.scores, self.v, (self.answer.forward, self.answer.backward))[:2]

    def mean(self, own, draws):
        """Mean of (dscores, dv) over all that the draws can give, and the variance of dscores."""
        every = every_sample(2, 3)  # (9, 1, T, S)
        weights, _ = softmax(self.scores)
        chance = np.where(every[:, 0], weights, 1).prod((-1, -2))  # (9,)
        attention, found, p = own.HardAttention(draws), [], []
        for chosen in product(range(len(every)), repeat=draws):
            found.append(self.gradients(attention, every[list(chosen)]))
            p.append(chance[list(chosen)].prod())
        dscores, dv = (np.stack(parts) for parts in zip(*found, strict=True))
        means = np.tensordot(p, dscores, 1), np.tensordot(p, dv, 1)
        return *means, float(np.tensordot(p, (dscores - means[0]) ** 2, 1).sum())

    def gradients(self, attention, sample):
        """What these draws give."""
        z, cache = attention.forward(self.scores, self.v, sample=sample)
        f, answered = self.answer.forward(z)  # (N, 1)
        return attention.backward(self.answer.backward(np.full_like(f, -1 / f.size), answered), f, cache)


def along(x):
    """The array over its length."""
    return x / np.sqrt((x * x).sum())


def directions(own):
    """Which way the mean over all pairs of draws points, and the gradient of the expected loss."""
    case = Case()
    return {"the direction of the mean dscores": (along(case.mean(own, 2)[0]), along(case.exact()[0]))}


def means(draws: int):
    """Makes the comparison of the mean over all that so many draws can give with that gradient."""

    def make(own):
        case = Case()
        found, right = case.mean(own, draws), case.exact()
        return {"the mean dscores": (found[0], right[0]), "the mean dv": (found[1], right[1])}

    return make


def varies_less(own):
    """With two draws, dscores must vary clearly less than where nothing is compared with anything."""
    case = Case()
    plain = estimate(case.scores, case.v, (case.answer.forward, case.answer.backward)).variance / 2
    found = case.mean(own, 2)[2]
    if found > 0.9 * plain:
        raise Fault(
            f"the variance of dscores is {found:.3g}, and {plain:.3g} where answers are compared with nothing"
        )


def low(own):
    """Everything that comes of float32."""
    scores, v = normal(1, 2, 3).astype(np.float32), normal(1, 3, 4).astype(np.float32)
    attention = own.HardAttention(2)
    z, cache = attention.forward(scores, v, rng=np.random.default_rng(0))
    dscores, dv = attention.backward(np.ones_like(z), np.full((2, 1), -1, np.float32), cache)
    return {"z": z, "dscores": dscores, "dv": dv}


HARD_ATTENTION = Specimen(
    number=21,
    name="hard-attention",
    seen="with two draws of a sentence it learns late, with one never",
    symptom="""
    Hard attention learns by rewards to find what stands at a place that is asked for by name. With two
    draws of every sentence it gets there, but late: after {bug[steps]} steps the loss is {bug[last]:.2f},
    where {right[last]:.2f} is possible. With one draw it is {bug[one]:.2f} (guessing has 1.61), and should
    be {right[one]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check of what is read, the draws held fast", looked),
        equal("over all pairs of draws, the mean points where the loss falls", directions),
        equal("over all pairs of draws, the mean is the gradient", means(2)),
        equal("over all that one draw can give, the mean is the gradient", means(1)),
        equal("the same for three draws", means(3)),
        Trial("it varies less than where answers are compared with nothing", varies_less),
        float32_stays("float32 stays float32", low),
    ),
    hints=(
        "The draws have no gradient to check. But on average dscores has one: with two queries and three "
        "places, two draws can come out in 81 ways. Add up what they give, times their probabilities.",
        "npformer.attention.estimates has the right answer: expected_loss, whose slope a complex step tells. "
        "Compare with two draws, then with one: the ratio is the same in every entry.",
        "A number taken off every reward changes no mean, if it is the same whatever was drawn. Is it?",
    ),
    story="""
    Each answer was compared with the mean of all answers to the sentence, its own among them. So with N
    draws each took an N-th of itself away, and what was left of the gradient is 1 - 1/N of it: a half with
    two draws, two thirds with three, with one nothing at all. It points the right way, varies less, as it
    should, and learns: {bug[last]:.2f} after {bug[steps]} steps, and {right[last]:.2f} with yours. Adam,
    which divides a gradient by its size, hides even that: {bug[adam]:.2f}, and {right[adam]:.2f}. A baseline
    may be anything that has not seen the draw: the mean of the other draws, or a moving average as it
    stood before. What finds the mistake is the mean over all draws, and its size, not where it points.
    """,
    repair="""
-    return log_likelihood.mean(0)
+    others = log_likelihood.sum(0) - log_likelihood  # (N, B) the draws but for one's own
+    return others / max(len(log_likelihood) - 1, 1)
""",
)
