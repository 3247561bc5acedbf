"""The state of decoding with a Transformer on the host, in fewer and larger NumPy operations.

FastState has the methods of CachedState, which is the reference implementation, and the same results up to
rounding. Most of the time of a step is that of its matrix products. These changes make the rest smaller:

1. Queries, keys and values are computed by one product, whose weight is joined once for each batch.
2. The KV cache is one array for all layers, with room for later positions. A step writes one position, and
   a new order of the rows moves only the rows that change.
3. The hypotheses of a sentence attend to its memory as the queries of one product. So the keys and values of
   the memory are not repeated for each hypothesis.
4. The logits of all steps are written into the same array. The weight of a tied projection is copied once for
   each batch into the order in which the product reads it.
5. No step stores what only a backward pass or a figure needs, and shapes are not checked again in each layer.
"""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.ids import take_ids
from npformer.generation.fast_layers import FastLayer, Heads, LinearMap, Norm
from npformer.models.transformer import Transformer
from npformer.nn.attention import KVCache

CAPACITY = 16  # positions of a new KV cache; when they are used, it is copied to one of twice the size
LARGEST_LIVE_SHARE = 0.75  # the memory is copied when at most this share of its sentences is being translated


class LayersCache:
    """The keys and values of all layers in one array, with room for later positions.

    Args:
        n_layers: The number of layers.
        n_rows: The number R of rows.
        width: The width W of a key and a value of all heads together, side by side.
        dtype: The dtype.
    """

    def __init__(self, n_layers: int, n_rows: int, width: int, dtype: Any) -> None:
        self.array = np.empty((n_layers, n_rows, CAPACITY, width), dtype)

    def write(self, layer: int, position: int, key_value: Array) -> Array:
        """Write the keys and values of a position, and return those of all positions so far, (R, T, W).

        Args:
            layer: The number of the layer.
            position: The position, from 0.
            key_value: The key and the value of each row, side by side, of shape (R, W).
        """
        if position == self.array.shape[2]:
            self.array = np.concatenate([self.array, np.empty_like(self.array)], 2)
        self.array[layer, :, position] = key_value
        return self.array[layer, :, : position + 1]

    def select(self, rows: Array, length: int) -> None:
        """Replace row i by the old row rows[i], for the first `length` positions."""
        n_rows = len(rows)
        if n_rows > self.array.shape[1]:
            shape = (self.array.shape[0], n_rows, *self.array.shape[2:])
            old, self.array = self.array, np.empty(shape, self.array.dtype)
            self.array[:, :, :length] = old[:, rows, :length]
            return
        changed = np.flatnonzero(rows != np.arange(n_rows))
        # the right side is a copy, so no row is overwritten before it is read
        self.array[:, changed, :length] = self.array[:, rows[changed], :length]
        self.array = self.array[:, :n_rows]


class Memory:
    """The encoded sentences, and the place of each hypothesis among the queries of its sentence.

    Args:
        model: The model.
        source: Token ids (B, S), padded.
    """

    def __init__(self, model: Transformer, source: Array) -> None:
        memory_kv, self.allowed = model.encode(source)  # (B, 1, 1, S)
        # (B, H, S, K) and (B, H, S, L): products are faster if the rows of a head lie next to each other
        self.layers = [KVCache(*map(np.ascontiguousarray, kv)) for kv in memory_kv]
        self.sentences = np.arange(len(source))  # (B,) the sentences that are stored, ascending
        self.place(self.sentences)

    def place(self, sentence: Array) -> None:
        """Give each hypothesis a place (row of the memory, query), for `sentence` (R,), their sentences."""
        live = np.unique(sentence)
        if len(live) <= LARGEST_LIVE_SHARE * len(self.sentences):
            kept = np.searchsorted(self.sentences, live)
            self.layers = [KVCache(kv.k[kept], kv.v[kept]) for kv in self.layers]
            self.allowed, self.sentences = self.allowed[kept], live
        row = np.searchsorted(self.sentences, sentence)  # (R,)
        order = row.argsort(kind="stable")
        query = np.empty_like(row)  # (R,) the hypotheses of a sentence are counted from 0
        query[order] = np.arange(len(row)) - np.searchsorted(row[order], row[order])
        self.n_queries = int(query.max(initial=0)) + 1  # Q, of the sentence with the most hypotheses
        index = row * self.n_queries + query
        n_places = len(self.sentences) * self.n_queries
        self.index = None if np.array_equal(index, np.arange(n_places)) else index  # (R,)
        self.mask = None if self.allowed.all() else self.allowed

    def attend(self, layer: int, q: Array, heads: Heads) -> Array:
        """Return the attention of each hypothesis to its sentence, z of shape (R, H·L).

        Args:
            layer: The number of the layer.
            q: The queries, of shape (R, H·K).
            heads: The heads of the layer.
        """
        kv, n_sentences = self.layers[layer], len(self.sentences)
        if self.index is not None:  # some sentences have fewer hypotheses: their other queries are 0
            queries = np.zeros((n_sentences * self.n_queries, q.shape[1]), q.dtype)
            queries[self.index] = q
            q = queries
        z = heads.attend(q.reshape(n_sentences, self.n_queries, -1), kv.k, kv.v, self.mask)  # (B, Q, H·L)
        z = z.reshape(-1, z.shape[-1])
        return z if self.index is None else z[self.index]


