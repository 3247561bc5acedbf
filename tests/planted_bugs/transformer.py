"""Bugs in encoder and decoder layers, in their stacks, and in the whole model."""

from planted_bugs.bug import Bug

_LAYERS = "transformer/layers.py"
_FEED_FORWARD = "dh = self.feed_forward.backward(dh, cache.feed_forward)"
_SELF = "dh = self.self_attention.backward(dh, cache.self_attention)"
_SELF_JOIN = "dx, dh = self.self_residual.join_backward(dx, cache.self_residual)"

ENCODER_LAYER = (
    Bug(
        "EncoderLayer: feed-forward's dx lost",
        "dropped branch",
        _LAYERS,
        _FEED_FORWARD,
        "self.feed_forward.backward(dh, cache.feed_forward)",
        nth=1,
        of=2,
    ),
    Bug(
        "EncoderLayer: attention's dx lost",
        "dropped branch",
        _LAYERS,
        _SELF,
        "self.self_attention.backward(dh, cache.self_attention)",
        nth=1,
        of=2,
    ),
    Bug(
        "EncoderLayer: the other residual's cache",
        "swapped",
        _LAYERS,
        _SELF_JOIN,
        "dx, dh = self.self_residual.join_backward(dx, cache.feed_forward_residual)",
        nth=1,
        of=2,
    ),
    Bug(
        "EncoderLayer: attention from dy, past the feed-forward",
        "wrong term",
        _LAYERS,
        _SELF_JOIN,
        "dx, dh = self.self_residual.join_backward(dy, cache.self_residual)",
        nth=1,
        of=2,
    ),
    Bug(
        "EncoderLayer: way round alone",
        "dropped branch",
        _LAYERS,
        "return self.self_residual.enter_backward(dx, dh, cache.self_residual)\n",
        "return dx\n",
    ),
)

_CROSS = "dh, dmemory = self.cross.backward(dh, cache.cross)"

DECODER_LAYER = (
    Bug(
        "DecoderLayer: dmemory lost",
        "dropped branch",
        _LAYERS,
        "return self.self_residual.enter_backward(dx, dh, cache.self_residual), dmemory",
        "return self.self_residual.enter_backward(dx, dh, cache.self_residual), 0 * dmemory",
    ),
    Bug(
        "DecoderLayer: dmemory and dx swapped",
        "swapped",
        _LAYERS,
        _CROSS,
        "dmemory, dh = self.cross.backward(dh, cache.cross)",
    ),
    Bug(
        "DecoderLayer: cross-attention's dx lost",
        "dropped branch",
        _LAYERS,
        _CROSS,
        "_, dmemory = self.cross.backward(dh, cache.cross)",
    ),
    Bug(
        "DecoderLayer: way through cross-attention lost",
        "dropped branch",
        _LAYERS,
        "dx = self.cross_residual.enter_backward(dx, dh, cache.cross_residual)",
        "dx = dx",
    ),
    Bug(
        "DecoderLayer: self and cross residual swapped",
        "swapped",
        _LAYERS,
        _SELF_JOIN,
        "dx, dh = self.self_residual.join_backward(dx, cache.cross_residual)",
        nth=2,
        of=2,
    ),
    Bug(
        "DecoderLayer: cross-attention from dy, past the feed-forward",
        "wrong term",
        _LAYERS,
        "self.cross_residual.join_backward(dx, cache.cross_residual)",
        "self.cross_residual.join_backward(dy, cache.cross_residual)",
    ),
    Bug(
        "DecoderLayer: feed-forward skipped",
        "dropped branch",
        _LAYERS,
        _FEED_FORWARD,
        "pass",
        nth=2,
        of=2,
    ),
    Bug(
        "DecoderLayer: self-attention skipped",
        "dropped branch",
        _LAYERS,
        _SELF,
        "pass",
        nth=2,
        of=2,
    ),
)

_STACKS = "transformer/stacks.py"
_REVERSED = "zip(self.layers[::-1], cache.layers[::-1], strict=True)"
_FINAL = "dy = self.norm.backward(dy, cache.norm)"
_MEMORY = "dmemory = dmemory + dmemory_here"

STACKS = (
    Bug(
        "Encoder: layers from the first",
        "swapped",
        _STACKS,
        _REVERSED,
        "zip(self.layers, cache.layers, strict=True)",
        nth=1,
        of=2,
    ),
    Bug(
        "Encoder: caches from the first",
        "swapped",
        _STACKS,
        _REVERSED,
        "zip(self.layers[::-1], cache.layers, strict=True)",
        nth=1,
        of=2,
    ),
    Bug(
        "Encoder: final norm's dx lost",
        "dropped branch",
        _STACKS,
        _FINAL,
        "self.norm.backward(dy, cache.norm)",
        nth=1,
        of=2,
    ),
    Bug(
        "Decoder: layers from the first",
        "swapped",
        _STACKS,
        _REVERSED,
        "zip(self.layers, cache.layers, strict=True)",
        nth=2,
        of=2,
    ),
    Bug("Decoder: final norm skipped", "dropped branch", _STACKS, _FINAL, "pass", nth=2, of=2),
    Bug("Decoder: memory of the first layer alone", "= for +=", _STACKS, _MEMORY, "dmemory = dmemory_here"),
    Bug(
        "Decoder: memory of the last layer alone",
        "missing sum",
        _STACKS,
        "return dy, dmemory\n",
        "return dy, layer.backward(dy, layer_cache)[1]\n",
    ),
    Bug(
        "Decoder: memory averaged over the layers",
        "missing scale",
        _STACKS,
        "return dy, dmemory\n",
        "return dy, dmemory / len(self.layers)\n",
    ),
)

_MODEL = "transformer/model.py"
_TIED = "make_output(config, self.target.words, rng, dtype)"

MODEL = (
    Bug(
        "Transformer: source and target not tied",
        "lost tie",
        _MODEL,
        "self.target.words.weight = self.source.words.weight",
        "self.target.words.weight.value[...] = self.source.words.weight.value",
    ),
    Bug(
        "Transformer: output not tied",
        "lost tie",
        _MODEL,
        _TIED,
        "make_output(config, make_embedding(config, config.target_vocab, rng, dtype).words, rng, dtype)",
    ),
    Bug(
        "Transformer: output tied to the source",
        "lost tie",
        _MODEL,
        _TIED,
        "make_output(config, self.source.words, rng, dtype)",
    ),
    Bug(
        "Transformer: target embedding skipped",
        "lost tie",
        _MODEL,
        "self.target.backward(unpack(dx, target_packing), cache.target)",
        "pass",
    ),
    Bug(
        "Transformer: source embedding skipped",
        "lost tie",
        _MODEL,
        "self.source.backward(unpack(dx, source_packing), cache.source)",
        "pass",
    ),
    Bug(
        "Transformer: encoder skipped",
        "dropped branch",
        _MODEL,
        "dx = self.encoder.backward(dmemory, cache.encoder)",
        "dx = dmemory",
    ),
    Bug(
        "Transformer: encoder's dx lost",
        "dropped branch",
        _MODEL,
        "dx = self.encoder.backward(dmemory, cache.encoder)\n",
        "self.encoder.backward(dmemory, cache.encoder)\n        dx = dmemory\n",
    ),
    Bug(
        "Transformer: source and target caches swapped",
        "swapped",
        _MODEL,
        "TransformerCache(source_cache, encoder, target_cache,",
        "TransformerCache(target_cache, encoder, source_cache,",
    ),
)

TRANSFORMER = (*ENCODER_LAYER, *DECODER_LAYER, *STACKS, *MODEL)
