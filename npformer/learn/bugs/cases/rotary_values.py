"""Bug: rotary positions rotate the values too, and not only queries and keys."""

from typing import Any

from npformer.language import say
from npformer.learn.bugs.songs import (
    AS_IN_THE_PACKAGE,
    FLOAT32_STAYS,
    LATER,
    LAYER_GRADIENTS,
    NO_LEAK,
    learn_songs,
    move_sentence,
)
from npformer.learn.bugs.specimen import Names, Specimen
from npformer.learn.bugs.trials import alike, equal, normal


def weights(own: Names) -> dict[str, Any]:
    """Compare the attention weights at the beginning of a text with those at a later position."""
    layer, x = own.RotaryAttention(6), normal(2, 5, 6)
    first, later = (layer.forward(x, start)[1].attention.weights for start in (0, LATER))
    return {say("the weights of a sentence that begins later"): (later, first)}


def alone(own: Names) -> dict[str, Any]:
    """Check a single token: it attends to itself only, so y is its value."""
    layer, x = own.RotaryAttention(6), normal(2, 1, 6)
    v = layer.query_key_value.forward(x)[0][..., 12:]
    return {say("y of a single token"): (layer.forward(x, LATER)[0], v)}


BUG = Specimen(
    summary="a sentence is continued wrongly if it begins later",
    symptom="""
    A model with rotary positions learns sentences that repeat their first three tokens. After {bug[steps]}
    steps it gets the first three tokens of a sentence and generates the others. {bug[right]:.0f} % of them
    are correct if the sentence begins at position 0, as in training. Rotary positions depend on distances
    only, so the same must be true at any other position. But if the sentence begins at position 10, only
    {bug[later]:.0f} % are correct. Without the bug it is {right[later]:.0f} %.
    """,
    # sentences that begin at position 0, as in training, and later
    train=lambda own: learn_songs(own.RotaryAttention, right={}, later={"start": LATER}),
    trials=(
        LAYER_GRADIENTS,
        NO_LEAK,
        alike("the attention weights depend on distances only", weights),
        alike("the output depends on distances only", move_sentence),
        equal("a token that attends only to itself reads its own value", alone),
        AS_IN_THE_PACKAGE,
        FLOAT32_STAYS,
    ),
    english_hints=(
        "Compute the attention weights of the same sentence at position 0 and at position 10. Are they "
        "equal? And the outputs?",
        "The output is a weighted mean of the values. If the weights are equal and the outputs are not, what "
        "remains?",
        "The rotations of a query and of a key cancel in their dot product, except for the distance. Which "
        "product does a value take part in?",
    ),
    story="""
    The line that rotates queries and keys also rotated the values. The dot product of a rotated query and a
    rotated key depends on their distance only. A value takes part in no such product: it is added to the
    output as it is. So the output contained the rotation by the absolute position. In training, all sentences
    began at position 0, and the model learned to read values that are rotated in this way. At position 10
    only {bug[later]:.0f} % of the generated tokens were correct. With your repair it is {right[later]:.0f} %.
    The gradient check passes, because the backward pass rotated the gradient of the values back. It is the
    right gradient of a wrong function. The test that finds the bug uses a property of the correct function:
    moving the whole sentence must change nothing.
    """,
    repair="""
-        (q, rotation), (k, _), (v, _) = (rotate(part, cos, sin) for part in (q, k, v))
+        (q, rotation), (k, _) = (rotate(part, cos, sin) for part in (q, k))

-        dq, dk, dv = (rotate_backward(part, cache.rotation) for part in (dq, dk, dv))
+        dq, dk = (rotate_backward(part, cache.rotation) for part in (dq, dk))
""",
)
