"""Bugs in BERT and in the hiding of its tokens."""

from planted_bugs.bug import Bug

_BERT = "models/bert.py"
_SENTENCES = "data/sentences.py"
_FILL_IN = "generation/fill_in.py"

EMBEDDING = (
    Bug(
        "BertEmbedding: segments without a gradient",
        "dropped branch",
        _BERT,
        "self.segments.backward(dx, cache.segments)",
        "pass",
    ),
    Bug(
        "BertEmbedding: sign of the gradient of the segments",
        "sign",
        _BERT,
        "self.segments.backward(dx, cache.segments)",
        "self.segments.backward(-dx, cache.segments)",
    ),
    Bug(
        "BertEmbedding: gradient of the segments before the norm",
        "wrong term",
        _BERT,
        "self.segments.backward(dx, cache.segments)",
        "self.segments.backward(dy, cache.segments)",
    ),
    Bug(
        "BertEmbedding: rows of tokens for segments",
        "swapped",
        _BERT,
        "self.segments.backward(dx, cache.segments)",
        "self.segments.backward(dx, cache.tokens)",
    ),
    Bug(
        "BertEmbedding: norm skipped",
        "dropped branch",
        _BERT,
        "dx = self.norm.backward(dx, cache.norm)",
        "self.norm.backward(dx, cache.norm)",
    ),
    Bug(
        "Bert: all tokens in the first segment",
        "wrong term",
        _BERT,
        "return like(segment_ids, ids)",
        "return array_module(ids).zeros_like(ids)",
    ),
)

HEAD = (
    Bug(
        "BertHead: activation skipped",
        "dropped branch",
        _BERT,
        "dh = activation_dropout_backward(dh, cache.activation)",
        "activation_dropout_backward(dh, cache.activation)",
    ),
    Bug(
        "BertHead: norm skipped",
        "dropped branch",
        _BERT,
        "dh = self.norm.backward(dh, cache.norm)",
        "self.norm.backward(dh, cache.norm)",
    ),
    Bug(
        "BertHead: not tied",
        "lost tie",
        _BERT,
        "self.output = TiedProjection(tokens, bias=True, dtype=dtype)",
        "self.output = TiedProjection(Parameter(tokens.value.copy()), bias=True, dtype=dtype)",
    ),
    Bug(
        "BertHead: no output bias",
        "dropped branch",
        _BERT,
        "self.output = TiedProjection(tokens, bias=True, dtype=dtype)",
        "self.output = TiedProjection(tokens, dtype=dtype)",
    ),
    Bug(
        "Bert: encoder skipped",
        "dropped branch",
        _BERT,
        "dx = self.encoder.backward(dx, cache.encoder)",
        "self.encoder.backward(dx, cache.encoder)",
    ),
    Bug(
        "Bert: attention to padding",
        "wrong mask",
        _BERT,
        "AttentionMask(padding_mask(ids, config.pad_id))",
        "AttentionMask(padding_mask(ids, -1))",
    ),
)

HIDING = (
    Bug(
        "masked_batch: no token is replaced by a random one",
        "dropped branch",
        _SENTENCES,
        "replaced = (u >= share * HIDDEN) & (u < share * (HIDDEN + REPLACED))",
        "replaced = (u < 0) & (u > 0)",
    ),
    Bug(
        "masked_batch: every other token is replaced, and none stays",
        "wrong term",
        _SENTENCES,
        "u < share * (HIDDEN + REPLACED))",
        "u < share)",
    ),
    Bug(
        "masked_batch: replaced tokens beyond the share, which have no loss",
        "missing scale",
        _SENTENCES,
        "u < share * (HIDDEN + REPLACED))",
        "u < HIDDEN + REPLACED)",
    ),
    Bug(
        "masked_batch: all chosen tokens hidden",
        "missing scale",
        _SENTENCES,
        "read = np.where(u < share * HIDDEN, mask_id, ids)",
        "read = np.where(u < share, mask_id, ids)",
    ),
    Bug(
        "masked_batch: a loss only where a token is hidden",
        "wrong mask",
        _SENTENCES,
        "target_out=np.where(u < share, ids, PAD)",
        "target_out=np.where(u < share * HIDDEN, ids, PAD)",
    ),
    Bug(
        "masked_batch: every token has a loss",
        "wrong mask",
        _SENTENCES,
        "target_out=np.where(u < share, ids, PAD)",
        "target_out=ids",
    ),
    Bug(
        "masked_batch: a random token may be a special one",
        "wrong term",
        _SENTENCES,
        "rng.integers(len(SPECIALS), mask_id, ids.shape)",
        "rng.integers(0, mask_id, ids.shape)",
    ),
    Bug(
        "SentenceLoader: the same tokens hidden in each step",
        "wrong term",
        _SENTENCES,
        "batch_rng(self.seed, step, batch))",
        "batch_rng(self.seed, 0, batch))",
    ),
    Bug(
        "SentenceLoader: a resumed run hides the tokens of its first steps",
        "wrong term",
        _SENTENCES,
        "enumerate(self.plan.plan_steps(start), start + 1)",
        "enumerate(self.plan.plan_steps(start), 1)",
    ),
)

FILLING = (
    Bug(
        "fill_in: the probabilities of the token before",
        "wrong term",
        _FILL_IN,
        "tuple(probabilities[place, best[place]].tolist())",
        "tuple(probabilities[place - 1, best[place]].tolist())",
    ),
    Bug(
        "GapFiller: room without the end symbol",
        "missing sum",
        _FILL_IN,
        "model.config.max_length - n_added",
        "model.config.max_length",
    ),
)

BERT = (*EMBEDDING, *HEAD, *HIDING, *FILLING)
