"""The example of the datawhale figures, computed with layers that are built and run here."""

import math

import numpy as np

from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.nn import InputEmbedding
from npformer.nn.attention import MultiHeadAttention

SEED = 2
WORDS = ["Thinking", "Machines"]


def embedding(ids, *, seed=SEED, positions="interleaved"):
    """Return (words, positions, sum), each (T, 4), of a layer like the one in the figures."""
    layer = InputEmbedding(
        len(ids), 4, len(ids), positions=positions, rng=np.random.default_rng(seed), dtype=np.float64
    )
    _, cache = layer.forward(np.array([ids]))
    x, _ = layer.tokens.forward(np.array([ids]))
    t = layer.positions.forward(len(ids))[0] if layer.positions else 0 * x[0]
    return x[0], t, cache.y[0]


def encoder(n_tokens, *, seed=SEED, n_heads=8):
    """Return (x, z, LayerNorm(x + z), r), each (T, 4), of an encoder layer with the sizes of the example."""
    x, rng = word_vectors(n_tokens, seed)
    config = TransformerConfig(
        d_model=4, n_heads=n_heads, d_head=3, d_ff=8, attention_bias=False, positions="none", dropout=0.0
    )
    layer = EncoderLayer(config, rng=rng, dtype=np.float64)
    z, _ = layer.self_attention.forward(x)
    normalised, _ = layer.norm1.forward(x, z)
    output, _ = layer.feed_forward.forward(normalised)
    r, _ = layer.norm2.forward(normalised, output)
    return x[0], z[0], normalised[0], r[0]


def run_attention(n_tokens=2, *, seed=SEED, n_heads=8, d_head=3):
    """Run the attention layer of the example and return (x, layer, z, cache), with x and z (T, 4)."""
    x, rng = word_vectors(n_tokens, seed)
    layer = MultiHeadAttention(4, n_heads, d_head=d_head, bias=False, rng=rng, dtype=np.float64)
    z, cache = layer.forward(x)
    return x[0], layer, z[0], cache


def word_vectors(n_tokens, seed):
    """Return the word vectors x (1, T, 4), and the generator that draws the next weights."""
    rng = np.random.default_rng(seed)
    layer = InputEmbedding(n_tokens, 4, n_tokens, positions="none", rng=rng, dtype=np.float64)
    x, _ = layer.forward(np.arange(n_tokens)[None])
    return x, rng


def head(head=0, **settings):
    """Compute the arrays of one head from the definition: softmax(x Wq (x Wk)ᵀ / √K) x Wv."""
    x, layer, _, _ = run_attention(**settings)
    part = slice(head * layer.d_head, (head + 1) * layer.d_head)
    wq, wk, wv = (linear.weight.value[:, part] for linear in (layer.query, layer.key, layer.value))
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = np.exp(q @ k.T / math.sqrt(layer.d_head))
    weights = scores / scores.sum(1, keepdims=True)
    z = weights @ v
    return {"x": x, "wq": wq, "wk": wk, "wv": wv, "q": q, "k": k, "v": v, "weights": weights, "z": z}
