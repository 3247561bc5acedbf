"""Mutants that change nothing that anyone could notice, each with the reason why."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A declaration that a mutant computes the same, for every input."""

    file: str
    function: str
    before: str
    after: str
    reason: str

    def matches(self, mutant):
        """Return True if the mutant is the declared one."""
        return self[:4] == (mutant.file, mutant.function, mutant.before, mutant.after)


_BERT_ENCODER = (  # the return statement of EncoderConfig.encoder
    "return TransformerConfig( d_model=self.d_model, d_ff=self.hidden_width, "
    'n_heads=self.n_heads, n_layers=self.n_layers, norm=self.norm, final_norm=self.norm == "pre", '
    'norm_eps=self.norm_eps, activation=self.activation, positions="none", # the model adds them '
    "dropout=self.dropout, attention_dropout=self.attention_dropout, fused_projections=True, "
    ")"
)

_BERT_POSITIONS = (  # the statement of BertEmbedding.__init__
    "self.positions: LearnedPositions | Embedding = ( "
    "Embedding(config.n_positions, d_model, rng=rng, dtype=dtype) if config.first_position "
    "else LearnedPositions(config.max_length, d_model, rng=rng, dtype=dtype) )"
)

EQUIVALENT = (
    Equivalent(
        "functional/losses.py",
        "l2_distance_backward",
        "length = xp.where(distance.real == 0, 1, distance)",
        "length = xp.where(distance.real == 0, 2, distance)",
        "where the distance is 0, the difference is 0 as well, and 0 / 1 = 0 / 2",
    ),
    Equivalent(
        "functional/linear_attention.py",
        "_inverse",
        "range((k.shape[-2] - 1).bit_length() - 1)",
        "range(((k.shape[-2] + 1)).bit_length() - 1)",
        "further powers of a matrix that is 0 on and above its diagonal are 0",
    ),
    Equivalent(
        "functional/preferences.py",
        "grpo",
        "limit = xp.where(gain.real > 0, 1 + clip, 1 - clip)",
        "limit = xp.where((gain.real >= 0), 1 + clip, 1 - clip)",
        "an advantage of 0 is never clipped: its product with the ratio is 0",
    ),
    Equivalent(
        "functional/preferences.py",
        "dpo_backward",
        "dmargin = -sigmoid(-margin)[0] * (dloss / len(margin))",
        "dmargin = -sigmoid(-margin)[1] * (dloss / len(margin))",
        "the cache of sigmoid is its output",
    ),
    Equivalent(
        "functional/relative_bias.py",
        "relative_buckets",
        "buckets: Array = first + xp.where(distance < n_exact, distance, far)",
        "buckets: Array = first + xp.where((distance <= n_exact), distance, far)",
        "far is n_exact + log(1) = n_exact where the distance is n_exact",
    ),
    Equivalent(
        "functional/rotary.py",
        "Llama3Scaling.scale",
        "share = np.clip((turns - self.low) / (self.high - self.low), 0, 1)",
        "share = np.clip(0, (turns - self.low) / (self.high - self.low), 1)",
        "clip(x, 0, 1) and clip(0, x, 1) are both min(max(x, 0), 1)",
    ),
    Equivalent(
        "functional/softmax.py",
        "softmax",
        "y = e / xp.where(total.real == 0, 1, total)",
        "y = e / xp.where(total.real == 0, 2, total)",
        "where the sum of the exponentials is 0, each of them is 0, and 0 / 1 = 0 / 2",
    ),
    Equivalent(
        "kernels/cpu/activations.py",
        "_gelu_and_slope",
        "density = np.exp(square, out=square)",
        "density = np.exp(square)",
        "the squares are not used any more: only the place of the result differs",
    ),
    Equivalent(
        "kernels/cpu/blocks.py",
        "blocks",
        "step = max(1, BLOCK // max(1, width))",
        "step = max(1, BLOCK // max(2, width))",
        "rows of one number are cut into other blocks, and the result is the same",
    ),
    Equivalent(
        "nn/norm.py",
        "BatchNorm.update",
        "n_tokens = 0 if cache.share is None else int((cache.share > 0).sum())",
        "n_tokens = 1 if cache.share is None else int((cache.share > 0).sum())",
        "the statistics are then the running ones, which do not move towards themselves",
    ),
    Equivalent(
        "kernels/lazy.py",
        "LazyRows.evaluate",
        "self.add_to(table, is_zero=True)",
        "self.add_to(table, is_zero=False)",
        "LazyRows adds its rows in both cases: only products are written into arrays that are 0",
    ),
    Equivalent(
        "models/bert.py",
        "BertEmbedding.__init__",
        _BERT_POSITIONS,
        _BERT_POSITIONS.replace("rng=rng, ", "", 1),
        "Bert draws all weights again, and for a model from a file nothing that was drawn is kept",
    ),
    Equivalent(
        "models/bert.py",
        "BertEmbedding.__init__",
        "self.tokens = Embedding(config.vocab_size, d_model, rng=rng, dtype=dtype)",
        "self.tokens = Embedding(config.vocab_size, d_model, dtype=dtype)",
        "Bert draws all weights again, and for a model from a file nothing that was drawn is kept",
    ),
    Equivalent(
        "models/encoder.py",
        "EncoderConfig.encoder",
        _BERT_ENCODER,
        (
            "return TransformerConfig(d_model=self.d_model, d_ff=self.hidden_width, "
            "n_heads=self.n_heads, n_layers=self.n_layers, norm=self.norm, final_norm=self.norm == 'pre', "
            "norm_eps=self.norm_eps, activation=self.activation, dropout=self.dropout, "
            "attention_dropout=self.attention_dropout, fused_projections=True)"
        ),
        "an encoder adds no positions: its settings name them for models that embed ids themselves",
    ),
    Equivalent(
        "models/transformer/model.py",
        "make_mask",
        'queries = None if config.query_masking == "none" else query_mask(ids, config.pad_id)',
        'queries = None if config.query_masking == "none" else query_mask(config.pad_id, ids)',
        "query_mask compares its arguments with !=, which is symmetric",
    ),
    Equivalent(
        "kernels/gpu/sums.py",
        "column_sums",
        "return _ones(array_module(x), 1 << n.bit_length(), x.dtype)[:n] @ x",
        "return _ones(array_module(x), 2 << n.bit_length(), x.dtype)[:n] @ x",
        "the first n of more ones are the same ones",
    ),
    Equivalent(
        "nn/flat.py",
        "Flattening.unflatten",
        "parameter.stored, parameter.is_zero = None, True",
        "parameter.stored, parameter.is_zero = None, False",
        "the gradient that is then allocated is 0, and adding to it gives what writing gives",
    ),
    Equivalent(
        "kernels/cpu/attention.py",
        "attention",
        "p == 0 and (n_queries > QUERIES or is_long) and _is_shared(mask)",
        "p == 0 and ((n_queries >= QUERIES) or is_long) and _is_shared(mask)",
        "block by block or at once, the attention of so many queries is the same",
    ),
    Equivalent(
        "kernels/cpu/attention.py",
        "softmax_in_place",
        "is_safe = ((peak < SAFE) & (lowest > -SAFE)) | np.isneginf(peak)",
        "is_safe = ((peak < SAFE) & ((lowest >= -SAFE))) | np.isneginf(peak)",
        "the exponential of -SAFE itself is far from underflow as well",
    ),
    Equivalent(
        "kernels/cpu/long_attention.py",
        "long_attention",
        "seed = None if p == 0 or rng is None else int(rng.integers(1 << 62))",
        "seed = None if p == 0 or rng is None else int(rng.integers(2 << 62))",
        "a number of 63 bits is as good a seed as one of 62",
    ),
    Equivalent(
        "kernels/gpu/norm.py",
        "_backward",
        "along = row_gradient(drows, gain, xhat, part)[:, None]",
        "along = row_gradient(gain, drows, xhat, part)[:, None]",
        "row_gradient multiplies the two",
    ),
    Equivalent(
        "models/universal.py",
        "Universal.__init__",
        "self.times = FixedPositions(config.n_layers + 1, config.d_model, **layout)",
        "self.times = FixedPositions(config.n_layers + 2, config.d_model, **layout)",
        "the further row of the table is never read",
    ),
    Equivalent(
        "nn/checks.py",
        "check_floats",
        '(isinstance(x, np.ndarray) or is_array(x)) and x.dtype.kind in "fc" and _fits(x.shape, shape)',
        '((isinstance(x, np.ndarray) and is_array(x))) and x.dtype.kind in "fc" and _fits(x.shape, shape)',
        "an array of CuPy passes the checks below, which this condition only spares NumPy's arrays",
    ),
    Equivalent(
        "models/bert.py",
        "Bert.__init__",
        "self.encoder = Encoder(config.encoder, rng=rng, dtype=dtype)",
        "self.encoder = Encoder(config.encoder, dtype=dtype)",
        "the model draws all weights once more, as BERT does, or reads them from a file",
    ),
    Equivalent(
        "functional/heads.py",
        "merge_heads_on_batch",
        "return xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)",
        "return xp.concatenate(xp.split(x, n_heads), axis=-1)",
        "the default axis of split is 0",
    ),
    Equivalent(
        "kernels/gpu/rms_norm.py",
        "rms_norm_backward",
        "dx = input_gradient(drows, gain, xhat, rrms, along)",
        "dx = input_gradient(gain, drows, xhat, rrms, along)",
        "input_gradient multiplies the two",
    ),
    *(
        Equivalent(
            file,
            function,
            "Flat.changes += 1",
            "Flat.changes += 2",
            "the counter is only compared with its earlier value, and both grow",
        )
        for file, function in (
            ("nn/module.py", "Parameter.__init__"),
            ("nn/flat.py", "Flattening.__setattr__"),
        )
    ),
    Equivalent(
        "kernels/cpu/attention.py",
        "softmax_in_place",
        "scores *= (1 / np.where(total == 0, 1, total))[..., None]",
        "scores *= (1 / np.where(total == 0, 2, total))[..., None]",
        "where the sum of a row is 0, all its numbers are 0, and 0 / 1 = 0 / 2",
    ),
    Equivalent(
        "kernels/lazy.py",
        "Lazy.evaluate",
        "raise NotImplementedError",
        "pass",
        "every subclass has its own",
    ),
    Equivalent(
        "models/universal.py",
        "Universal.backward",
        "dothers = [a + b for a, b in zip(dothers, dothers_here, strict=True)] if dothers else dothers_here",
        "dothers = [a + b for a, b in zip(dothers_here, dothers, strict=True)] if dothers else dothers_here",
        "a + b = b + a",
    ),
    Equivalent(
        "nn/attention/similarity.py",
        "_check",
        "require_counts(d_query=d_query, d_key=d_key, width=1 if width is None else width)",
        "require_counts(d_query=d_query, d_key=d_key, width=2 if width is None else width)",
        "any count stands for a width that is not given: it is only checked",
    ),
    Equivalent(
        "nn/flat.py",
        "Flattening.shared_copy",
        "parameter.stored, parameter.is_zero = None, True",
        "parameter.stored, parameter.is_zero = None, False",
        "a gradient that is not stored is made of zeros when it is read; is_zero only saves an addition",
    ),
    Equivalent(
        "kernels/gpu/attention.py",
        "row_share",
        "return 1 / xp.where(total == 0, 1, total)",
        "return 1 / xp.where(total == 0, 2, total)",
        "where a total is 0, all the exponentials of the row are 0, and 0 / 1 = 0 / 2",
    ),
    Equivalent(
        "kernels/gpu/attention.py",
        "row_peak",
        "return xp.where(xp.isfinite(peak), peak, 0)",
        "return xp.where(xp.isfinite(peak), peak, 1)",
        "a row without a finite peak has scores of -inf, or of inf and NaN, which no number changes",
    ),
    Equivalent(
        "functional/losses.py",
        "kl_divergence",
        "log_q = xp.log(xp.where(q.real > 0, q, 1))",
        "log_q = xp.log(xp.where(q.real > 0, q, 2))",
        "where q is 0, the logarithm is multiplied by 0",
    ),
    Equivalent(
        "functional/heads.py",
        "split_heads_on_batch",
        "return xp.concatenate(xp.split(x, n_heads, axis=-1), axis=0)",
        "return xp.concatenate(xp.split(x, n_heads, axis=-1))",
        "the axis 0 is the default",
    ),
    Equivalent(
        "models/universal.py",
        "Universal.backward",
        "self.norm is not None and cache.norm is not None",
        "(self.norm is not None or cache.norm is not None)",
        "the cache of a norm is there if the norm is, and only then",
    ),
    Equivalent(
        "models/transformer/layers.py",
        "DecoderLayer.decode_step",
        "x = self.norm1(x, h)",
        "x = self.norm1(h, x)",
        "a sum does not depend on the order of two arrays",
    ),
    Equivalent(
        "nn/attention/projections.py",
        "Projection.project_backward",
        "dy = merged[0] if len(merged) == 1 else array_module(merged[0]).concatenate(merged, -1)",
        "dy = merged[0] if len(merged) == 1 else array_module(merged[1]).concatenate(merged, -1)",
        "all parts of a gradient are on one device",
    ),
    Equivalent(
        "kernels/cpu/losses.py",
        "_row_losses",
        "x.max() < SAFE and x.min() > -SAFE",
        "(x.max() <= SAFE) and x.min() > -SAFE",
        "the exponential of SAFE is finite, so both ways are right there",
    ),
    *(
        Equivalent(
            "nn/attention/multi_head.py",
            f"MultiHeadAttention.{step}",
            "self.n_repeats > 1",
            "(self.n_repeats >= 1)",
            "heads that are repeated once are as they were, and so are their gradients",
        )
        for step in ("forward", "backward")
    ),
    *(
        Equivalent(
            "models/classifier.py",
            f"ClassifierHead.{step}",
            "self.dense is not None and self.hidden is not None",
            "(self.dense is not None or self.hidden is not None)",
            "both are None, or neither is",
        )
        for step in ("forward", "backward")
    ),
    *(
        Equivalent(
            "nn/attention/luong.py",
            f"{layer}.forward",
            "0",
            "1",
            "the layer ignores start, whose default this is: it exists because LocalMonotonic uses it",
        )
        for layer in ("GlobalAttention", "LocalPredictive")
    ),
)


def is_equivalent(mutant):
    """Return True if the mutant is declared to be equivalent."""
    return any(declared.matches(mutant) for declared in EQUIVALENT)
