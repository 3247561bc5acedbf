"""Both ends of a model, words in and words out, and the masks of its sentences."""

from npformer.layers import InputEmbedding, Linear, TiedProjection
from npformer.masks import padding_mask, query_mask


def make_embedding(config, n_words, rng, dtype):
    """From words to the vectors that a stack reads, with a configuration's settings."""
    return InputEmbedding(
        n_words,
        config.d_model,
        config.max_length,
        positions=config.positions,
        scale=config.scale_embedding,
        zero_id=config.pad_id if config.zero_padding else None,
        rate=config.input_dropout,
        rng=rng,
        dtype=dtype,
    )


def make_output(config, words, rng, dtype):
    """From vectors to words: by the embedding `words` itself, or where nothing is tied by a linear map."""
    bias = config.output_bias
    if config.tied == "none":
        return Linear(config.d_model, config.target_vocab, bias=bias, rng=rng, dtype=dtype)
    return TiedProjection(words.weight, bias=bias, dtype=dtype)


def make_masks(config, ids):
    """Keys that are words (B, 1, 1, S), and queries that are, where the configuration masks them."""
    queries = None if config.query_masking == "none" else query_mask(ids, config.pad_id)
    return padding_mask(ids, config.pad_id), queries
