"""Bug: in decoding, the positions of the rotation begin anew at each step."""

from typing import Any

import numpy as np

from npformer.functional import rotary_table, rotate
from npformer.learn.bugs.rotary_trials import (
    AS_IN_THE_PACKAGE,
    LAYER_GRADIENTS,
    NO_LEAK,
    float32_results,
)
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_songs import SongModel, learn_songs, share_right, songs
from npformer.learn.bugs.trials import equal, float32_stays, normal


def train(own: Names) -> Run:
    """Train on continuing a sentence; then decode with whole prefixes and with a KV cache."""
    rng = np.random.default_rng(3)
    model = SongModel(own.RotaryAttention, rng)
    losses = learn_songs(model, rng)
    ids = songs(rng, 64)
    facts = {"whole": share_right(model, ids), "right": share_right(model, ids, word_by_word=True)}
    return Run(losses, facts)


def token_by_token(own: Names) -> Any:
    """Compare every output of forward with that of decode_step for the same token."""
    layer, x, kv_cache = own.RotaryAttention(6), normal(2, 6, 6), None
    whole, pairs = layer.forward(x)[0], {}
    for t in range(6):
        y, kv_cache = layer.decode_step(x[:, t : t + 1], kv_cache)
        pairs[f"y of token {t}"] = (y, whole[:, t : t + 1])
    return pairs


def order(own: Names) -> dict[str, Any]:
    """Decode two equal tokens, whose keys must differ, because they are at different positions."""
    layer, x = own.RotaryAttention(6), np.repeat(normal(1, 1, 6), 2, 1)
    _, kv_cache = layer.decode_step(x[:, :1])
    _, (k, _) = layer.decode_step(x[:, 1:], kv_cache)
    _, k_whole, _ = np.split(layer.query_key_value.forward(x)[0], 3, -1)
    right, _ = rotate(k_whole, *rotary_table(np.arange(2), 6, base=100.0))
    return {"the keys of two equal tokens": (k, right)}


def float32_everywhere(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32, in decoding too."""
    layer, x = own.RotaryAttention(6, dtype=np.float32), normal(2, 1, 6).astype(np.float32)
    return {**float32_results(own), "y of decode_step": layer.decode_step(x)[0]}


ROTARY_DECODING = Specimen(
    number=26,
    name="rotary-decoding",
    summary="with a KV cache the model forgets the order of tokens",
    symptom="""
    A model with rotary positions learns sentences that repeat their first three tokens. After {bug[steps]}
    steps it gets the first three tokens of a sentence and generates the others. If it reads the complete
    sentence for each new token, {bug[whole]:.0f} % of the generated tokens are correct. With a KV cache it
    should generate the same tokens, but only {bug[right]:.0f} % are correct.
    """,
    train=train,
    trials=(
        LAYER_GRADIENTS,
        NO_LEAK,
        AS_IN_THE_PACKAGE,
        equal("decode_step gives the same as forward", token_by_token),
        equal("in decode_step, equal tokens at two positions have different keys", order),
        float32_stays("float32 stays float32", float32_everywhere),
    ),
    hints=(
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
