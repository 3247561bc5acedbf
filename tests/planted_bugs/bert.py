"""Bugs in BERT and in the hiding of its tokens."""

BUGS = {
    "models/bert.py": {
        "self.segments.backward(dx, cache.segments)": {
            "BertEmbedding: segments without a gradient": "pass",
            "BertEmbedding: sign of the gradient of the segments": "dx → -dx",
            "BertEmbedding: gradient of the segments before the norm": "dx → dy",
            "BertEmbedding: rows of tokens for segments": "cache.segments → cache.tokens",
        },
        "dx = self.norm.backward(dx, cache.norm)": {
            "BertEmbedding: norm skipped": "self.norm.backward(dx, cache.norm)"
        },
        "return like(segment_ids, ids)": {
            "Bert: all tokens in the first segment": "return array_module(ids).zeros_like(ids)"
        },
        "dh = activation_dropout_backward(dh, cache.activation)": {
            "BertHead: activation skipped": "activation_dropout_backward(dh, cache.activation)"
        },
        "dh = self.norm.backward(dh, cache.norm)": {
            "BertHead: norm skipped": "self.norm.backward(dh, cache.norm)"
        },
        "self.output = TiedProjection(tokens, bias=True, dtype=dtype)": {
            "BertHead: not tied": "tokens → Parameter(tokens.value.copy())",
            "BertHead: no output bias": "bias=True, dtype → dtype",
        },
        "padding_mask(ids, config.pad_id)": {"Bert: attention to padding": "padding_mask(ids, -1)"},
        "if mask is None else _taken_mask(mask, ids)": {
            "Bert: a mask that is given has no effect": "if True else _taken_mask(mask, ids)"
        },
        "is_token.cumsum(1) * is_token + (self.first_position - 1)": {
            "BertEmbedding: padding is counted": "is_token.cumsum(1) + (self.first_position - 1)",
            "BertEmbedding: positions from that of padding": "- 1) → - 0)",
        },
    },
    "models/encoder.py": {
        "dx = self.encoder.backward(dx, cache.encoder)": {
            "Bert: encoder skipped": "self.encoder.backward(dx, cache.encoder)"
        },
    },
    "models/classifier.py": {
        "dx[:, 0] = dh": {
            "ClassifierHead: the last token gets the gradient": "dx[:, 0] → dx[:, -1]",
            "ClassifierHead: the head reads the mean": "dx[:] = dh[:, None] / dx.shape[1]",
        },
        "dh = activation_backward(dh, cache.activation)": {"ClassifierHead: activation skipped": "pass"},
    },
    "data/sentences.py": {
        "replaced = (u >= share * HIDDEN) & (u < share * (HIDDEN + REPLACED))": {
            "masked_batch: no token is replaced by a random one": "replaced = (u < 0) & (u > 0)"
        },
        "u < share * (HIDDEN + REPLACED))": {
            "masked_batch: every other token is replaced, and none stays": "u < share)",
            "masked_batch: replaced tokens beyond the share, which have no loss": "u < HIDDEN + REPLACED)",
        },
        "read = np.where(u < share * HIDDEN, mask_id, ids)": {
            "masked_batch: all chosen tokens hidden": "share * HIDDEN → share"
        },
        "target_out=np.where(u < share, ids, PAD)": {
            "masked_batch: a loss only where a token is hidden": "share → share * HIDDEN",
            "masked_batch: every token has a loss": "target_out=ids",
        },
        "rng.integers(len(SPECIALS), mask_id, ids.shape)": {
            "masked_batch: a random token may be a special one": "len(SPECIALS) → 0"
        },
        "batch_rng(self.seed, step, number))": {
            "SentenceLoader: the same tokens hidden in each step": "step, number → 0, number"
        },
    },
    "data/loader.py": {
        "enumerate(self.plan_steps(start), start + 1)": {
            "SentenceLoader: a resumed run hides the tokens of its first steps": "start + 1 → 1"
        }
    },
    "generation/fill_in.py": {
        "tuple(probabilities[place, best[place]].tolist())": {
            "fill_in: the probabilities of the token before": "place, → place - 1,"
        },
        "model.config.max_length - n_added": {
            "GapFiller: room without the end symbol": "model.config.max_length"
        },
    },
}
