"""Bug: word by word, the one query counts as the first word, and every distance is wrong."""

import numpy as np

from npformer.functional import relative_attention
from npformer.layers import Embedding, Linear
from npformer.masks import causal_mask
from npformer.module import Module
from npformer.zoo.ground import adapt, learn_words
from npformer.zoo.specimen import Run, Specimen
from npformer.zoo.trials import equal, float32_stays, gradients, normal

STEPS, LR, LENGTH, N_WORDS, PERIOD = 200, 0.01, 9, 12, 3


class Model(Module):
    """Words, the file's attention round a residual, logits."""

    def __init__(self, own, rng):
        self.words = Embedding(N_WORDS, 16, rng=rng, dtype=np.float64)
        self.attention = own.RelativeAttention(16, rng=rng)
        self.output = Linear(16, N_WORDS, rng=rng, dtype=np.float64)

    def forward(self, ids):
        """Returns (logits, cache)."""
        x, words = self.words.forward(ids)
        h, attended = self.attention.forward(x)
        y, output = self.output.forward(x + h)
        return y, (words, attended, output)

    def backward(self, dy, cache):
        """Returns nothing."""
        words, attended, output = cache
        dx = self.output.backward(dy, output)
        self.words.backward(dx + self.attention.backward(dx, attended), words)

    def step(self, ids, past):
        """The logits after one more word. Shapes: ids (B, 1). Returns (logits (B, 1, V), past)."""
        x, _ = self.words.forward(ids)
        h, past = self.attention.step(x, past)
        return self.output.forward(x + h)[0], past


def songs(rng, batch: int):
    """Sentences in which the same few words come again and again. Shapes: -> (B, LENGTH)."""
    first = rng.integers(0, N_WORDS, (batch, PERIOD))
    return np.tile(first, LENGTH // PERIOD)


def share_right(model, ids, word_by_word: bool) -> float:
    """Given a sentence's first words, the per cent of the others that the model writes rightly."""
    written, past = ids[:, :PERIOD], None
    for t in range(PERIOD - 1):
        _, past = model.step(ids[:, t : t + 1], past)
    while written.shape[1] < LENGTH:
        if word_by_word:
            logits, past = model.step(written[:, -1:], past)
        else:
            logits, _ = model.forward(written)
        written = np.concatenate([written, logits[:, -1:].argmax(-1)], 1)
    return 100 * float((written == ids)[:, PERIOD:].mean())


def train(own) -> Run:
    """Learn to go on with a sentence; then write, from whole sentences and word by word."""
    rng = np.random.default_rng(3)
    model = Model(own, rng)

    def step(_):
        ids = songs(rng, 16)
        return learn_words(model, ids[:, :-1], ids[:, 1:])

    losses = adapt(model, step, steps=STEPS, lr=LR)
    ids = songs(rng, 64)
    facts = {"whole": share_right(model, ids, False), "right": share_right(model, ids, True)}
    return Run(losses, facts)


def beside_the_package(own):
    """The forward pass on a whole sentence, and the package's relative attention."""
    layer, x = own.RelativeAttention(6, 2), normal(2, 5, 6)
    q, k, v = np.split(layer.query_key_value.forward(x)[0], 3, -1)
    right, _ = relative_attention(q, k, v, layer.positions.value, mask=causal_mask(5, x))
    return {"y": (layer.forward(x)[0], right)}


def word_by_word(own):
    """Every output of forward, and what step returns for the same word."""
    layer, x, past = own.RelativeAttention(6, 2), normal(2, 6, 6), None
    whole, pairs = layer.forward(x)[0], {}
    for t in range(6):
        y, past = layer.step(x[:, t : t + 1], past)
        pairs[f"y of word {t}"] = (y, whole[:, t : t + 1])
    return pairs


def last_queries(own):
    """Queries that are fewer than the keys stand last."""
    whole = own.distances(6, 6, 2)
    return {f"distances({n}, 6, 2)": (own.distances(n, 6, 2), whole[-n:]) for n in (6, 2, 1)}


def nearest(own):
    """The vector of a word to itself alone has a say: the last word's key wins."""
    layer, x = own.RelativeAttention(6, 2), normal(1, 4, 6)
    layer.positions.value[2] += 1e3 * layer.query_key_value.forward(x)[0][0, -1, :6]
    _, past = layer.step(x[:, :1])
    for t in (1, 2):
        _, past = layer.step(x[:, t : t + 1], past)
    y, (_, v) = layer.step(x[:, 3:], past)
    return {"y of a word that looks at itself": (y, v[:, -1:])}


def low(own):
    """Everything that comes of float32."""
    layer, x = own.RelativeAttention(6, 2, dtype=np.float32), normal(2, 4, 6).astype(np.float32)
    y, cache = layer.forward(x)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache), "y of step": layer.step(x[:, :1])[0]}


RELATIVE = Specimen(
    number=23,
    name="relative",
    seen="it learns as it should, and writes nonsense word by word",
    symptom="""
    Sentences repeat their first three words, and the model learns it: its loss is {bug[last]:.2f} after
    {bug[steps]} steps, as without the bug. Asked to go on with a sentence, it writes {bug[whole]:.0f}% of the
    words rightly when forward reads the whole sentence each time. With step, which keeps the keys and values
    of the words before, it is {bug[right]:.0f}%, and should be the same.
    """,
    train=train,
    trials=(
        gradients("gradient check of the layer", lambda own: (own.RelativeAttention(6, 2), normal(2, 5, 6))),
        equal("forward on a whole sentence beside the package's", beside_the_package),
        equal("word by word gives what the whole sentence gives", word_by_word),
        equal("fewer queries than keys are the last of them", last_queries),
        equal("a word that looks at itself finds itself", nearest),
        float32_stays("float32 stays float32", low),
    ),
    hints=(
        "Training is right, and so is forward. What is different when step calls attend?",
        "Call layer.step on x[:, :1], x[:, 1:2] and so on, and compare each y with layer.forward(x)[0]. "
        "Which is the first word that differs?",
        "Print distances(4, 4, 2), and then distances(1, 4, 2). In step the one query is the last word.",
    ),
    story="""
    distances let the queries stand at 0, 1 and so on. In forward they do. In step there is one query, the
    newest word, and it was taken for the first: every key before it seemed to stand at its right, at
    distances that causal training never uses. {bug[right]:.0f}% of the words were right, where yours has
    {right[right]:.0f}%. No loss and no gradient shows it, since neither comes near step. Absolute positions
    have the same trap (which row of the table does the next word get?), and a cache that drops old words
    has it again. The only test that finds it compares decoding word by word with the whole sentence.
    """,
    repair="""
-    away = np.arange(n_keys) - np.arange(n_queries)[:, None]  # (T, S)
+    away = np.arange(n_keys) - np.arange(n_keys - n_queries, n_keys)[:, None]  # (T, S)
""",
)
