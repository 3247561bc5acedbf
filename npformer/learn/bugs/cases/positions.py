"""Bug: the exponent is doubled twice, so half of the sinusoids hardly change."""

from typing import Any

import numpy as np

from npformer.functional.positions import sinusoids
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Residual, backwards, learn, learn_tokens
from npformer.learn.bugs.trials import equal
from npformer.nn import Embedding, Linear
from npformer.nn.attention import MultiHeadAttention

LENGTH = 40


def train(own: Names) -> Run:
    """Train on reversing sentences of 40 tokens: a position must find one that is far away."""
    rng, positions = np.random.default_rng(3), own.sinusoids(LENGTH, 16)
    model = Chain(
        Embedding(12, 16, rng=rng, dtype=np.float64),
        (lambda x: (x + positions, None), lambda dy, cache: dy),
        Residual(MultiHeadAttention(16, 2, rng=rng, dtype=np.float64)),
        Linear(16, 12, rng=rng, dtype=np.float64),
    )
    losses = learn(model, lambda _: learn_tokens(model, *backwards(rng, 8, LENGTH)), steps=200, lr=0.01)
    still = float((np.ptp(own.sinusoids(200, 64), axis=0) < 0.1).mean())
    return Run(losses, {"still": 100 * still})


def wavelengths(own: Names) -> dict[str, Any]:
    """Compare the wavelength of the slowest pair with 2π · 10000^(1 - 2/D) positions."""
    table = own.sinusoids(3, 32)
    angle = np.arctan2(table[1, 30], table[1, 31])
    return {say("the angle between two positions in the last pair"): (float(angle), 10000 ** (-30 / 32))}


def beginning(own: Names) -> dict[str, Any]:
    """Check the entries that do not depend on the exponent."""
    return {
        say("position 0"): (own.sinusoids(6, 8)[0], sinusoids(6, 8)[0]),
        say("the first pair"): (own.sinusoids(6, 8)[:, :2], sinusoids(6, 8)[:, :2]),
        say("a width of 2"): (own.sinusoids(6, 2), sinusoids(6, 2)),
    }


def rotation(own: Names) -> dict[str, Any]:
    """Check that a shift by three positions rotates each pair by the same angle at every position."""
    table = own.sinusoids(12, 8)
    angle = np.arctan2(table[:, 0::2], table[:, 1::2])
    moved = np.exp(1j * (angle[3:] - angle[:-3]))
    return {
        say("the angle of a shift by 3"): (np.angle(moved), np.broadcast_to(np.angle(moved[:1]), moved.shape))
    }


def compare_with_package(own: Names) -> Any:
    """Compare two tables with the package's."""
    return {f"sinusoids({n}, {d})": (own.sinusoids(n, d), sinusoids(n, d)) for n, d in ((10, 16), (50, 6))}


BUG = Specimen(
    summary="the loss is too high for long sentences",
    symptom="""
    A model learns to write sentences of 40 tokens backwards. With these positional encodings its loss is
    {bug[last]:.2f} after {bug[steps]} steps. With the correct ones it is {right[last]:.2f}. In a table with
    64 columns, {bug[still]:.0f} % of the columns are nearly constant over 200 positions. It should be
    {right[still]:.0f} %.
    """,
    train=train,
    trials=(
        equal("position 0, the first pair of columns, and a table of width 2", beginning),
        equal("a shift of the position rotates each pair by the same angle at all positions", rotation),
        equal("the wavelength of the last pair of columns", wavelengths),
        equal("two tables are those of the package", compare_with_package),
    ),
    english_hints=(
        "This table has no parameters and no gradients. Draw the table with plots.value_map, and compare it "
        "with the formula in the docstring.",
        "In the paper, the wavelengths are between 2π and 10000 · 2π positions. Which wavelength do the last "
        "columns have here?",
        "Which values does i have in the formula? Which values does the variable i have in the code?",
    ),
    story="""
    The variable i has the values 0, 2, 4, …, which are already the 2i of the formula. The code doubled it a
    second time. So the longest wavelength was about 10000² · 2π positions instead of 10000 · 2π. As a result,
    {bug[still]:.0f} % of the columns were nearly constant, and only the others distinguished the positions.
    The loss for sentences of 40 tokens was {bug[last]:.2f}. With your repair it is {right[last]:.2f}. The bug
    is hard to notice: the first positions still differ, the shape and the range of the numbers are correct,
    and a shift still rotates each pair of columns. This line of code is in many tutorials, and a picture of
    the table looks similar to the correct one.
    """,
    repair="""
-    angle = position / 10000 ** (2 * i / d_model)  # (T, D/2)
+    angle = position / 10000 ** (i / d_model)  # (T, D/2)
""",
)
