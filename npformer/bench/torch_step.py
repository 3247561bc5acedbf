"""The same training step in PyTorch, as its users write it. Only a process that measures it imports this."""

import math
from collections.abc import Callable

import torch
from torch import nn

from npformer.bench.setups import BETAS, DROPOUT, EPS, LEARNING_RATE, SEED, SMOOTHING, Setup
from npformer.data.vocabulary import PAD
from npformer.positions import sinusoids


class Translator(nn.Module):
    """nn.Transformer between its embeddings and its output.

    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).
    """

    positions: torch.Tensor

    def __init__(self, setup: Setup):
        super().__init__()
        d_model, n_layers = setup.d_model, setup.n_layers
        self.scale = math.sqrt(d_model)
        self.source = nn.Embedding(setup.words, d_model)
        self.target = self.source if setup.tied else nn.Embedding(setup.words, d_model)
        self.body = nn.Transformer(
            d_model, setup.n_heads, n_layers, n_layers, setup.d_ff, DROPOUT, batch_first=True
        )
        self.output = nn.Linear(d_model, setup.words, bias=not setup.tied)
        for embedding in {self.source, self.target}:
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
        if setup.tied:
            self.output.weight = self.source.weight
        self.register_buffer("positions", torch.tensor(sinusoids(setup.length, d_model), dtype=torch.float32))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, source, target_in):
        """Returns the logits."""
        length = target_in.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=target_in.device).triu(1)
        x = self.body(
            self._embed(self.source, source),
            self._embed(self.target, target_in),
            tgt_mask=future,  # here True hides
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target_in == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(x)

    def _embed(self, embedding, ids):
        return self.dropout(embedding(ids) * self.scale + self.positions[: ids.shape[1]])


def torch_step(setup: Setup, *, threads: int, device: str, tf32: bool) -> Callable[[], float]:
    """One update of the model on the setup's batch: call it as often as you like. It returns the loss."""
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    model = Translator(setup).to(device).train()
    source, target_in, target_out = (torch.from_numpy(ids).to(device) for ids in setup.batch())
    cross_entropy = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    adam = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPS)

    def step() -> float:
        logits = model(source, target_in)
        loss = cross_entropy(logits.flatten(0, 1), target_out.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.item()  # which waits for the GPU, too

    return step


def torch_peak(device: str) -> int | None:
    """The most bytes that tensors held on the GPU; None where they lie on the host."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else None
