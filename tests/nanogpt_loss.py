"""Train nanoGPT's CPU setting with npformer and with PyTorch: python tests/nanogpt_loss.py TEXT

Both models start with the same weights and get the same batches. The settings are those of nanoGPT for the
characters of Tiny Shakespeare on a CPU. The validation losses after 2,000 steps must agree to 0.01.
"""

import argparse
import gzip
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import torch
from torch.nn import functional
from torch_gpt_weights import copy_weights

from npformer.bench.torch_gpt import TorchGPT
from npformer.data.sentences import SentenceBatch
from npformer.kernels import cross_entropy
from npformer.models.gpt import GPT, GPTConfig
from npformer.training.optimizer import AdamW
from npformer.training.process import keep_freed_memory_in_process
from npformer.training.step import make_step

SENTENCES, WARM_UP, PEAK, FLOOR = 12, 100, 1e-3, 1e-4
BETAS, WEIGHT_DECAY, CLIP = (0.9, 0.99), 0.1, 1.0
LARGEST_DIFFERENCE = 0.01


def read_ids(path):
    """Return the ids of the characters, from 1 on, since SentenceBatch reserves 0 for padding."""
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode()
    return np.unique(list(text), return_inverse=True)[1] + 1


def learning_rate(step, steps):
    """Return nanoGPT's learning rate of a step, counted from 0."""
    if step < WARM_UP:
        return PEAK * (step + 1) / (WARM_UP + 1)
    done = (step - WARM_UP) / (steps - WARM_UP)
    return FLOOR + (PEAK - FLOOR) * (1 + math.cos(math.pi * done)) / 2


class Torch:
    """PyTorch's model with its optimizer."""

    def __init__(self, model):
        self.model = TorchGPT(model.config)
        copy_weights(model, self.model)
        groups = [[p for p in self.model.parameters() if (p.dim() > 1) == matrix] for matrix in (True, False)]
        self.adam = torch.optim.AdamW(
            [{"params": groups[0], "weight_decay": WEIGHT_DECAY}, {"params": groups[1], "weight_decay": 0.0}],
            betas=BETAS,
        )

    def loss(self, batch):
        logits = self.model(torch.from_numpy(batch.ids))
        return functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(batch.target_out).flatten())

    def step(self, batch, lr):
        for group in self.adam.param_groups:
            group["lr"] = lr
        self.adam.zero_grad()
        self.loss(batch).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.adam.step()


def batches_of(ids, context):
    """Yield the batches of a text, without overlap."""
    rows = (len(ids) - 1) // context
    for start in range(0, rows, SENTENCES):
        part = ids[start * context : min(rows, start + SENTENCES) * context + 1]
        yield SentenceBatch(part[:-1].reshape(-1, context), part[1:].reshape(-1, context))


def validation_losses(model, oracle, ids):
    """Return npformer's and PyTorch's mean loss of a character."""
    losses, tokens = np.zeros(2), 0
    for batch in batches_of(ids, model.config.context):
        own, _ = cross_entropy(model(batch.ids), batch.target_out)
        with torch.no_grad():
            losses += batch.tokens * np.array([own, oracle.loss(batch).item()])
        tokens += batch.tokens
    return losses / tokens


def main():
    """Train both models and print their validation losses. Return 1 if they differ too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", help="a text file, or a .gz file")
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory_in_process()
    ids = read_ids(arguments.text)
    train, valid = np.split(ids, [int(0.9 * len(ids))])
    config = GPTConfig.preset("small", vocab_size=int(ids.max()) + 1)
    model = GPT(config, rng=np.random.default_rng(0))
    oracle = Torch(model)
    adam = AdamW(model, betas=BETAS, eps=1e-8, weight_decay=WEIGHT_DECAY)
    rng = np.random.default_rng(1)
    for step in range(arguments.steps):
        starts = rng.integers(0, len(train) - config.context, SENTENCES)
        windows = train[starts[:, None] + np.arange(config.context + 1)]
        batch, lr = SentenceBatch(windows[:, :-1], windows[:, 1:]), learning_rate(step, arguments.steps)
        loss, _, _ = make_step(model, adam, [batch], None, lr, CLIP)
        oracle.step(batch, lr)
        if (step + 1) % 250 == 0:
            some = slice(0, 100 * config.context)
            print(
                step + 1, f"training {loss:.4f}, validation", *validation_losses(model, oracle, valid[some])
            )
            sys.stdout.flush()
    own, theirs = validation_losses(model, oracle, valid)
    print(f"validation loss of npformer {own:.4f}, of PyTorch {theirs:.4f}, difference {own - theirs:+.4f}")
    return int(abs(own - theirs) > LARGEST_DIFFERENCE)


if __name__ == "__main__":
    sys.exit(main())
