"""Chapters 10 and 11: the layers of encoder and decoder, and the decoder's input."""

from typing import Any

import numpy as np

from npformer.functional.masks import causal_mask
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import layer_trial
from npformer.models.transformer import DecoderLayer, Encoder, EncoderLayer, TransformerConfig
from npformer.models.transformer.model import shifted_right
from npformer.models.transformer.stacks import Decoder

SIZES: dict[str, Any] = {"source_vocab": 9, "target_vocab": 9, "d_model": 6, "d_ff": 7, "n_heads": 2}
DROPPING = {"train": True, "rng": 5}
CAUSAL = causal_mask(4, np.zeros(1))


def _layer(kind: Any, norm: Any, n_layers: int = 1) -> Any:
    config = TransformerConfig(**SIZES, norm=norm, final_norm=norm == "pre", n_layers=n_layers, dropout=0.2)
    return lambda rng: kind(config, rng=rng, dtype=np.float64)


def _shifted(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    target = np.array([[5, 6, 7, 3], [8, 3, 0, 0]])
    return {
        "target_in": own.shifted_right(target, 2),
        "target_in of one token": own.shifted_right(target[:, :1], 2),
    }


STACKS = exercises(
    r'''
=== 10 encoder-layer-backward: the backward pass of a whole encoder layer

def encoder_layer_backward(layer, dy, cache):
    """Compute the backward pass of an encoder layer.

    The forward pass has two sublayers, and "add & norm" after each of them:
        h = layer.self_attention(x)
        x = layer.norm1(x, h)         # norm(x + dropout(h))
        h = layer.feed_forward(x)
        y = layer.norm2(x, h)
    Each part has a method backward(d_output, cache), which adds the gradients of its parameters.
    layer.norm1.backward and layer.norm2.backward return (dx, dh), the gradients of both inputs.
    dy     the gradient of the output, of shape (B, S, D)
    cache  .self_attention, .norm1, .feed_forward and .norm2, the caches of the parts
    Returns dx (B, S, D).
    """
    # solution
    dx, dh = layer.norm2.backward(dy, cache.norm2)
    dx = dx + layer.feed_forward.backward(dh, cache.feed_forward)
    dx, dh = layer.norm1.backward(dx, cache.norm1)
    return dx + layer.self_attention.backward(dh, cache.self_attention)
--- Read the forward pass from the last line to the first. Each line gives one call of a backward method.
--- The x between the sublayers is used twice: by the feed-forward network and by layer.norm2. So its
    gradient is a sum of two.
--- dx, dh = layer.norm2.backward(dy, cache.norm2), and then dx + layer.feed_forward.backward(dh,
    cache.feed_forward). The same again with layer.norm1 and the self-attention.

=== 10 encoder-backward: the backward pass of a stack of encoder layers

def encoder_backward(layer, dy, cache):
    """Compute the backward pass of the encoder: N layers in sequence, then a layer normalization or none.

    layer  .layers, a list of N layers; .norm, a layer normalization or None. Each of them has a method
           backward(dy, cache), which returns dx.
    dy     the gradient of the output, of shape (B, S, D)
    cache  .layers, the caches of the layers in the order of the layers; .norm, the cache of the norm
    Returns dx (B, S, D).
    """
    # solution
    dx = dy
    if layer.norm is not None:
        dx = layer.norm.backward(dx, cache.norm)
    for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True):
        dx = one.backward(dx, c)
    return dx
--- The backward pass has the opposite order: first the norm if there is one, then the last layer.
--- Use zip for the layers and their caches, both in reversed order: layer.layers[::-1].
--- The dx that a layer returns is the dy of the layer before it.

=== 11 decoder-layer-backward: the backward pass of a decoder layer

def decoder_layer_backward(layer, dy, cache):
    """Compute the backward pass of a decoder layer.

    The forward pass has three sublayers, and "add & norm" after each of them. Cross-attention also reads the
    memory, which is the output of the encoder:
        h = layer.self_attention(x)
        x = layer.norm1(x, h)         # norm(x + dropout(h))
        h = layer.cross(x, memory)
        x = layer.norm2(x, h)
        h = layer.feed_forward(x)
        y = layer.norm3(x, h)
    Each part has a method backward(d_output, cache), which adds the gradients of its parameters.
    layer.norm1.backward, layer.norm2.backward and layer.norm3.backward return (dx, dh), the gradients of both
    inputs, and layer.cross.backward returns the gradients (dx, dmemory) of its inputs.
    dy     the gradient of the output, of shape (B, T, D)
    cache  .self_attention, .norm1, .cross, .norm2, .feed_forward and .norm3, the caches of the parts
    Returns (dx, dmemory), of shapes (B, T, D) and (B, S, D).
    """
    # solution
    dx, dh = layer.norm3.backward(dy, cache.norm3)
    dx = dx + layer.feed_forward.backward(dh, cache.feed_forward)
    dx, dh = layer.norm2.backward(dx, cache.norm2)
    dh, dmemory = layer.cross.backward(dh, cache.cross)
    dx = dx + dh
    dx, dh = layer.norm1.backward(dx, cache.norm1)
    dx = dx + layer.self_attention.backward(dh, cache.self_attention)
    return dx, dmemory
--- The steps are those of the encoder layer, with one sublayer more. Begin with the last one.
--- The x before each sublayer is used twice, so its gradient is a sum of two: the dx of the norm, and what
    the backward method of the sublayer returns.
--- The second sublayer returns two gradients: dh, dmemory = layer.cross.backward(dh, cache.cross). Keep
    dmemory until the end.

=== 11 decoder-backward: the backward pass of a stack of decoder layers

def decoder_backward(layer, dy, cache):
    """Compute the backward pass of the decoder: N layers in sequence, then a layer normalization or none.

    All layers read the same memory.
    layer  .layers, a list of N layers, whose method backward(dy, cache) returns (dx, dmemory); .norm, a layer
           normalization or None, whose method backward(dy, cache) returns dx
    dy     the gradient of the output, of shape (B, T, D)
    cache  .layers, the caches of the layers in the order of the layers; .norm, the cache of the norm
    Returns (dx, dmemory), of shapes (B, T, D) and (B, S, D).
    """
    # solution
    dx, dmemory = dy, 0
    if layer.norm is not None:
        dx = layer.norm.backward(dx, cache.norm)
    for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True):
        dx, dmemory_here = one.backward(dx, c)
        dmemory = dmemory + dmemory_here
    return dx, dmemory
--- Go from the last layer to the first, as in the encoder.
--- Every layer reads the memory, so every layer returns a gradient of it. How are they combined?
--- dmemory is the sum of the gradients that the layers return.

=== 11 shift-right: the decoder's input: the target shifted right
import numpy as np


def shifted_right(target, start_id):
    """Return the decoder's input: the start symbol, then the target without its last token.

    target  integers (B, T)
    Returns integers (B, T).
    """
    # solution
    start = np.full((len(target), 1), start_id, target.dtype)
    return np.concatenate([start, target[:, :-1]], 1)
--- At position t the decoder must read the target tokens before t, and not token t itself.
--- The result is a column of start symbols, followed by all columns of the target except the last.
--- np.concatenate([start, target[:, :-1]], 1), where start has the shape (B, 1) and the dtype of the target.
''',
    {
        "encoder-layer-backward": Task(
            EncoderLayer.backward,
            layer_trial("", _layer(EncoderLayer, "post"), "encoder_layer_backward", (2, 3, 6), **DROPPING),
            layer_trial(
                "one sentence",
                _layer(EncoderLayer, "post"),
                "encoder_layer_backward",
                (1, 4, 6),
                **DROPPING,
            ),
        ),
        "encoder-backward": Task(
            Encoder.backward,
            layer_trial("", _layer(Encoder, "post", 3), "encoder_backward", (2, 3, 6)),
            layer_trial("with a final norm", _layer(Encoder, "pre", 2), "encoder_backward", (2, 3, 6)),
        ),
        "decoder-layer-backward": Task(
            DecoderLayer.backward,
            layer_trial(
                "",
                _layer(DecoderLayer, "post"),
                "decoder_layer_backward",
                (2, 4, 6),
                (2, 3, 6),
                mask=CAUSAL,
                **DROPPING,
            ),
            layer_trial(
                "one sentence",
                _layer(DecoderLayer, "post"),
                "decoder_layer_backward",
                (1, 4, 6),
                (1, 5, 6),
                mask=CAUSAL,
                **DROPPING,
            ),
        ),
        "decoder-backward": Task(
            Decoder.backward,
            layer_trial("", _layer(Decoder, "pre", 3), "decoder_backward", (2, 4, 6), (2, 3, 6), mask=CAUSAL),
            layer_trial(
                "no norm",
                _layer(Decoder, "post", 2),
                "decoder_backward",
                (2, 4, 6),
                (2, 3, 6),
                mask=CAUSAL,
            ),
        ),
        "shift-right": Task(shifted_right, Values("", _shifted, hidden=hidden_inputs.shifted)),
    },
)
