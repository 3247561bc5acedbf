"""Bug: the window of the causal mask is one position too short."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.functional.masks import causal_mask
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import learn
from npformer.learn.bugs.trials import equal, float32_stays, gradients, no_leak, random_parameters

LENGTH, WINDOW, VOCAB_SIZE = 16, 4, 12
IDS = np.array([[3, 1, 4, 1, 5, 9, 2, 6]])


def sentences(rng: np.random.Generator, batch: int) -> Any:
    """Return sentences, (batch, LENGTH + 1), in which two tokens determine the next one.

    The token before determines a pair (2g, 2g + 1), and the token WINDOW positions before determines which of
    the two follows. The first WINDOW tokens are random.
    """
    pair = np.random.default_rng(7).permutation(VOCAB_SIZE) // 2  # g for each token
    ids = rng.integers(0, VOCAB_SIZE, (batch, LENGTH + 1))
    for t in range(WINDOW, LENGTH + 1):
        ids[:, t] = 2 * pair[ids[:, t - 1]] + ids[:, t - WINDOW] % 2
    return ids


def learn_predictable(model: Any, ids: Array) -> float:
    """Return the cross-entropy of the tokens that can be predicted, and add its gradients."""
    logits, cache = model.forward(ids[:, :-1])
    first = WINDOW - 1  # the first position whose next token can be predicted
    loss, loss_cache = cross_entropy(logits[:, first:], ids[:, first + 1 :])
    dlogits = np.zeros_like(logits)
    dlogits[:, first:] = cross_entropy_backward(1.0, loss_cache)
    model.backward(dlogits, cache)
    return float(loss)


def train(own: Names) -> Run:
    """Train on predicting the next token with a window that is just long enough."""
    rng = np.random.default_rng(3)
    model = own.LanguageModel(VOCAB_SIZE, 16, WINDOW, rng=rng)
    losses = learn(model, lambda _: learn_predictable(model, sentences(rng, 16)), steps=250, lr=0.01)
    return Run(losses, {})


def model_of(own: Names) -> Any:
    """Return a model whose parameters are not the initial ones."""
    return random_parameters(own.LanguageModel(12, 8, 3))


def the_mask(own: Names) -> Any:
    """Compare the mask with the right one."""
    sizes = ((6, 3), (5, 2), (4, 1))
    right = {size: causal_mask(size[0], np.empty(0), window=size[1]) for size in sizes}
    return {f"may_attend{size}": (own.may_attend(*size), right[size]) for size in sizes}


def long_window(own: Names) -> Any:
    """Compare the mask with a causal mask, for a window that is much longer than the sentence."""
    return {"may_attend(4, 10)": (own.may_attend(4, 10), causal_mask(4, np.empty(0)))}


def reach(own: Names) -> dict[str, Any]:
    """Check which logits change if the first token changes: those of the first three positions."""
    model = model_of(own)
    changed = IDS.copy()
    changed[0, 0] = 7
    moved = (model.forward(changed)[0] != model.forward(IDS)[0]).any(-1)[0]
    return {say("which logits depend on the first token, with a window of 3"): (moved, np.arange(8) < 3)}


BUG = Specimen(
    summary="the loss does not fall, although the window is long enough",
    symptom="""
    In a made-up language, the next token depends on the token before it and on the token four positions
    before it. So a model whose window contains four tokens can predict it. But after {bug[steps]} steps the
    loss of this model is {bug[last]:.2f}. Without the bug it is {right[last]:.3f}.
    """,
    train=train,
    trials=(
        gradients("gradient check of the whole model", lambda own: (model_of(own), IDS)),
        no_leak("no output depends on a later token", lambda own: (model_of(own).forward, IDS)),
        equal("a window that is longer than the sentence is a causal mask", long_window),
        equal("the mask", the_mask),
        equal("the logits that depend on the first token", reach),
        float32_stays(lambda own: (own.LanguageModel(12, 8, dtype=np.float32), IDS), "logits"),
    ),
    english_hints=(
        "The model gets all its information through the mask. To how many tokens may each position attend?",
        "Print may_attend(6, 3).sum(1).",
        "With a window of 3, position 5 must attend to the positions 3, 4 and 5. Insert these numbers into "
        "the condition.",
    ),
    story="""
    The condition key > query - window + 1 allows window - 1 positions. With a window of 4, position 5
    attended to the positions 3, 4 and 5 only, and the token that it needed was at position 2. So the model
    knew the pair of the next token, but could not tell which of the two follows: its loss was
    {bug[last]:.2f}, near log 2 = 0.69. It was a little lower because the other tokens contain some
    information about the missing one. With your repair it is {right[last]:.3f}. A window that is one too long
    is harder to notice, because it improves the loss: then the model is wrong only when a KV cache keeps as
    many keys as the window has. The search for leaks passes, because no token attends to a later one. The
    test that finds the bug counts the keys of a query.
    """,
    repair="""
-    return (key <= query) & (key > query - window + 1)
+    return (key <= query) & (key > query - window)
""",
)
