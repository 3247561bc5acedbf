"""Bugs in encoder and decoder layers, in their stacks, and in the whole model."""

from planted_bugs.bug import Place

BUGS = {
    "models/bart.py": {
        "x, norm_cache = self.norm.forward(x + p)": {"BART: positions left out": "(x + p) → (x)"},
        "dx = self.norm.backward(dx, cache.norm)": {"BART: norm of the input skipped": "pass"},
        "self.positions.backward(dx, cache.positions)": {"BART: gradient of the positions lost": "pass"},
    },
    "models/transformer/layers.py": {
        # the gradients stay right
        Place("x, norm1_cache = self.norm1.forward(x, h, context)", nth=2, of=2): {
            "DecoderLayer: no dropout after self-attention": "h, context → h"
        },
        # the gradients stay right
        Place("self.self_attention.forward(x, mask=mask, context=context)", nth=2, of=2): {
            "DecoderLayer: no dropout in self-attention": "mask, context=context → mask"
        },
        "dx, dh = self.norm2.backward(dy, cache.norm2)": {
            "EncoderLayer: the last norm skipped": "dx = dh = dy",
            "EncoderLayer: dx and dh of the last norm swapped": "dx, dh → dh, dx",
        },
        Place("dx = dx + self.feed_forward.backward(dh, cache.feed_forward)", nth=1, of=2): {
            "EncoderLayer: feed-forward skipped": "dx = dx + dh",
            "EncoderLayer: identity path around the feed-forward lost": "dx + self → self",
            "EncoderLayer: feed-forward gets dx": "(dh, → (dx,",
        },
        Place("dx, dh = self.norm1.backward(dx, cache.norm1)", nth=1, of=2): {
            "EncoderLayer: attention from dy, bypassing the feed-forward": "(dx, → (dy,"
        },
        "return dx + self.self_attention.backward(dh, cache.self_attention)\n": {
            "EncoderLayer: attention skipped": "return dx\n",
            "EncoderLayer: identity path around attention lost": "dx + self → self",
            "EncoderLayer: identity path around attention subtracted": "dx + → -dx +",
        },
        "return dx + self.self_attention.backward(dh, cache.self_attention), dmemory": {
            "DecoderLayer: dmemory lost": ", dmemory → , 0 * dmemory",
            "DecoderLayer: self-attention skipped": "return dx, dmemory",
            "DecoderLayer: identity path around self-attention lost": "dx + self → self",
        },
        "dx, dh = self.norm3.backward(dy, cache.norm3)": {
            "DecoderLayer: the last norm skipped": "dx = dh = dy"
        },
        "dh, dmemory = self.cross.backward(dh, cache.cross)": {
            "DecoderLayer: dmemory and dh swapped": "dh, dmemory → dmemory, dh",
            "DecoderLayer: gradient of the queries of cross-attention lost": "dh, dmemory → _, dmemory",
        },
        "dx = dx + dh": {
            "DecoderLayer: gradient through cross-attention lost": "pass",
            "DecoderLayer: identity path around cross-attention lost": "dx = dh",
        },
        "dx, dh = self.norm2.backward(dx, cache.norm2)": {
            "DecoderLayer: cross-attention from dy, bypassing the feed-forward": "(dx, → (dy,"
        },
        Place("dx, dh = self.norm1.backward(dx, cache.norm1)", nth=2, of=2): {
            "DecoderLayer: self-attention from dy, bypassing the others": "(dx, → (dy,"
        },
        Place("dx = dx + self.feed_forward.backward(dh, cache.feed_forward)", nth=2, of=2): {
            "DecoderLayer: feed-forward skipped": "dx = dx + dh"
        },
    },
    "models/transformer/pre_norm.py": {
        "return dx + self.norm1.backward(dh, cache.norm1)\n": {
            "PreNormEncoderLayer: identity path around attention lost": "dx + self → self",
            "PreNormEncoderLayer: attention lost": "return dx\n",
            "PreNormEncoderLayer: sign": "dx + → dx -",
            "PreNormEncoderLayer: the first norm skipped": "return dx + dh\n",
        },
        Place("dx = dx + self.norm2.backward(dh, cache.norm2)", nth=1, of=2): {
            "PreNormEncoderLayer: the second norm on the identity path too": (
                "dx + self.norm2.backward(dh → self.norm2.backward(dx + dh"
            )
        },
        "dh = self.dropout2.backward(dx, cache.dropout2)\n        dh = self.feed_forward": {
            "PreNormEncoderLayer: dropout skipped": "self.dropout2.backward(dx, cache.dropout2) → dx",
            "PreNormEncoderLayer: dropout on the identity path too": (
                "dh = self.dropout2 → dx = dh = self.dropout2"
            ),
        },
        Place("dh = self.dropout1.backward(dx, cache.dropout1)", nth=1, of=2): {
            "PreNormEncoderLayer: dropout of attention's output halved": (
                "cache.dropout1) → cache.dropout1) / 2"
            )
        },
        "return dx + self.norm1.backward(dh, cache.norm1), dmemory": {
            "PreNormDecoderLayer: dmemory lost": ", dmemory → , 0 * dmemory",
            "PreNormDecoderLayer: identity path around self-attention lost": "dx + self → self",
        },
        "dh, dmemory = self.cross.backward(dh, cache.cross)": {
            "PreNormDecoderLayer: dmemory and dh swapped": "dh, dmemory → dmemory, dh",
            "PreNormDecoderLayer: gradient of the queries of cross-attention lost": (
                "dh, dmemory → _, dmemory"
            ),
        },
        "dx = dx + self.norm3.backward(dh, cache.norm3)": {
            "PreNormDecoderLayer: feed-forward skipped": "pass"
        },
        "dh = self.dropout2.backward(dx, cache.dropout2)\n        dh, dmemory": {
            "PreNormDecoderLayer: cross-attention from dy": "(dx, cache.dropout2) → (dy, cache.dropout2)"
        },
    },
    "models/transformer/sequences.py": {
        "return dh if self.norm is None else self.norm.backward(dh, cache.norm)": {
            "Preprocess: norm skipped": "return dh"
        },
        "for letter in reversed(self.letters):": {
            "Postprocess: letters in forward order": "for letter in self.letters:"
        },
        "dx = dh  # a sum": {
            "Postprocess: identity path lost": "dx = 0 * dh  # a sum",
            "Postprocess: identity path halved": "dx = dh / 2  # a sum",
        },
        "dh = self.dropout.backward(dh, cache.dropout_mask)": {"Postprocess: dropout skipped": "dh = dh"},
        "dx, dh = self.postprocess2.backward(dy, cache.postprocess2)": {
            "SequenceEncoderLayer: the last letters skipped": "dx = dh = dy"
        },
        "return dx + self.preprocess1.backward(dh, cache.preprocess1)\n": {
            "SequenceEncoderLayer: attention lost": "return dx\n"
        },
        "dh, dmemory = self.cross.backward(dh, cache.cross)": {
            "SequenceDecoderLayer: gradient of the queries of cross-attention lost": (
                "dh, dmemory → _, dmemory"
            )
        },
        "return dx + self.preprocess1.backward(dh, cache.preprocess1), dmemory": {
            "SequenceDecoderLayer: dmemory lost": ", dmemory → , 0 * dmemory"
        },
    },
    "models/transformer/model.py": {
        # the gradients stay right
        "replace(of_target, allowed=of_source.allowed, key_packing": {
            "Transformer: no query mask in cross-attention": (
                "of_target, allowed → of_target, queries=None, allowed"
            )
        },
        "self.target.tokens.weight = self.source.tokens.weight": {
            "Transformer: source and target not tied": (
                "self.target.tokens.weight.value[...] = self.source.tokens.weight.value"
            )
        },
        "make_output(self.config, self.target.tokens, rng, dtype)": {
            "Transformer: output not tied": (
                "self.target.tokens → self.make_input(self.config.target_vocab, rng, dtype).tokens"
            ),
            "Transformer: output tied to the source": "self.target.tokens → self.source.tokens",
        },
        "self.target.backward(unpack(dx, target_packing), cache.target)": {
            "Transformer: target embedding skipped": "pass"
        },
        "self.source.backward(unpack(dx, source_packing), cache.source)": {
            "Transformer: source embedding skipped": "pass"
        },
        "dx = self.encoder.backward(dmemory, cache.encoder)": {
            "Transformer: encoder skipped": "dx = dmemory"
        },
        "dx = self.encoder.backward(dmemory, cache.encoder)\n": {
            "Transformer: encoder's dx lost": (
                "self.encoder.backward(dmemory, cache.encoder)\n        dx = dmemory\n"
            )
        },
        "source_cache, encoder_cache, target_cache, decoder_cache, output_cache, packings": {
            "Transformer: source and target caches swapped": (
                "target_cache, encoder_cache, source_cache, decoder_cache, output_cache, packings"
            )
        },
    },
    "models/transformer/stacks.py": {
        Place("zip(self.layers[::-1], cache.layers[::-1], strict=True)", nth=1, of=2): {
            "Encoder: layers in forward order": "zip(self.layers, cache.layers, strict=True)",
            "Encoder: caches in forward order": "cache.layers[::-1] → cache.layers",
        },
        Place("dy = self.norm.backward(dy, cache.norm)", nth=1, of=2): {
            "Encoder: final norm's dx lost": "self.norm.backward(dy, cache.norm)"
        },
        Place("zip(self.layers[::-1], cache.layers[::-1], strict=True)", nth=2, of=2): {
            "Decoder: layers in forward order": "zip(self.layers, cache.layers, strict=True)"
        },
        Place("dy = self.norm.backward(dy, cache.norm)", nth=2, of=2): {
            "Decoder: final norm skipped": "pass"
        },
        "dmemory = dmemory + dmemory_here": {
            "Decoder: memory of the first layer only": "dmemory = dmemory_here"
        },
        "return dy, dmemory\n": {
            "Decoder: memory of the last layer only": "dmemory → layer.backward(dy, layer_cache)[1]",
            "Decoder: memory averaged over the layers": "dmemory → dmemory / len(self.layers)",
        },
        "return self.encoder.backward(dmemory, cache.encoder), dtarget": {
            "EncoderDecoder: gradient of the memory not passed through the encoder": "return dmemory, dtarget"
        },
    },
}