class FastState:
    """The state of decoding with a Transformer for which `suits` returns True.

    Args:
        model: The model.
        source: Token ids (B, S), padded.

    Attributes:
        sentence: (R,) for each row, the index of the source sentence that it translates.
    """

    def __init__(self, model: Transformer, source: Array) -> None:
        self.model = model
        self.memory = Memory(model, source)
        self.layers = [FastLayer(layer) for layer in model.decoder.layers]
        self.norm = None if model.decoder.norm is None else Norm.of(model.decoder.norm)
        self.sentence = np.arange(len(source))  # (R,)
        self.length = 0  # T
        width = self.layers[0].query_key_value.weight.shape[1] - self.layers[0].self_heads.width
        self.kv_cache = LayersCache(len(self.layers), len(source), width, model.values.dtype)
        output: Any = model.output
        self.output = LinearMap.joined([output])
        if output.weight is model.target.tokens.weight:  # a tied projection
            self.output = LinearMap(np.ascontiguousarray(output.weight.value.T), self.output.bias)
        self._logits = np.empty((0, model.config.target_vocab), model.values.dtype)

    def decode_step(self, tokens: Array) -> Array:
        """Append one token to each hypothesis and score the next. Shapes: tokens (R,) -> logits (R, V).

        The next step overwrites the logits.
        """
        config, model = self.model.config, self.model
        ids = take_ids(
            tokens[:, None], config.target_vocab, config.max_length, "target", model.values, start=self.length
        )
        x = model.target.forward(ids, start=self.length)[0][:, 0]  # (R, D)
        for number, layer in enumerate(self.layers):

            def attend(h: Array, number: int = number, layer: FastLayer = layer) -> Array:
                return self._attend(number, layer, h)

            def attend_memory(h: Array, number: int = number, layer: FastLayer = layer) -> Array:
                heads = layer.cross_heads
                return heads.output(self.memory.attend(number, layer.query(h), heads))

            x = layer.decode_step(x, attend, attend_memory)
        self.length += 1
        return self._project(x if self.norm is None else self.norm(x))

    def select(self, rows: Array) -> None:
        """Replace row i by the old row rows[i]. Rows may be dropped, reordered or repeated."""
        self.kv_cache.select(rows, self.length)
        sentence = self.sentence[rows]
        if not np.array_equal(sentence, self.sentence):
            self.memory.place(sentence)
        self.sentence = sentence

    def _attend(self, number: int, layer: FastLayer, x: Array) -> Array:
        """Return the self-attention of the next position. Shapes: x (R, D) -> (R, D)."""
        heads = layer.self_heads
        y = layer.project(x, self.length)  # (R, H·K + W)
        kv = self.kv_cache.write(number, self.length, y[:, heads.width :])  # (R, T, W)
        k, v = heads.split(kv[..., : heads.width]), heads.split(kv[..., heads.width :])
        return heads.output(heads.attend(y[:, None, : heads.width], k, v)[:, 0])

    def _project(self, x: Array) -> Array:
        """Return the logits, in the same memory at each step. Shapes: x (R, D) -> (R, V).

        A new array of this size at each step would cost the system as much time as a tenth of the step.
        """
        if len(self._logits) < len(x):
            self._logits = np.empty((len(x), self._logits.shape[1]), x.dtype)
        logits = np.matmul(x, self.output.weight, out=self._logits[: len(x)])
        if self.output.bias is not None:
            logits += self.output.bias
        return logits
