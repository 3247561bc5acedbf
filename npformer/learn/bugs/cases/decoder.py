"""Bug: cross-attention gets the source as its queries and the target as its keys and values."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import backwards, learn, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, no_leak, random_parameters

LENGTH, START = 6, 0
SOURCE, TARGET = np.array([[3, 1, 4, 1]]), np.array([[0, 5, 2, 6]])


class OfOnePair:
    """A translator that takes (source, target_in) as one argument, as learn_tokens passes it."""

    def __init__(self, model: Any) -> None:
        self.model, self.backward = model, model.backward

    def forward(self, pair: Any) -> Any:
        """Return (logits, cache) for the pair (source, target_in)."""
        return self.model.forward(*pair)


def shifted(target: Array) -> Any:
    """Return the start symbol followed by the target without its last token."""
    return np.concatenate([np.full((len(target), 1), START), target[:, :-1]], 1)


def train(own: Names) -> Run:
    """Train on translating a sentence into its reverse; then decode translations token by token."""
    rng = np.random.default_rng(3)
    model = own.Translator(12, 16, LENGTH, rng=rng)

    def step(_: int) -> float:
        source, target = backwards(rng, 16, LENGTH, lowest=1)
        return learn_tokens(OfOnePair(model), (source, shifted(target)), target)

    losses = learn(model, step, steps=250, lr=0.007)
    source, target = backwards(rng, 64, LENGTH, lowest=1)
    written = np.zeros((64, LENGTH), np.int64)
    for t in range(LENGTH):
        written[:, t] = model.forward(source, shifted(written))[0][:, t].argmax(-1)
    return Run(losses, {"right": 100 * float((written == target).mean())})


def model_of(own: Names) -> Any:
    """Return a translator whose parameters are not the initial ones."""
    return random_parameters(own.Translator(12, 8, 8))


def shape(own: Names, source: Array = SOURCE) -> Any:
    """Return the shape of the logits for a source, and the right one."""
    return list(model_of(own).forward(source, TARGET)[0].shape), [1, 4, 12]


def other_lengths(own: Names) -> Any:
    """Check the logits for a source that is longer than the target, and for one that is shorter."""
    return {
        say("the shape of the logits for {n} source tokens", n=n): shape(own, np.arange(1, n + 1)[None])
        for n in (7, 2)
    }


def every_source_word(own: Names) -> dict[str, Any]:
    """Check that every source token changes every logit: there is no mask in cross-attention here."""
    model, moved = model_of(own), np.zeros((4, 4), bool)
    before, _ = model.forward(SOURCE, TARGET)
    for s in range(4):
        source = SOURCE.copy()
        source[0, s] = 9
        moved[s] = (model.forward(source, TARGET)[0] != before).any(-1)[0]
    return {say("which logits depend on which source tokens"): (moved, np.ones((4, 4), bool))}


def one_word(own: Names) -> dict[str, Any]:
    """Check the shape of the cross-attention weights for a target of one token."""
    weights = model_of(own).forward(np.array([[3, 1, 4]]), np.array([[0]]))[1].cross.attention.weights
    return {say("the shape of the cross-attention weights"): (list(weights.shape), [1, 2, 1, 3])}


def from_target(own: Names) -> Any:
    """Return the logits as a function of the target, and a target."""
    model = model_of(own)
    return lambda target: model.forward(SOURCE, target), TARGET


BUG = Specimen(
    summary="the training loss is low, but the translations are wrong",
    symptom="""
    A small translator learns to "translate" a sentence of six tokens into the same sentence written
    backwards. In {bug[steps]} steps its training loss decreases from {bug[first]:.2f} to {bug[last]:.2f}
    ({right[last]:.2f} without the bug). Then it generates translations token by token. Only {bug[right]:.0f}
    % of these tokens are correct. Without the bug it is {right[right]:.0f} %.
    """,
    train=train,
    trials=(
        gradients("gradient check of the whole model", lambda own: (model_of(own), SOURCE, TARGET)),
        equal("the shape of the logits", lambda own: {say("the shape of the logits"): shape(own)}),
        no_leak("no output depends on a later token of the target", from_target),
        equal("every output depends on every token of the source", every_source_word),
        equal("source and target of different lengths", other_lengths),
        equal("the shape of the cross-attention weights", one_word),
        float32_stays(lambda own: (own.Translator(12, 8, 8, dtype=np.float32), SOURCE, TARGET), "logits"),
    ),
    english_hints=(
        "In training, the decoder reads the tokens of the correct translation. Can a position attend to the "
        "token that it has to predict?",
        "Run assert_no_leak(lambda target_in: model.forward(source, target_in), target_in). Then change one "
        "token of the source. Do all outputs change?",
        "Use a source that is one token longer than the target, and read the error message.",
    ),
    story="""
    Two arguments of cross-attention were exchanged: its queries came from the source, and its keys and values
    from the target. Source and target had the same length, so all shapes were correct, and so were the
    gradients. But now every position attended to the complete target, later tokens included. In training it
    learned to copy the token that it had to predict. During generation this token does not exist yet. Only
    {bug[right]:.0f} % of the generated tokens were correct. With your repair it is {right[right]:.0f} %. If
    source and target have different lengths, the bug raises an error. But many projects pad all sentences to
    one length, and then there is no error. A search for leaks finds the bug immediately.
    """,
    repair="""
-        h, cross = self.cross.forward(memory, x)
+        h, cross = self.cross.forward(x, memory)

-        dmemory, dx_here = self.cross.backward(dx, cache.cross)
+        dx_here, dmemory = self.cross.backward(dx, cache.cross)
""",
)
