"""Bug: the baseline of a sample depends on the sample."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.cases.hard import SmallAnswer
from npformer.functional import log_softmax, log_softmax_backward, softmax
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen, Trial
from npformer.learn.bugs.toys import Descent, learn
from npformer.learn.bugs.trials import all_float32, equal, gradients, normal
from npformer.learn.tasks.answer import DamagedAnswer
from npformer.learn.tasks.verdict import Fault
from npformer.models.place_reader import PLACES, SYMBOLS, make_places
from npformer.nn import Linear
from npformer.nn.attention import Similarity
from npformer.nn.attention.hard import estimate, every_sample
from npformer.nn.module import Module

LR, ADAM_LR, BATCH = 0.6, 0.03, 16


class Reader(Module):
    """A model that reads the symbol at the place with a given name: the file's attention and a linear map."""

    def __init__(self, own: Names, draws: int, rng: np.random.Generator) -> None:
        width = PLACES + SYMBOLS
        self.similarity = Similarity("general", PLACES, width, rng=rng, dtype=np.float64)
        self.readout = Linear(width, SYMBOLS, rng=rng, dtype=np.float64)
        self.attention, self.rng = own.HardAttention(draws), rng

    def learn(self, places: Any) -> float:
        """Add the gradients of a batch and return its loss."""
        scores, compared = self.similarity.forward(places.query, places.memory)
        z, attended = self.attention.forward(scores, places.memory, rng=self.rng)
        logits, read = self.readout.forward(z)
        log_probs, _ = log_softmax(logits)  # (N, B, 1, C)
        at = (..., np.arange(len(scores)), 0, places.symbol)
        log_likelihood = log_probs[at]  # (N, B)
        dlog_probs = np.zeros_like(log_probs)
        dlog_probs[at] = -1 / log_likelihood.size
        dz = self.readout.backward(log_softmax_backward(dlog_probs, log_probs), read)
        dscores, _ = self.attention.backward(dz, log_likelihood, attended)
        self.similarity.backward(dscores, compared)
        return -log_likelihood.mean()


def trained(own: Names, draws: int, *, lr: float = LR, adam: bool = False) -> Run:
    """Train a reader with a number of draws for each sentence, with Adam or by gradient descent."""
    rng = np.random.default_rng(3)
    reader = Reader(own, draws, rng)

    def step(_: int) -> float:
        return reader.learn(make_places(BATCH, rng))

    return Run(learn(reader, step, steps=300, lr=lr, optimizer=None if adam else Descent(reader)), {})


def train(own: Names) -> Run:
    """Train with two draws for each sentence, with one draw, and with Adam."""
    one, adam = trained(own, 1), trained(own, 2, lr=ADAM_LR, adam=True)
    return Run(trained(own, 2).losses, {"one": one.numbers()["last"], "adam": adam.numbers()["last"]})


def attended(own: Names) -> tuple[Any, Any]:
    """Return the attention with fixed draws as a pair, in which only v has a gradient."""
    attention, scores = own.HardAttention(2), normal(1, 2, 3, seed=6)
    sample = every_sample(2, 3)[[1, 5]]  # (2, 1, T, S)

    def forward(v: Array) -> Any:
        return attention.forward(scores, v, sample=sample)

    def backward(dz: Array, cache: Any) -> Any:
        return attention.backward(dz, np.full((2, 1), -1.0), cache)[1]

    return (forward, backward), normal(1, 3, 3, seed=7)


class Case:
    """Two queries and three keys: few enough to enumerate all draws. f is log p(y | s)."""

    def __init__(self) -> None:
        self.scores, self.v = normal(1, 2, 3, seed=8), normal(1, 3, 3, seed=9)
        self.answer = SmallAnswer(np.random.default_rng(11))

    def exact(self) -> Any:
        """Return the package's gradients (dscores, dv) of the expected loss."""
        return estimate(self.scores, self.v, (self.answer.forward, self.answer.backward))[:2]

    def mean(self, own: Names, draws: int) -> tuple[Any, ...]:
        """Return the means of dscores and dv over all possible draws, and the variance of dscores."""
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

    def gradients(self, attention: Any, sample: Array) -> Any:
        """Return the gradients for some draws."""
        z, cache = attention.forward(self.scores, self.v, sample=sample)
        f, answered = self.answer.forward(z)  # (N, 1)
        return attention.backward(self.answer.backward(np.full_like(f, -1 / f.size), answered), f, cache)


def along(x: Array) -> Any:
    """Return the array divided by its norm."""
    return x / np.sqrt((x * x).sum())


