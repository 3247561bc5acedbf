"""Chapters 10 and 11: the layers of encoder and decoder, and the decoder's input."""

from typing import Any

import numpy as np

from npformer.functional.masks import causal_mask
from npformer.learn.exercises.exercise import Exercise, Functions, Values
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


STACKS = (
    Exercise(
        "encoder-layer-backward",
        10,
        "the backward pass of a whole encoder layer",
        '''

def encoder_layer_backward(layer, dy, cache):
    """Compute the backward pass of an encoder layer.

    The forward pass has two sublayers, each with a residual connection:
        x = layer.self_residual.forward(x, layer.self_attention.forward)
        x = layer.feed_forward_residual.forward(x, layer.feed_forward.forward)
    Each residual connection has a method backward(dy, cache, sublayer_backward), which returns dx. Its last
    argument is the backward method of the sublayer.
    dy     the gradient of the output, of shape (B, S, D)
    cache  .self_residual and .feed_forward_residual, the caches of the residual connections
    Returns dx (B, S, D).
    """
''',
        (
            layer_trial(
                "norm post", _layer(EncoderLayer, "post"), "encoder_layer_backward", (2, 3, 6), **DROPPING
            ),
            layer_trial(
                "norm pre", _layer(EncoderLayer, "pre"), "encoder_layer_backward", (2, 3, 6), **DROPPING
            ),
        ),
        (
            "Read the forward pass from the last line to the first. The backward pass consists of two calls.",
            "The arguments of layer.feed_forward_residual.backward are dy, cache.feed_forward_residual, and "
            "layer.feed_forward.backward.",
            "First call it for the feed-forward network with dy. Then call it for self-attention with the dx "
            "that the first call returned.",
        ),
        {"encoder_layer_backward": EncoderLayer.backward},
    ),
    Exercise(
        "encoder-backward",
        10,
        "the backward pass of a stack of encoder layers",
        '''

def encoder_backward(layer, dy, cache):
    """Compute the backward pass of the encoder: N layers in sequence, then a layer normalization or none.

    layer  .layers, a list of N layers; .norm, a layer normalization or None. Each of them has a method
           backward(dy, cache), which returns dx.
    dy     the gradient of the output, of shape (B, S, D)
    cache  .layers, the caches of the layers in the order of the layers; .norm, the cache of the norm
    Returns dx (B, S, D).
    """
''',
        (
            layer_trial("", _layer(Encoder, "post", 3), "encoder_backward", (2, 3, 6)),
            layer_trial("with a final norm", _layer(Encoder, "pre", 2), "encoder_backward", (2, 3, 6)),
        ),
        (
            "The backward pass has the opposite order: first the norm if there is one, then the last layer.",
            "Use zip for the layers and their caches, both in reversed order: layer.layers[::-1].",
            "The dx that a layer returns is the dy of the layer before it.",
        ),
        {"encoder_backward": Encoder.backward},
    ),
    Exercise(
        "decoder-layer-backward",
        11,
        "the backward pass of a decoder layer",
        '''

def decoder_layer_backward(layer, dy, cache):
    """Compute the backward pass of a decoder layer.

    The forward pass has three sublayers in this order: layer.self_attention, layer.cross (cross-attention,
    which also reads the memory, the encoder's output) and layer.feed_forward. Their residual connections are
    layer.self_residual, layer.cross_residual and layer.feed_forward_residual.
    Each residual connection has a method backward(dy, cache, sublayer_backward), which returns dx. Only
    layer.cross_residual.backward returns (dx, dmemory), because cross-attention has two inputs.
    dy     the gradient of the output, of shape (B, T, D)
    cache  .self_residual, .cross_residual and .feed_forward_residual
    Returns (dx, dmemory), of shapes (B, T, D) and (B, S, D).
    """
''',
        (
            layer_trial(
                "norm post",
                _layer(DecoderLayer, "post"),
                "decoder_layer_backward",
                (2, 4, 6),
                (2, 3, 6),
                mask=CAUSAL,
            ),
            layer_trial(
                "norm pre",
                _layer(DecoderLayer, "pre"),
                "decoder_layer_backward",
                (2, 4, 6),
                (2, 3, 6),
                mask=CAUSAL,
            ),
        ),
        (
            "There are three calls as in the encoder layer. Begin with the last sublayer.",
            "The second call returns dx and dmemory. Keep dmemory until the end.",
            "The order is feed-forward network, cross-attention, self-attention. The dx of each call is the "
            "dy of the next call.",
        ),
        {"decoder_layer_backward": DecoderLayer.backward},
    ),
    Exercise(
        "decoder-backward",
        11,
        "the backward pass of a stack of decoder layers",
        '''

def decoder_backward(layer, dy, cache):
    """Compute the backward pass of the decoder: N layers in sequence, then a layer normalization or none.

    All layers read the same memory.
    layer  .layers, a list of N layers, whose method backward(dy, cache) returns (dx, dmemory); .norm, a layer
           normalization or None, whose method backward(dy, cache) returns dx
    dy     the gradient of the output, of shape (B, T, D)
    cache  .layers, the caches of the layers in the order of the layers; .norm, the cache of the norm
    Returns (dx, dmemory), of shapes (B, T, D) and (B, S, D).
    """
''',
        (
            layer_trial("", _layer(Decoder, "pre", 3), "decoder_backward", (2, 4, 6), (2, 3, 6), mask=CAUSAL),
            layer_trial(
                "no norm", _layer(Decoder, "post", 2), "decoder_backward", (2, 4, 6), (2, 3, 6), mask=CAUSAL
            ),
        ),
        (
            "Go from the last layer to the first, as in the encoder.",
            "Every layer reads the memory, so every layer returns a gradient of it. How are they combined?",
            "dmemory is the sum of the gradients that the layers return.",
        ),
        {"decoder_backward": Decoder.backward},
    ),
    Exercise(
        "shift-right",
        11,
        "the decoder's input: the target shifted right",
        '''
import numpy as np


def shifted_right(target, start_id):
    """Return the decoder's input: the start symbol, then the target without its last token.

    target  integers (B, T)
    Returns integers (B, T).
    """
''',
        (Values("", _shifted, hidden=hidden_inputs.shifted),),
        (
            "At position t the decoder must read the target tokens before t, and not token t itself.",
            "The result is a column of start symbols, followed by all columns of the target except the last.",
            "np.concatenate([start, target[:, :-1]], 1), where start has the shape (B, 1) and the dtype of "
            "the target.",
        ),
        {"shifted_right": shifted_right},
    ),
)
