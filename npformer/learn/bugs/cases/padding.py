"""Bug: the mask is computed after positions have been added to the vectors, so it finds no padding."""

from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import backwards, learn, learn_tokens, token_loss
from npformer.learn.bugs.trials import equal, float32_stays, gradients, random_parameters

LENGTH, MOST = 6, 24
SHORT, LONG = np.array([[3, 1, 4]]), np.array([[3, 1, 4, 0, 0]])


def train(own: Names) -> Run:
    """Train on reversing sentences of one length, and evaluate on sentences with padding at their ends."""
    rng = np.random.default_rng(3)
    model, used = own.Encoder(12, 16, MOST, rng=rng), []
    held_out = backwards(np.random.default_rng(4), 12, LENGTH, lowest=1)
    padded = [np.pad(x, ((0, 0), (0, MOST - LENGTH))) for x in held_out]

    def step(_: int) -> float:
        used.append(token_loss(model, *padded, pad_id=0))
        return learn_tokens(model, *backwards(rng, 16, LENGTH, lowest=1))

    learn(model, step, steps=200, lr=0.01)
    return Run(used, {"bare": token_loss(model, *held_out)})


def model_of(own: Names) -> Any:
    """Return an encoder whose parameters, also the vector of padding, are not the initial ones."""
    return random_parameters(own.Encoder(7, 8, 12))


def with_and_without(own: Names) -> dict[str, Any]:
    """Compare the logits of a sentence with and without padding at its end."""
    model = model_of(own)
    return {say("the logits with padding"): (model.forward(LONG)[0][:, :3], model.forward(SHORT)[0])}


def no_padding(own: Names) -> dict[str, Any]:
    """Check that no token of a sentence without padding is hidden."""
    weights = model_of(own).forward(SHORT)[1].attention.attention.weights
    return {say("the number of weights that are not 0"): (int((weights > 0).sum()), weights.size)}


def sums_to_zero(own: Names) -> dict[str, Any]:
    """Check that a token whose vector is 0, or sums to 0, is not hidden."""
    model = model_of(own)
    model.input.tokens.weight.value[3] = 0
    model.input.tokens.weight.value[1] = np.tile([1.0, -1.0], 4)
    weights = model.forward(LONG)[1].attention.attention.weights
    return {say("which weights are not 0"): (weights[0, 0] > 0, np.broadcast_to(LONG != 0, (5, 5)))}


BUG = Specimen(
    summary="the results for a sentence depend on its padding",
    symptom="""
    An encoder is trained on sentences of one length, and it learns well: its loss on held-out sentences is
    {bug[bare]:.3f}. If the same sentences are in a batch with longer sentences, they are padded, and their
    loss is {bug[last]:.2f}. Without the bug it is {right[last]:.3f}. The curves show the loss on the padded
    sentences.
    """,
    train=train,
    trials=(
        gradients("gradient check of the encoder", lambda own: (model_of(own), LONG)),
        equal("without padding, no token is masked", no_padding),
        equal("padding after a sentence changes nothing", with_and_without),
        equal("a token whose vector is 0 is not padding", sums_to_zero),
        float32_stays(lambda own: (own.Encoder(7, 8, 12, dtype=np.float32), LONG), "logits"),
    ),
    english_hints=(
        "Run the encoder with one sentence, and then with the same sentence followed by two zeros. Which "
        "logits should be equal?",
        "show(cache.attention) prints the attention weights. Which weight does padding get?",
        "Print the mask. It is False where a vector is 0 in all components. What has been added to the "
        "embeddings before?",
    ),
    story="""
    The code took a position as padding if its vector is 0 in all components. But at this point the positional
    encodings had already been added, so no vector was 0, and no position was masked. Such code works until
    someone adds positional encodings to the model. The loss of a padded sentence was {bug[last]:.2f}. With
    your repair it is {right[last]:.3f}. So the output for a sentence depended on the longest sentence of its
    batch. If each sentence was evaluated separately, there was no error. The test of the vectors is also
    incorrect if the vector of a token is 0, or if the vector of padding is trained. The ids say reliably
    which positions are padding. Gradient checks pass, because the mask is a constant for them.
    """,
    repair="""
-        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
+        mask = (ids != PAD)[:, None, None, :]  # (B, 1, 1, S)
""",
)
