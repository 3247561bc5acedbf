"""Bug: the mask is computed after positions have been added to the vectors, so nothing is padding."""

from typing import Any

import numpy as np

from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import adapt, learn_tokens, token_loss
from npformer.learn.bugs.trials import equal, float32_stays, gradients, random_parameters

STEPS, LR, LENGTH, MOST = 200, 0.01, 6, 24
SHORT, LONG = np.array([[3, 1, 4]]), np.array([[3, 1, 4, 0, 0]])


def backwards(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return sentences and their targets: the sentence reversed."""
    ids = rng.integers(1, 12, (n, LENGTH))
    return ids, ids[:, ::-1]


def train(own: Names) -> Run:
    """Train on reversing sentences of one length, and evaluate on sentences with padding at their ends."""
    rng = np.random.default_rng(3)
    model, used = own.Encoder(12, 16, MOST, rng=rng), []
    held_out = backwards(np.random.default_rng(4), 12)
    padded = [np.pad(x, ((0, 0), (0, MOST - LENGTH))) for x in held_out]

    def step(_: int) -> float:
        used.append(token_loss(model, *padded, pad_id=0))
        return learn_tokens(model, *backwards(rng, 16))

    adapt(model, step, steps=STEPS, lr=LR)
    return Run(used, {"bare": token_loss(model, *held_out)})


def model_of(own: Names) -> Any:
    """Return an encoder whose parameters, also the vector of padding, are not the initial ones."""
    return random_parameters(own.Encoder(7, 8, 12))


def with_and_without(own: Names, model: Any) -> dict[str, Any]:
    """Compare the logits of a sentence with and without padding at its end."""
    return {"the logits with padding behind": (model.forward(LONG)[0][:, :3], model.forward(SHORT)[0])}


def no_padding(own: Names) -> dict[str, Any]:
    """Check that no token of a sentence without padding is hidden."""
    weights = model_of(own).forward(SHORT)[1].attention.attention.weights
    return {"how many weights are not 0": (int((weights > 0).sum()), weights.size)}


def sums_to_zero(own: Names) -> dict[str, Any]:
    """Check that a token whose vector is 0, or sums to 0, is not hidden."""
    model = model_of(own)
    model.input.tokens.weight.value[3] = 0
    model.input.tokens.weight.value[1] = np.tile([1.0, -1.0], 4)
    weights = model.forward(LONG)[1].attention.attention.weights
    return {"which weights are not 0": (weights[0, 0] > 0, np.broadcast_to(LONG != 0, (5, 5)))}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    return {"logits": own.Encoder(7, 8, 12, dtype=np.float32).forward(LONG)[0]}


PADDING = Specimen(
    number=13,
    name="padding",
    summary="a sentence means something else beside a longer one",
    symptom="""
    Trained on sentences of one length the encoder does well: a loss of {bug[bare]:.3f} on held-out ones. In
    a batch with longer sentences the short ones are padded, and the same sentences then have a loss of
    {bug[last]:.2f}. It should be {right[last]:.3f}. The curve is that of the padded ones.
    """,
    train=train,
    trials=(
        gradients("gradient check of the encoder", lambda own: (model_of(own), LONG)),
        equal("without padding nothing is hidden", no_padding),
        equal("padding behind a sentence changes nothing", lambda own: with_and_without(own, model_of(own))),
        equal("a word whose vector is 0 is still a word", sums_to_zero),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "Run the encoder on one sentence, and on the same with two zeros behind it. Which logits should "
        "agree?",
        "show(cache.attention) prints the weights. How much do they look at padding?",
        "Print the mask. When is a vector all zeros, and what was added to it by then?",
    ),
    story="""
    The mask asked whether a vector is all zeros, after the positions had been added to it: nothing is, so
    every place counted as a word. Before positions came it had worked, and its unit test still passed. A
    padded sentence had a loss of {bug[last]:.2f}, and has {right[last]:.3f} with yours. What a sentence
    meant depended on its neighbours in the batch; evaluated one by one it was fine. It also breaks as soon
    as a word's vector sums to 0, or padding's is trained. Whether a place holds a word is known from the
    ids. Gradient checks pass: the mask is a constant to them.
    """,
    repair="""
-        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
+        mask = (ids != PAD)[:, None, None, :]  # (B, 1, 1, S)
""",
)