def directions(own: Names) -> dict[str, Any]:
    """Compare the direction of the mean over all pairs of draws with that of the expected loss's gradient."""
    case = Case()
    return {say("the direction of the mean dscores"): (along(case.mean(own, 2)[0]), along(case.exact()[0]))}


def means(draws: int) -> Callable[..., Any]:
    """Return a comparison of the mean over all possible draws with the gradient of the expected loss."""

    def make(own: Names) -> dict[str, Any]:
        case = Case()
        found, right = case.mean(own, draws), case.exact()
        return {say("the mean dscores"): (found[0], right[0]), say("the mean dv"): (found[1], right[1])}

    return make


def variance(own: Names) -> float:
    """Return the variance of dscores with two draws."""
    return Case().mean(own, 2)[2]


def varies_less(found: Any, repaired: Names) -> None:
    """Check that dscores varies clearly less than without a baseline."""
    case = Case()
    plain = estimate(case.scores, case.v, (case.answer.forward, case.answer.backward)).variance / 2
    if not isinstance(found, float):
        raise DamagedAnswer("no variance")
    if not found <= 0.9 * plain:
        raise Fault(
            say(
                "the variance of dscores is {found:.3g}, which is not clearly less than {plain:.3g} without "
                "a baseline",
                found=found,
                plain=plain,
            )
        )


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    scores, v = normal(1, 2, 3).astype(np.float32), normal(1, 3, 4).astype(np.float32)
    attention = own.HardAttention(2)
    z, cache = attention.forward(scores, v, rng=np.random.default_rng(0))
    dscores, dv = attention.backward(np.ones_like(z), np.full((2, 1), -1, np.float32), cache)
    return {"z": z, "dscores": dscores, "dv": dv}


BUG = Specimen(
    summary="with two samples it learns slowly, with one sample not at all",
    symptom="""
    A model with hard attention learns to read the symbol at a given position of a memory. Hard attention
    samples one position, and its scores are trained with the score-function estimator. With two samples for
    each sentence, the model learns too slowly: after {bug[steps]} steps the loss is {bug[last]:.2f}, and
    {right[last]:.2f} without the bug. With one sample it does not learn where to attend: the loss is
    {bug[one]:.2f}, and {right[one]:.2f} without the bug. (Guessing gives 1.61.)
    """,
    train=train,
    trials=(
        gradients("gradient check of the values, with fixed samples", attended),
        equal("two samples: the expected value of dscores has the direction of the gradient", directions),
        equal("two samples: the expected value of dscores is the gradient", means(2)),
        equal("one sample: the expected value of dscores is the gradient", means(1)),
        equal("three samples: the expected value of dscores is the gradient", means(3)),
        Trial("the variance of dscores is smaller than without a baseline", variance, varies_less),
        all_float32("float32 stays float32", float32_results),
    ),
    english_hints=(
        "A gradient check is not possible for dscores, because it is random. But its expected value must be "
        "the gradient of the expected loss. With two queries and three positions, two samples have 81 "
        "possible outcomes. Compute dscores for each outcome, and sum the results times their probabilities.",
        "The correct result is the derivative of expected_loss in npformer.nn.attention.hard, which you can "
        "compute with a complex step. Compare for two samples and then for one sample. The ratio to the "
        "correct result is the same in all entries.",
        "A baseline does not change the expected value of dscores if it does not depend on the sample. Does "
        "it depend on the sample here?",
    ),
    story="""
    The baseline of a sample was the mean of the rewards of all N samples of the sentence, itself included. So
    1/N of the reward of each sample was subtracted from itself. The expected value of dscores was the
    gradient times 1 - 1/N: a half of it with two samples, two thirds with three, and 0 with one sample. With
    two samples the direction was correct, and the variance was small, as it should be. So the model learned,
    but slowly: the loss was {bug[last]:.2f} after {bug[steps]} steps. With your repair it is
    {right[last]:.2f}. Adam divides by the size of the gradient and hides the bug: with Adam, the losses are
    {bug[adam]:.2f} and {right[adam]:.2f}. A baseline may use everything except the sample itself, for example
    the mean of the other samples, or a moving average of earlier rewards. To find such a bug, compare the
    expected value of dscores with the gradient, and not only their directions.
    """,
    repair="""
-    return log_likelihood.mean(0)
+    others = log_likelihood.sum(0) - log_likelihood  # (N, B) the sum over the other samples
+    return others / max(len(log_likelihood) - 1, 1)
""",
)
