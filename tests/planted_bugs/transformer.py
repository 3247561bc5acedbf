"""Bugs in encoder and decoder layers, in their stacks, and in the whole model."""

from planted_bugs.bug import Place

BUGS = {
    "models/transformer/layers.py": {
        # the gradients stay right
        Place("self.self_residual.forward(x, attend, context)", nth=2, of=2): [
            ("DecoderLayer: no dropout in the first residual", "dropped branch", "attend, context → attend"),
        ],
        # the gradients stay right
        Place("self.self_attention.forward(h, mask=mask, context=context)", nth=2, of=2): [
            ("DecoderLayer: no dropout in self-attention", "dropped branch", "mask, context=context → mask"),
        ],
        Place("dy, cache.feed_forward_residual, self.feed_forward.backward", nth=1, of=2): [
            (
                "EncoderLayer: feed-forward skipped",
                "dropped branch",
                "self.feed_forward.backward → lambda dh, _: dh",
            ),
        ],
        "return self.self_residual.backward(dx, cache.self_residual, self.self_attention.backward)": [
            ("EncoderLayer: attention skipped", "dropped branch", "return dx"),
            (
                "EncoderLayer: attention gets the gradient of the identity path",
                "wrong term",
                "return self.self_residual.backward(\n"
                "            dx, cache.self_residual, "
                "lambda dh, c: (self.self_attention.backward(dh, c), dh)[1]\n"
                "        )",
            ),
            ("EncoderLayer: attention from dy, bypassing the feed-forward", "wrong term", "dx → dy"),
            (
                "EncoderLayer: the norms' residuals swapped",
                "swapped",
                "self.self_residual → self.feed_forward_residual",
            ),
        ],
        "return dx, dmemory": [("DecoderLayer: dmemory lost", "dropped branch", "return dx, 0 * dmemory")],
        "dx, dmemory = self.cross_residual.backward(dx, cache.cross_residual, self.cross.backward)": [
            ("DecoderLayer: dmemory and dx swapped", "swapped", "dx, dmemory → dmemory, dx"),
            ("DecoderLayer: cross-attention's dx lost", "dropped branch", "dx, dmemory → _, dmemory"),
        ],
        "cache.cross_residual, self.cross.backward)": [
            (
                "DecoderLayer: gradient through cross-attention lost",
                "dropped branch",
                "self.cross.backward → lambda dh, c: (0 * dh, self.cross.backward(dh, c)[1])",
            ),
        ],
        "dx = self.self_residual.backward(dx, cache.self_residual, self.self_attention.backward)": [
            ("DecoderLayer: self and cross residual swapped", "swapped", "self_residual. → cross_residual."),
            ("DecoderLayer: self-attention skipped", "dropped branch", "pass"),
        ],
        "self.cross_residual.backward(dx, cache.cross_residual": [
            ("DecoderLayer: cross-attention from dy, bypassing the feed-forward", "wrong term", "dx → dy"),
        ],
        Place("dy, cache.feed_forward_residual, self.feed_forward.backward", nth=2, of=2): [
            (
                "DecoderLayer: feed-forward skipped",
                "dropped branch",
                "self.feed_forward.backward → lambda dh, _: dh",
            ),
        ],
    },
    "models/transformer/model.py": {
        # the gradients stay right
        "replace(of_target, allowed=of_source.allowed, key_packing": [
            (
                "Transformer: no query mask in cross-attention",
                "wrong mask",
                "of_target, allowed → of_target, queries=None, allowed",
            ),
        ],
        "self.target.tokens.weight = self.source.tokens.weight": [
            (
                "Transformer: source and target not tied",
                "lost tie",
                "self.target.tokens.weight.value[...] = self.source.tokens.weight.value",
            ),
        ],
        "make_output(config, self.target.tokens, rng, dtype)": [
            (
                "Transformer: output not tied",
                "lost tie",
                "self.target.tokens → make_embedding(config, config.target_vocab, rng, dtype).tokens",
            ),
            ("Transformer: output tied to the source", "lost tie", "self.target.tokens → self.source.tokens"),
        ],
        "self.target.backward(unpack(dx, target_packing), cache.target)": [
            ("Transformer: target embedding skipped", "lost tie", "pass"),
        ],
        "self.source.backward(unpack(dx, source_packing), cache.source)": [
            ("Transformer: source embedding skipped", "lost tie", "pass"),
        ],
        "dx = self.encoder.backward(dmemory, cache.encoder)": [
            ("Transformer: encoder skipped", "dropped branch", "dx = dmemory"),
        ],
        "dx = self.encoder.backward(dmemory, cache.encoder)\n": [
            (
                "Transformer: encoder's dx lost",
                "dropped branch",
                "self.encoder.backward(dmemory, cache.encoder)\n        dx = dmemory\n",
            ),
        ],
        "TransformerCache(source_cache, encoder, target_cache,": [
            (
                "Transformer: source and target caches swapped",
                "swapped",
                "TransformerCache(target_cache, encoder, source_cache,",
            ),
        ],
    },
    "models/transformer/stacks.py": {
        Place("zip(self.layers[::-1], cache.layers[::-1], strict=True)", nth=1, of=2): [
            ("Encoder: layers in forward order", "swapped", "zip(self.layers, cache.layers, strict=True)"),
            ("Encoder: caches in forward order", "swapped", "cache.layers[::-1] → cache.layers"),
        ],
        Place("dy = self.norm.backward(dy, cache.norm)", nth=1, of=2): [
            ("Encoder: final norm's dx lost", "dropped branch", "self.norm.backward(dy, cache.norm)"),
        ],
        Place("zip(self.layers[::-1], cache.layers[::-1], strict=True)", nth=2, of=2): [
            ("Decoder: layers in forward order", "swapped", "zip(self.layers, cache.layers, strict=True)"),
        ],
        Place("dy = self.norm.backward(dy, cache.norm)", nth=2, of=2): [
            ("Decoder: final norm skipped", "dropped branch", "pass"),
        ],
        "dmemory = dmemory + dmemory_here": [
            ("Decoder: memory of the first layer only", "= for +=", "dmemory = dmemory_here"),
        ],
        "return dy, dmemory\n": [
            (
                "Decoder: memory of the last layer only",
                "missing sum",
                "dmemory → layer.backward(dy, layer_cache)[1]",
            ),
            (
                "Decoder: memory averaged over the layers",
                "missing scale",
                "dmemory → dmemory / len(self.layers)",
            ),
        ],
        "return self.encoder.backward(dmemory, cache.encoder), dtarget": [
            (
                "EncoderDecoder: gradient of the memory not passed through the encoder",
                "dropped branch",
                "return dmemory, dtarget",
            ),
        ],
    },
}
