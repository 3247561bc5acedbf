"""Bug: the causal mask is off by one, so every position attends to the token that it must predict."""

from typing import Any

import numpy as np

from npformer.functional import cross_entropy
from npformer.functional.masks import causal_mask
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import cut, learn, learn_tokens, walks
from npformer.learn.bugs.trials import equal, float32_stays, gradients, no_leak, random_parameters

LENGTH = 10
IDS = np.array([[3, 1, 4, 1, 5, 9]])


def train(own: Names) -> Run:
    """Train on predicting the next token; then predict the last token of prefixes, where nothing follows."""
    rng = np.random.default_rng(3)
    model = own.LanguageModel(12, 16, LENGTH, rng=rng)
    losses = learn(model, lambda _: learn_tokens(model, *cut(walks(rng, 16, LENGTH + 1))), steps=250, lr=0.01)
    ids = walks(np.random.default_rng(8), 64, LENGTH + 1)
    alone = [
        float(cross_entropy(model.forward(ids[:, :t])[0][:, -1], ids[:, t])[0]) for t in range(2, LENGTH)
    ]
    return Run(losses, {"alone": float(np.mean(alone))})


def model_of(own: Names) -> Any:
    """Return a model whose parameters are not the initial ones."""
    return random_parameters(own.LanguageModel(12, 8, 8))


def beginnings(own: Names) -> dict[str, Any]:
    """Compare the logits of each prefix of a sentence with those of the whole sentence."""
    model = model_of(own)
    whole, _ = model.forward(IDS)
    found = np.concatenate([model.forward(IDS[:, :t])[0][:, -1:] for t in range(1, 7)], 1)
    return {say("the logits of the beginnings of a sentence"): (found, whole)}


def the_mask(own: Names) -> Any:
    """Compare the mask with the right one."""
    return {f"may_attend({n})": (own.may_attend(n), causal_mask(n, np.empty(0))) for n in (1, 4)}


def itself(own: Names) -> dict[str, Any]:
    """Check a sentence of one token, at which the first position attends to itself."""
    weights = model_of(own).forward(np.array([[1]]))[1].attention.attention.weights
    return {say("the weights of a sentence of one token"): (weights, np.ones((1, 2, 1, 1)))}


BUG = Specimen(
    summary="the loss is lower than is possible",
    symptom="""
    In a made-up language, each token is followed by one of two tokens, with equal probability. So no model
    can have a loss below log 2 = 0.69. But after {bug[steps]} steps this language model has a loss of
    {bug[last]:.3f}, on sentences that it has not seen before. If it gets only the beginning of a sentence and
    predicts the next token, its loss is {bug[alone]:.2f}. Without the bug, the two losses are
    {right[last]:.2f} and {right[alone]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check of the whole model", lambda own: (model_of(own), IDS)),
        no_leak("no output depends on a later token", lambda own: (model_of(own).forward, IDS)),
        equal("the logits of the beginning of a sentence are those of the whole sentence", beginnings),
        equal("the first token attends to itself", itself),
        equal("the mask", the_mask),
        float32_stays(lambda own: (own.LanguageModel(12, 8, 8, dtype=np.float32), IDS), "logits"),
    ),
    english_hints=(
        "A loss that is lower than possible means that the model reads the correct answer somewhere in its "
        "input. Where?",
        "npformer.assert_no_leak(lambda ids: LanguageModel().forward(ids), ids) names the first output that "
        "depends on a token to which it must not attend.",
        "Print may_attend(4). To how many positions may the first token attend?",
    ),
    story="""
    np.tril(ones, 1) keeps one diagonal too many. So every token attended to the next token, which is the one
    to be predicted. The model learned to copy it, and the loss fell to {bug[last]:.3f}, below the possible
    0.69. When the model is used, there is no token after the last one, and the loss was {bug[alone]:.2f}.
    With your repair it is {right[alone]:.2f}. All gradients were correct. The loss on held-out sentences was
    low as well, because the model read them completely too. Two things reveal the bug: a test that changes a
    later token and compares the earlier outputs, and knowledge of the lowest possible loss.
    """,
    repair="""
-    return np.tril(np.ones((length, length), bool), 1)
+    return np.tril(np.ones((length, length), bool))
""",
)
