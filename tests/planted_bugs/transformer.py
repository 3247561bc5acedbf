"""Bugs in encoder and decoder layers, in their stacks, and in the whole model."""

from planted_bugs.bug import Bug

_LAYERS = "models/transformer/layers.py"
_FEED_FORWARD = "dy, cache.feed_forward_residual, self.feed_forward.backward"
_SELF = "self.self_residual.backward(dx, cache.self_residual, self.self_attention.backward)"

ENCODER_LAYER = (
    Bug(
        "EncoderLayer: feed-forward skipped",
        "dropped branch",
        _LAYERS,
        _FEED_FORWARD,
        "dy, cache.feed_forward_residual, lambda dh, _: dh",
        nth=1,
        of=2,
    ),
    Bug(
        "EncoderLayer: attention skipped",
        "dropped branch",
        _LAYERS,
        f"return {_SELF}",
        "return dx",
    ),
    Bug(
        "EncoderLayer: attention gets the gradient of the identity path",
        "wrong term",
        _LAYERS,
        f"return {_SELF}",
        "return self.self_residual.backward(\n"
        "            dx, cache.self_residual, lambda dh, c: (self.self_attention.backward(dh, c), dh)[1]\n"
        "        )",
    ),
    Bug(
        "EncoderLayer: attention from dy, bypassing the feed-forward",
        "wrong term",
        _LAYERS,
        f"return {_SELF}",
        "return self.self_residual.backward(dy, cache.self_residual, self.self_attention.backward)",
    ),
    Bug(
        "EncoderLayer: the norms' residuals swapped",
        "swapped",
        _LAYERS,
        f"return {_SELF}",
        "return self.feed_forward_residual.backward(dx, cache.self_residual, self.self_attention.backward)",
    ),
)

_CROSS = "dx, dmemory = self.cross_residual.backward(dx, cache.cross_residual, self.cross.backward)"

DECODER_LAYER = (
    Bug(
        "DecoderLayer: dmemory lost",
        "dropped branch",
        _LAYERS,
        "return dx, dmemory",
        "return dx, 0 * dmemory",
    ),
    Bug(
        "DecoderLayer: dmemory and dx swapped",
        "swapped",
        _LAYERS,
        _CROSS,
        "dmemory, dx = self.cross_residual.backward(dx, cache.cross_residual, self.cross.backward)",
    ),
    Bug(
        "DecoderLayer: cross-attention's dx lost",
        "dropped branch",
        _LAYERS,
        _CROSS,
        "_, dmemory = self.cross_residual.backward(dx, cache.cross_residual, self.cross.backward)",
    ),
    Bug(
        "DecoderLayer: gradient through cross-attention lost",
        "dropped branch",
        _LAYERS,
        "cache.cross_residual, self.cross.backward)",
        "cache.cross_residual, lambda dh, c: (0 * dh, self.cross.backward(dh, c)[1]))",
    ),
    Bug(
        "DecoderLayer: self and cross residual swapped",
        "swapped",
        _LAYERS,
        f"dx = {_SELF}",
        "dx = self.cross_residual.backward(dx, cache.self_residual, self.self_attention.backward)",
    ),
    Bug(
        "DecoderLayer: cross-attention from dy, bypassing the feed-forward",
        "wrong term",
        _LAYERS,
        "self.cross_residual.backward(dx, cache.cross_residual",
        "self.cross_residual.backward(dy, cache.cross_residual",
    ),
    Bug(
        "DecoderLayer: feed-forward skipped",
        "dropped branch",
        _LAYERS,
        _FEED_FORWARD,
        "dy, cache.feed_forward_residual, lambda dh, _: dh",
        nth=2,
        of=2,
    ),
    Bug(
        "DecoderLayer: self-attention skipped",
        "dropped branch",
        _LAYERS,
        f"dx = {_SELF}",
        "pass",
    ),
)

_STACKS = "models/transformer/stacks.py"
_REVERSED = "zip(self.layers[::-1], cache.layers[::-1], strict=True)"
_FINAL = "dy = self.norm.backward(dy, cache.norm)"
_MEMORY = "dmemory = dmemory + dmemory_here"

STACKS = (
    Bug(
        "Encoder: layers in forward order",
        "swapped",
        _STACKS,
        _REVERSED,
        "zip(self.layers, cache.layers, strict=True)",
        nth=1,
        of=2,
    ),
    Bug(
        "Encoder: caches in forward order",
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
        "Decoder: layers in forward order",
        "swapped",
        _STACKS,
        _REVERSED,
        "zip(self.layers, cache.layers, strict=True)",
        nth=2,
        of=2,
    ),
    Bug("Decoder: final norm skipped", "dropped branch", _STACKS, _FINAL, "pass", nth=2, of=2),
    Bug("Decoder: memory of the first layer only", "= for +=", _STACKS, _MEMORY, "dmemory = dmemory_here"),
    Bug(
        "Decoder: memory of the last layer only",
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
    Bug(
        "EncoderDecoder: gradient of the memory not passed through the encoder",
        "dropped branch",
        _STACKS,
        "return self.encoder.backward(dmemory, cache.encoder), dtarget",
        "return dmemory, dtarget",
    ),
)

_MODEL = "models/transformer/model.py"
_TIED = "make_output(config, self.target.tokens, rng, dtype)"

MODEL = (
    Bug(
        "Transformer: source and target not tied",
        "lost tie",
        _MODEL,
        "self.target.tokens.weight = self.source.tokens.weight",
        "self.target.tokens.weight.value[...] = self.source.tokens.weight.value",
    ),
    Bug(
        "Transformer: output not tied",
        "lost tie",
        _MODEL,
        _TIED,
        "make_output(config, make_embedding(config, config.target_vocab, rng, dtype).tokens, rng, dtype)",
    ),
    Bug(
        "Transformer: output tied to the source",
        "lost tie",
        _MODEL,
        _TIED,
        "make_output(config, self.source.tokens, rng, dtype)",
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

# mistakes in forward that leave every gradient right
FORWARD = (
    Bug(
        "DecoderLayer: no dropout in the first residual",
        "dropped branch",
        _LAYERS,
        "self.self_residual.forward(x, attend, context)",
        "self.self_residual.forward(x, attend)",
        nth=2,
        of=2,
    ),
    Bug(
        "DecoderLayer: no dropout in self-attention",
        "dropped branch",
        _LAYERS,
        "self.self_attention.forward(h, mask=mask, context=context)",
        "self.self_attention.forward(h, mask=mask)",
        nth=2,
        of=2,
    ),
    Bug(
        "Transformer: no query mask in cross-attention",
        "wrong mask",
        _MODEL,
        "replace(of_target, allowed=of_source.allowed, key_packing",
        "replace(of_target, queries=None, allowed=of_source.allowed, key_packing",
    ),
)

TRANSFORMER = (*FORWARD, *ENCODER_LAYER, *DECODER_LAYER, *STACKS, *MODEL)
