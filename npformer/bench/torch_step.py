"""The same training step in PyTorch, in its usual form. Only processes that measure it import this module."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from npformer.bench.setups import (
    BETAS,
    DROPOUT,
    EPS,
    GPT_BETAS,
    GPT_EPS,
    LEARNING_RATE,
    SEED,
    SMOOTHING,
    WEIGHT_DECAY,
    AnySetup,
    Setup,
)
from npformer.bench.torch_gpt import TorchGPT
from npformer.data.vocabulary import PAD
from npformer.functional.positions import sinusoids


class Translator(nn.Module):
    """A translation model: nn.Transformer between embeddings and output.

    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).
    """

    positions: torch.Tensor

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        d_model, n_layers = setup.d_model, setup.n_layers
        self.scale = math.sqrt(d_model)
        self.source = nn.Embedding(setup.vocab_size, d_model)
        self.target = self.source if setup.tied else nn.Embedding(setup.vocab_size, d_model)
        self.body = nn.Transformer(
            d_model, setup.n_heads, n_layers, n_layers, setup.d_ff, DROPOUT, batch_first=True
        )
        self.output = nn.Linear(d_model, setup.vocab_size, bias=not setup.tied)
        for embedding in {self.source, self.target}:
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
        if setup.tied:
            self.output.weight = self.source.weight
        self.register_buffer("positions", torch.tensor(sinusoids(setup.length, d_model), dtype=torch.float32))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, source: torch.Tensor, target_in: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        length = target_in.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=target_in.device).triu(1)
        x = self.body(
            self._embed(self.source, source),
            self._embed(self.target, target_in),
            tgt_mask=future,  # in PyTorch, True means that the position is masked out
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target_in == PAD,
            memory_key_padding_mask=source == PAD,
        )
        logits: torch.Tensor = self.output(x)
        return logits

    def _embed(self, embedding: nn.Embedding, ids: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = self.dropout(embedding(ids) * self.scale + self.positions[: ids.shape[1]])
        return x


def torch_step(
    setup: AnySetup, *, threads: int, device: str, tf32: bool, compiled: bool = False
) -> Callable[[], float]:
    """Return a function that makes one update of the model on the setup's batch and returns the loss.

    Args:
        setup: The model and its batch.
        threads: The number of threads of PyTorch.
        device: "cpu" or "cuda".
        tf32: Allow products on a GPU to round their factors to TF32.
        compiled: Compile the model with torch.compile, and let one kernel update all parameters (fused Adam).
    """
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    model, adam, smoothing = make_model(setup, device, fused=compiled)
    if compiled:
        model.compile()
    *inputs, targets = (torch.from_numpy(ids).to(device) for ids in setup.batch())
    cross_entropy = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=smoothing)

    def step() -> float:
        logits = model(*inputs)
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
        adam.zero_grad()
        loss.backward()
        if setup.clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), setup.clip_norm)
        adam.step()
        return float(loss.item())  # item() also waits for the GPU

    return step


def make_model(setup: AnySetup, device: str, fused: bool) -> tuple[nn.Module, torch.optim.Optimizer, float]:
    """Return a model on the device, its optimizer and its label smoothing. Only matrices of a GPT decay.

    Args:
        setup: The model and its batch.
        device: "cpu" or "cuda".
        fused: Update all parameters in one kernel.
    """
    settings: dict[str, Any] = {"lr": LEARNING_RATE, "fused": fused}
    if isinstance(setup, Setup):
        translator = Translator(setup).to(device).train()
        adam = torch.optim.Adam(translator.parameters(), **settings, betas=BETAS, eps=EPS)
        return translator, adam, SMOOTHING
    model = TorchGPT(setup.config()).to(device).train()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    return model, torch.optim.AdamW(groups, **settings, betas=GPT_BETAS, eps=GPT_EPS), 0.0


def torch_peak(device: str) -> int | None:
    """Return the peak of the bytes that PyTorch holds on the GPU; None if the tensors are on the host."""
    return torch.cuda.max_memory_reserved() if device == "cuda" else None
