"""Bug: in decoding, the positions of the rotation begin anew at each step."""

from typing import Any

import numpy as np

from npformer.functional import rotary_table, rotate
from npformer.language import say
from npformer.learn.bugs.songs import (
    AS_IN_THE_PACKAGE,
    LAYER_GRADIENTS,
    NO_LEAK,
    float32_with_decoding,
    learn_songs,
    word_by_word,
)
from npformer.learn.bugs.specimen import Names, Specimen
from npformer.learn.bugs.trials import equal, normal


def order(own: Names) -> dict[str, Any]:
    """Decode two equal tokens, whose keys must differ, because they are at different positions."""
    layer, x = own.RotaryAttention(6), np.repeat(normal(1, 1, 6), 2, 1)
    _, kv_cache = layer.decode_step(x[:, :1])
    _, (k, _) = layer.decode_step(x[:, 1:], kv_cache)
    _, k_whole, _ = np.split(layer.query_key_value.forward(x)[0], 3, -1)
    right, _ = rotate(k_whole, *rotary_table(np.arange(2), 6, base=100.0))
    return {say("the keys of two equal tokens"): (k, right)}


BUG = Specimen(
    summary="with a KV cache the model forgets the order of tokens",
    symptom="""
    A model with rotary positions learns sentences that repeat their first three tokens. After {bug[steps]}
    steps it gets the first three tokens of a sentence and generates the others. If it reads the complete
    sentence for each new token, {bug[whole]:.0f} % of the generated tokens are correct. With a KV cache it
    should generate the same tokens, but only {bug[right]:.0f} % are correct.
    """,
    train=lambda own: learn_songs(own.RotaryAttention, whole={}, right={"word_by_word": True}),
    trials=(
        LAYER_GRADIENTS,
        NO_LEAK,
        AS_IN_THE_PACKAGE,
        equal("decode_step gives the same as forward", word_by_word(lambda own: own.RotaryAttention(6))),
        equal("in decode_step, equal tokens at two positions have different keys", order),
        float32_with_decoding(lambda own: own.RotaryAttention(6, dtype=np.float32)),
    ),
    english_hints=(
        "Training and forward are correct. Which angle does the rotation have in decode_step?",
        "Call layer.decode_step with x[:, :1], then x[:, 1:2], and so on. Compare each y with "
        "layer.forward(x)[0]. Which is the first token with a difference?",
        "The new token comes after the tokens of the KV cache. What is its position?",
    ),
    story="""
    decode_step rotated each new query and each new key as if it were at position 0. So all distances were 0,
    and the model could not distinguish the order of the earlier tokens. {bug[right]:.0f} % of the generated
    tokens were correct, about a third: the model knew the three tokens, but not which one comes next. With
    your repair it is {right[right]:.0f} %. The position of the new token is the length of the KV cache. The
    loss and the gradients cannot show this bug, because training does not use decode_step. The first token is
    correct, so a test of one step passes too. A test must decode several tokens, and compare each of them
    with the forward pass of the complete sentence.
    """,
    repair="""
-        (q, k, v), _, _ = self.project(x)
-        if kv_cache is not None:
+        start = 0 if kv_cache is None else kv_cache[0].shape[1]
+        (q, k, v), _, _ = self.project(x, start)
+        if kv_cache is not None:
""",
)
