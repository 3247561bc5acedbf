"""Lessons 10 and 11: the layers of encoder and decoder, and the decoder's input."""

from typing import Any

import numpy as np

from npformer.functional.masks import causal_mask
from npformer.learn.exercises.exercise import Exercise, Functions, Values
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
        "target_in of one word": own.shifted_right(target[:, :1], 2),
    }


STACKS = (
    Exercise(
        "encoder-layer-backward",
        10,
        "the backward pass of a whole encoder layer",
        '''

def encoder_layer_backward(layer, dy, cache):
    """The backward pass of an encoder layer: self-attention and a feed-forward network, each in a residual.

    Forward it ran, each residual round its sublayer:
        x = layer.self_residual.forward(x, layer.self_attention.forward)
        x = layer.feed_forward_residual.forward(x, layer.feed_forward.forward)
    Backward each residual has  backward(dy, cache, sublayer_backward) -> dx,  and takes the backward method
    of its sublayer as an argument.
    cache  .self_residual, .feed_forward_residual
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
            "Read the forward pass from its last line to its first: two calls.",
            "layer.feed_forward_residual.backward takes dy, its cache, and layer.feed_forward.backward.",
            "First the feed-forward network with dy, then self-attention with the dx that came out.",
        ),
        {"encoder_layer_backward": EncoderLayer.backward},
    ),
    Exercise(
        "encoder-backward",
        10,
        "the backward pass of a stack of encoder layers",
        '''

def encoder_backward(layer, dy, cache):
    """The backward pass of the encoder: N layers one after the other, then perhaps a norm.

    layer  .layers, a list; .norm, a layer norm or None. Each has backward(dy, cache), which returns dx.
    cache  .layers, the layers' caches in their order; .norm
    Returns dx (B, S, D).
    """
''',
        (
            layer_trial("", _layer(Encoder, "post", 2), "encoder_backward", (2, 3, 6)),
            layer_trial("a norm on top", _layer(Encoder, "pre", 2), "encoder_backward", (2, 3, 6)),
        ),
        (
            "What ran last comes first: the norm, then the last layer.",
            "zip the layers and their caches, both from the end: list[::-1].",
            "Each layer's dx is the dy of the one below.",
        ),
        {"encoder_backward": Encoder.backward},
    ),
    Exercise(
        "decoder-layer-backward",
        11,
        "the backward pass of a decoder layer",
        '''

def decoder_layer_backward(layer, dy, cache):
    """The backward pass of a decoder layer: like the encoder's, with attention to the memory in between.

    Forward it ran self_attention, cross (which also reads the memory) and feed_forward, each in its residual
    (self_residual, cross_residual, feed_forward_residual).
    A residual's backward(dy, cache, sublayer_backward) returns dx; layer.cross_residual.backward returns
    (dx, dmemory), since layer.cross.backward does: queries come from the decoder, keys and values from the
    encoder's output.
    cache  .self_residual, .cross_residual, .feed_forward_residual
    Returns (dx, dmemory).
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
            "Three calls, each as in the encoder layer; the last sublayer first.",
            "The call in the middle has one gradient more: keep dmemory until the end.",
            "Feed-forward, cross, self-attention; the dx of each block is the dy of the next.",
        ),
        {"decoder_layer_backward": DecoderLayer.backward},
    ),
    Exercise(
        "decoder-backward",
        11,
        "a stack that reads one memory many times",
        '''

def decoder_backward(layer, dy, cache):
    """The backward pass of the decoder: N layers, each of which read the same memory, then perhaps a norm.

    layer  .layers, whose backward(dy, cache) returns (dx, dmemory); .norm, a layer norm or None
    cache  .layers, the layers' caches in their order; .norm
    Returns (dx, dmemory).
    """
''',
        (layer_trial("", _layer(Decoder, "pre", 2), "decoder_backward", (2, 4, 6), (2, 3, 6), mask=CAUSAL),),
        (
            "As in the encoder, from the last layer to the first.",
            "The memory reached every layer: what happens to its gradients?",
            "They add up, each layer's to the sum of those above.",
        ),
        {"decoder_backward": Decoder.backward},
    ),
    Exercise(
        "shift-right",
        11,
        "the decoder's input: one place later",
        '''
import numpy as np


def shifted_right(target, start_id):
    """The decoder's input: the start symbol, then the target without its last word.

    target  integers (B, T)
    Returns integers (B, T).
    """
''',
        (Values("", _shifted),),
        (
            "Position t must see the words before t, and never word t itself.",
            "A column of start symbols, then all columns of the target but the last.",
            "np.concatenate([start (B, 1), target[:, :-1]], 1), start with the target's dtype.",
        ),
        {"shifted_right": shifted_right},
    ),
)
