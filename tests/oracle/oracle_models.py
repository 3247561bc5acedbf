"""Whole models: torch.nn.Transformer between embeddings and an output layer, forward and backward."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

D_MODEL, HEADS, D_FF, LAYERS, SMOOTHING = 16, 4, 32, 2, 0.1
PAD, START = 0, 2
SOURCE_LENGTHS, TARGET_LENGTHS = (7, 4, 2), (3, 6, 5)  # shorter sentences are padded

MODELS = {  # source tokens, target tokens, and settings
    "post": (23, 19, {"norm_first": False, "activation": F.relu}),
    "pre": (23, 19, {"norm_first": True, "activation": F.gelu}),
    "tied": (21, 21, {"norm_first": False, "activation": F.silu}),
}


class OracleTransformer(nn.Module):
    """nn.Transformer after √d embeddings plus sinusoids, and before an output layer.

    "pre" has padding_idx: the embedding of padding is 0 and has no gradient. "tied" has one table for source,
    target and output.
    """

    def __init__(self, name):
        super().__init__()
        source_vocab_size, target_vocab_size, settings = MODELS[name]
        sizes = {"dim_feedforward": D_FF, "dropout": 0.0, "batch_first": True}
        layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, **sizes, **settings)
        # nested tensors are an optimization of inference that drops the padding from the output
        encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(D_MODEL), enable_nested_tensor=False)
        self.body = nn.Transformer(
            D_MODEL, HEADS, num_decoder_layers=LAYERS, custom_encoder=encoder, **sizes, **settings
        )
        padding = PAD if name == "pre" else None
        self.source = nn.Embedding(source_vocab_size, D_MODEL, padding_idx=padding)
        self.target = nn.Embedding(target_vocab_size, D_MODEL, padding_idx=padding)
        self.output = nn.Linear(D_MODEL, target_vocab_size)
        if name == "tied":
            self.target.weight = self.output.weight = self.source.weight

    def forward(self, source, target_in):
        length = target_in.shape[1]
        not_seen = torch.ones(length, length, dtype=torch.bool).triu(1)  # True: may not attend
        return self.output(
            self.body(
                self.source(source) * math.sqrt(D_MODEL) + sinusoids(source.shape[1]),
                self.target(target_in) * math.sqrt(D_MODEL) + sinusoids(length),
                tgt_mask=not_seen,
                src_key_padding_mask=source == PAD,
                tgt_key_padding_mask=target_in == PAD,
                memory_key_padding_mask=source == PAD,
            )
        )


def sinusoids(length):
    """Compute interleaved sines and cosines by exp and log, as in the PyTorch tutorial."""
    rate = torch.exp(torch.arange(0, D_MODEL, 2) * (-math.log(10000.0) / D_MODEL))
    angle = torch.arange(length)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).reshape(length, D_MODEL)


def models():
    """Return the inputs, logits, loss, weights and gradients of each model under npformer's names."""
    return {name: run(name, np.random.default_rng(seed)) for seed, name in enumerate(MODELS)}


def run(name, rng):
    """Run one forward and backward pass with random weights, gains and biases included."""
    model = OracleTransformer(name).train()  # dropout is 0: train() only prevents fast paths
    for parameter in model.parameters():
        # multiples of 1/1024 make the file small
        parameter.data = torch.from_numpy(np.round(rng.standard_normal(parameter.shape) * 1024 * 0.3) / 1024)
    for layer in model.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.weight.data += 1  # gains near 1, but not 1
    for table in (model.source, model.target):
        if table.padding_idx is not None:
            table.weight.data[table.padding_idx] = 0
    source_vocab_size, target_vocab_size, _ = MODELS[name]
    source = ragged(rng, SOURCE_LENGTHS, source_vocab_size)
    target = ragged(rng, TARGET_LENGTHS, target_vocab_size)
    target_in = torch.cat([torch.full((len(target), 1), START), target[:, :-1]], 1)
    logits = model(source, target_in)
    loss = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
    )
    loss.backward()
    arrays = {"source": source, "target": target, "target_in": target_in, "logits": logits, "loss": loss}
    arrays.update({f"value/{name}": value for name, value in npformer_names(model, lambda p: p)})
    arrays.update({f"grad/{name}": grad for name, grad in npformer_names(model, lambda p: p.grad)})
    return {key: tensor.detach().numpy().copy() for key, tensor in arrays.items()}


def ragged(rng, lengths, vocab_size):
    """Return random tokens (B, T), the shorter sentences padded at the end."""
    ids = rng.integers(4, vocab_size, (len(lengths), max(lengths)))
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = PAD
    return torch.from_numpy(ids)


def npformer_names(model, of):
    """Yield pairs (npformer's name, of(parameter)); npformer's weights are (in, out), PyTorch's (out, in)."""

    def linear(name, layer):
        yield f"{name}.weight", of(layer.weight).T
        yield f"{name}.bias", of(layer.bias)

    def norm(name, layer):
        yield f"{name}.gain", of(layer.weight)
        yield f"{name}.bias", of(layer.bias)

    def attention(name, layer, cuts):
        for part, rows in cuts.items():
            yield f"{name}.{part}.weight", of(layer.in_proj_weight)[rows].T
            yield f"{name}.{part}.bias", of(layer.in_proj_bias)[rows]
        yield from linear(f"{name}.output", layer.out_proj)

    self_cuts = {"query_key_value": slice(None)}
    cross_cuts = {"query": slice(D_MODEL), "key_value": slice(D_MODEL, None)}
    tied = model.output.weight is model.source.weight
    yield "source.tokens.weight", of(model.source.weight)
    for i, layer in enumerate(model.body.encoder.layers):
        here = f"encoder.layers.{i}"
        yield from attention(f"{here}.self_attention", layer.self_attn, self_cuts)
        yield from norm(f"{here}.norm1", layer.norm1)
        yield from linear(f"{here}.feed_forward.inner", layer.linear1)
        yield from linear(f"{here}.feed_forward.outer", layer.linear2)
        yield from norm(f"{here}.norm2", layer.norm2)
    yield from norm("encoder.norm", model.body.encoder.norm)
    if not tied:
        yield "target.tokens.weight", of(model.target.weight)
    for i, layer in enumerate(model.body.decoder.layers):
        here = f"decoder.layers.{i}"
        yield from attention(f"{here}.self_attention", layer.self_attn, self_cuts)
        yield from norm(f"{here}.norm1", layer.norm1)
        yield from attention(f"{here}.cross", layer.multihead_attn, cross_cuts)
        yield from norm(f"{here}.norm2", layer.norm2)
        yield from linear(f"{here}.feed_forward.inner", layer.linear1)
        yield from linear(f"{here}.feed_forward.outer", layer.linear2)
        yield from norm(f"{here}.norm3", layer.norm3)
    yield from norm("decoder.norm", model.body.decoder.norm)
    if not tied:
        yield "output.weight", of(model.output.weight).T
    yield "output.bias", of(model.output.bias)
