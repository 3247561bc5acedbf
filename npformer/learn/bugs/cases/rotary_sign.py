"""Bug: in the rotation of a pair, the sign of one sine is missing."""

from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.bugs.songs import FLOAT32_STAYS, LAYER_GRADIENTS, NO_LEAK, learn_songs, move_sentence
from npformer.learn.bugs.specimen import Names, Specimen
from npformer.learn.bugs.trials import alike, equal, normal


def lengths(own: Names) -> dict[str, Any]:
    """Compare the lengths of vectors before and after the rotation."""
    x = normal(2, 5, 6)
    y = own.turned(x, own.rotations(3, 5, 6))
    return {
        say("the lengths of the rotated vectors"): (np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1))
    }


def two_steps(own: Names) -> dict[str, Any]:
    """Compare one rotation by two positions with two rotations by one."""
    x, by_one, by_two = normal(1, 1, 6), own.rotations(1, 1, 6), own.rotations(2, 1, 6)
    return {say("a vector at position 2"): (own.turned(x, by_two), own.turned(own.turned(x, by_one), by_one))}


def position_0(own: Names) -> dict[str, Any]:
    """Check that nothing is rotated at position 0."""
    x = normal(2, 1, 6)
    return {say("a vector at position 0"): (own.turned(x, own.rotations(0, 1, 6)), x)}


BUG = Specimen(
    summary="the model learns tokens, but hardly their order",
    symptom="""
    A model with rotary positions learns sentences that repeat their first three tokens. After {bug[steps]}
    steps its loss is {bug[last]:.2f}, and without the bug {right[last]:.2f}. When it generates the end of a
    sentence, {bug[right]:.0f} % of its tokens are correct. This is little more than a third, as if the model
    knew the three tokens but not their order. Without the bug it is {right[right]:.0f} %.
    """,
    train=lambda own: learn_songs(own.RotaryAttention, right={}),
    trials=(
        LAYER_GRADIENTS,
        NO_LEAK,
        equal("nothing is rotated at position 0", position_0),
        alike("a rotation does not change the length of a vector", lengths),
        alike("two steps by one position are one step by two", two_steps),
        alike("the output depends on distances only", move_sentence),
        FLOAT32_STAYS,
    ),
    english_hints=(
        "A rotation has properties that you can test without knowing its formula. What does it do to the "
        "length of a vector?",
        "Compute np.linalg.norm(turned(x, rotations(3, 1, 6))) and np.linalg.norm(x) for a vector x of the "
        "shape (1, 1, 6).",
        "Write down the matrix that rotates a vector of two numbers by an angle. How many of its entries "
        "are negative for a small angle?",
    ),
    story="""
    The matrix of a rotation has the rows (cos, -sin) and (sin, cos). The minus sign was missing. Without it
    the matrix is symmetric and does not rotate: it stretches one direction and shrinks another. So the length
    of a query depended on its position, and the score did not depend on the distance. The loss was
    {bug[last]:.2f}, and with your repair it is {right[last]:.2f}. The gradient check passes, because the
    backward pass uses the transpose of the same matrix. The mistake is easy to make in programs that rotate
    the two halves of a vector. If the sign stands before the other sine, the rotation has the opposite
    direction. Then the model is as good as before, but it cannot use weights that were trained with the first
    direction.
    """,
    repair="""
-    first, second = np.stack([cos, sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
+    first, second = np.stack([cos, -sin], -1), np.stack([sin, cos], -1)  # the two rows of each matrix
""",
)
