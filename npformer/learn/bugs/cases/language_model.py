"""Bug: the causal mask is off by one, so every position attends to the token that it must predict."""

from typing import Any

import numpy as np

from npformer.functional import cross_entropy
from npformer.functional.masks import causal_mask
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import adapt, learn_tokens, walks
from npformer.learn.bugs.trials import equal, float32_stays, gradients, no_leak, random_parameters

STEPS, LR, LENGTH = 250, 0.01, 10
IDS = np.array([[3, 1, 4, 1, 5, 9]])


def train(own: Names) -> Run:
    """Train on predicting the next token; then predict the last token of prefixes, where nothing follows."""
    rng = np.random.default_rng(3)
    model = own.LanguageModel(12, 16, LENGTH, rng=rng)

    def step(_: int) -> float:
        ids = walks(rng, 16, LENGTH + 1)
        return learn_tokens(model, ids[:, :-1], ids[:, 1:])

    losses = adapt(model, step, steps=STEPS, lr=LR)
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
    return {"the logits of beginnings": (found, whole)}


def the_mask(own: Names) -> Any:
    """Compare the mask with the right one."""
    return {f"may_attend({n})": (own.may_attend(n), causal_mask(n, np.empty(0))) for n in (1, 4)}


def leak_arguments(own: Names) -> tuple[Any, Any]:
    """Return the model and a sentence, for the search for leaks."""
    model = model_of(own)
    return lambda ids: model.forward(ids)[0], IDS


def itself(own: Names) -> dict[str, Any]:
    """Check a sentence of one token, at which the first position attends to itself."""
    model = model_of(own)
    logits = [model.forward(np.array([[word]]))[1].attention.attention.weights for word in (1, 2)]
    return {"the weights of a sentence of one word": (logits[0], np.ones((1, 2, 1, 1)))}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    return {"logits": own.LanguageModel(12, 8, 8, dtype=np.float32).forward(IDS)[0]}


LANGUAGE_MODEL = Specimen(
    number=11,
    name="language-model",
    summary="the loss is too good to be true",
    symptom="""
    In this language either of two words may follow each word, so nobody can have a loss under log 2 = 0.69.
    The model has {bug[last]:.3f} after {bug[steps]} steps, on sentences that it has never seen. But when it
    must say how a beginning goes on, its loss is {bug[alone]:.2f}. Without the bug the two are
    {right[last]:.2f} and {right[alone]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check of the whole model", lambda own: (model_of(own), IDS)),
        no_leak("no output moves with a later word", leak_arguments),
        equal("a beginning by itself has the same logits", beginnings),
        equal("the first word sees itself", itself),
        equal("who may look at whom", the_mask),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "A loss under what is possible means that the model knows the answer. Where from?",
        "npformer.assert_no_leak(lambda ids: LanguageModel().forward(ids), ids) names the first output "
        "that moves with a word that it must not see.",
        "Print may_attend(4), and count the places that the first word may look at.",
    ),
    story="""
    np.tril(ones, 1) keeps one diagonal too many: every word looked at the word after it, which is the one
    to guess. So training was copying, and the loss went to {bug[last]:.3f}, under the 0.69 that is
    possible. In use there is no word after the last one, and the loss was {bug[alone]:.2f}; yours has
    {right[alone]:.2f}. All gradients are right, and held-out sentences look as good as the training's, for
    they are given with their future as well. Only a test that changes the future and looks whether the past
    moves can see it; or knowing how low a loss can be.
    """,
    repair="""
-    return np.tril(np.ones((length, length), bool), 1)
+    return np.tril(np.ones((length, length), bool))
""",
)
