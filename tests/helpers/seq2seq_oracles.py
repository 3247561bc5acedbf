"""Encoder-decoder models of transformers with random settings, and batches for them."""

import numpy as np
import pytest
from hugging_face_oracles import IGNORED, LENGTH

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

MAPS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def random_sizes(rng):
    """Return the width, the heads and the layers of a small model."""
    # the norm of two numbers is 1 and -1, whatever they are, and leaves gradients that are only rounding
    n_heads, d_head = int(rng.integers(1, 5)), 2 * int(rng.integers(2, 5))
    return n_heads, d_head, *(int(n) for n in rng.integers(1, 4, 3))


def random_marian(rng):
    """Return a random small Marian: widths, heads, layers, ties and so on."""
    n_heads, d_head, encoder_layers, decoder_layers, d_ff = random_sizes(rng)
    is_shared = bool(rng.integers(2))
    vocab_size, decoder_vocab_size = (int(n) for n in rng.integers(12, 20, 2))
    pad_id, another_id = (int(n) for n in rng.choice(range(1, 12), 2, replace=False))
    config = transformers.MarianConfig(
        vocab_size=vocab_size,
        decoder_vocab_size=vocab_size if is_shared else decoder_vocab_size,
        d_model=n_heads * d_head,
        **by_side(attention_heads=n_heads, ffn_dim=8 * d_ff + 1),
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        max_position_embeddings=int(rng.integers(LENGTH, 30)),
        activation_function=str(rng.choice(["swish", "gelu", "relu", "gelu_new", "silu"])),
        scale_embedding=bool(rng.integers(2)),
        share_encoder_decoder_embeddings=is_shared,
        tie_word_embeddings=is_shared or bool(rng.integers(2)),
        pad_token_id=pad_id,
        eos_token_id=0,
        decoder_start_token_id=int(rng.choice([pad_id, pad_id, another_id])),
        attn_implementation="eager",
    )
    return with_all_gradients(transformers.MarianMTModel(config))


def random_bart(rng, name="Bart"):
    """Return a random small BART, or an mBART if the name is "MBart"."""
    n_heads, d_head, encoder_layers, decoder_layers, d_ff = random_sizes(rng)
    pad_id, end_id, another_id = (int(n) for n in rng.choice(12, 3, replace=False))
    config = getattr(transformers, f"{name}Config")(
        vocab_size=int(rng.integers(12, 20)),
        d_model=n_heads * d_head,
        **by_side(attention_heads=n_heads, ffn_dim=8 * d_ff + 1),
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        max_position_embeddings=int(rng.integers(LENGTH, 30)),
        activation_function=str(rng.choice(["gelu", "relu", "gelu_new", "silu"])),
        scale_embedding=bool(rng.integers(2)),
        pad_token_id=pad_id,
        bos_token_id=another_id,
        eos_token_id=end_id,
        forced_eos_token_id=end_id,
        decoder_start_token_id=int(rng.choice([end_id, another_id])),
        attn_implementation="eager",
    )
    return with_all_gradients(getattr(transformers, f"{name}ForConditionalGeneration")(config))


def random_t5(rng):
    """Return a random small T5: the first version, 1.1, with an output of its own or without."""
    n_heads, d_head, encoder_layers, decoder_layers, d_ff = random_sizes(rng)
    pad_id, end_id, another_id = (int(n) for n in rng.choice(12, 3, replace=False))
    config = transformers.T5Config(
        vocab_size=int(rng.integers(12, 20)),
        d_model=n_heads * d_head,
        d_kv=int(rng.choice([d_head, 3, 5])),
        d_ff=8 * d_ff + 1,
        num_heads=n_heads,
        num_layers=encoder_layers,
        num_decoder_layers=decoder_layers,
        relative_attention_num_buckets=int(rng.choice([4, 6, 8])),
        relative_attention_max_distance=int(rng.choice([5, 6, 20])),
        layer_norm_epsilon=float(rng.choice([1e-6, 1e-3])),
        feed_forward_proj=str(rng.choice(["relu", "gated-gelu", "gelu", "gated-silu"])),
        tie_word_embeddings=bool(rng.integers(2)),
        pad_token_id=pad_id,
        eos_token_id=end_id,
        decoder_start_token_id=int(rng.choice([pad_id, another_id])),
        attn_implementation="eager",
    )
    oracle = transformers.T5ForConditionalGeneration(config)
    if rng.integers(2):
        oracle.lm_head.weight = torch.nn.Parameter(torch.randn(oracle.shared.weight.shape))
        oracle.all_tied_weights_keys.pop("lm_head.weight", None)
    return with_all_gradients(oracle)


def compute_in_float64(monkeypatch):
    """Replace the norm of T5 and the softmax of ViT, which are float32, by the same formulas in float64."""

    def rms_norm(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon)

    def attend(module, query, key, value, attention_mask, scaling, dropout=0.0, **settings):
        weights = torch.softmax(query @ key.transpose(2, 3) * scaling, -1)
        return (weights @ value).transpose(1, 2), weights

    norm = transformers.models.t5.modeling_t5.T5LayerNorm
    monkeypatch.setattr(norm, "forward", rms_norm)
    monkeypatch.setattr(transformers.models.vit.modeling_vit, "eager_attention_forward", attend)


def by_side(**sizes):
    """Return the settings of encoder and decoder, which are equal."""
    return {f"{side}_{name}": size for name, size in sizes.items() for side in ("encoder", "decoder")}


def with_all_gradients(oracle):
    """Return a model whose tables have the gradient of the id of padding, too.

    The attribute leaves it out; but a decoder may start with this id, so that would not be the gradient.
    """
    for module in oracle.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    return oracle


def padded(ids, config):
    """Put padding at the end of some sentences (3, T), and nowhere else."""
    ids[ids == config.pad_id] = 5 if config.pad_id != 5 else 6
    ids[1, 3:] = ids[2, 6:] = config.pad_id
    return ids


def random_batch(config, rng):
    """Return what an oracle reads, what our model reads, and the targets."""
    sizes = (config.source_vocab, config.target_vocab)
    source, target = (padded(rng.integers(0, size, (3, LENGTH - 1)), config) for size in sizes)
    target_in = np.concatenate([np.full((3, 1), config.start_id), target[:, :-1]], 1)
    is_token = target_in != config.pad_id
    is_token[:, 0] = True
    theirs = {"input_ids": source, "attention_mask": source != config.pad_id}
    theirs |= {"decoder_input_ids": target_in, "decoder_attention_mask": is_token}
    return theirs, (source, target_in), np.where(target == config.pad_id, IGNORED, target)
