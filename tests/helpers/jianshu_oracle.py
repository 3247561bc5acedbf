"""The example of the Jianshu figures computed independently, by loops where they are clearer."""

from types import SimpleNamespace

import numpy as np

from npformer.learn.figures.jianshu_example import dataset
from npformer.nn import InputEmbedding
from npformer.nn.attention import MultiHeadAttention

WORDS = ["i", "am", "a", "student", "</S>", "<PAD>", "<PAD>"]
LATER = np.triu(np.ones((7, 7), bool), 1)  # the keys after each query


def story(
    sentence="i am a student", length=7, d_model=6, n_heads=1, seed=3, bias=0.0, relu=False, causal=False
):
    """Compute all arrays of one padded sentence in one small layer, in float64."""
    vocabulary, d = dataset().source.vocabulary, d_model
    words = sentence.split()
    ids = [vocabulary.id(word) for word in words] + [3]
    ids += [0] * (length - len(ids))
    rng = np.random.default_rng(seed)
    table = InputEmbedding(len(vocabulary), d, length, positions="none", zero_id=0, rng=rng)
    layer = MultiHeadAttention(d, n_heads, output=n_heads > 1, rng=rng)
    x = np.zeros((length, d))
    for t, index in enumerate(ids):
        if index != 0:
            x[t] = table.tokens.weight.value[index] * np.sqrt(d)
    state = {name: value.astype(np.float64) for name, value in layer.state_dict().items()}
    q, k, v = (x @ state[f"{name}.weight"] + bias for name in ("query", "key", "value"))
    if relu:
        q, k, v = (np.maximum(part, 0) for part in (q, k, v))
    s = SimpleNamespace(ids=np.array(ids), x=x, q=q, k=k, v=v, state=state, pad=np.array(ids) == 0)
    s.raw = np.array([[np.dot(a, b) for b in k] for a in q])
    s.scores = s.raw / np.sqrt(d)
    s.may = np.array(
        [[not s.pad[j] and not (causal and j > i) for j in range(length)] for i in range(length)]
    )
    s.weights = softmax(s.scores, s.may)
    s.weights[s.pad] = 0
    s.z = s.weights @ v
    return s


def softmax(scores, may=None):
    """Compute the softmax of each row, with 0 where a query may not attend."""
    may = np.ones(scores.shape, bool) if may is None else may
    e = np.where(may, np.exp(scores), 0.0)
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300)
