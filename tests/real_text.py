"""Train on the first 5,000 pairs of two files for 300 steps: the loss must fall well below chance.

python tests/real_text.py train.en.gz train.de.gz. Chance is the unigram entropy of the target: the loss of a
model that knows how often each word occurs and nothing else.
"""

import math
import sys
import tempfile
from collections import Counter

import numpy as np

from npformer.data.dataset import files_dataset
from npformer.models.transformer import TransformerConfig
from npformer.training import read_log, train
from npformer.training.presets import find_preset

PAIRS, STEPS, BELOW = 5000, 300, 0.5  # nats below chance


def unigram_entropy(examples):
    """Return the entropy in nats per token, end symbols included. examples: pairs of id lists."""
    counts = Counter(word for _, target in examples for word in [*target, -1])
    shares = np.array(list(counts.values())) / sum(counts.values())
    return float(-(shares * np.log(shares)).sum())


def main(source, target):
    """Return 0 if the validation loss ends well below the unigram entropy, otherwise 1."""
    dataset = files_dataset(source, target, limit=PAIRS, max_length=40, vocab_size=4000, min_count=2)
    model = TransformerConfig.architecture(
        "small",
        d_model=128,
        d_ff=256,
        source_vocab=len(dataset.source.vocabulary),
        target_vocab=len(dataset.target.vocabulary),
    )
    recipe = find_preset("small").training.replace(steps=STEPS, warmup_steps=60, validate_every=100)
    with tempfile.TemporaryDirectory() as folder:
        train(f"{folder}/run", dataset, model, recipe)
        lines = read_log(f"{folder}/run")
    losses = [line["valid_loss"] for line in lines if "valid_loss" in line]
    chance = unigram_entropy(dataset.train)
    print(
        f"{len(dataset.train)} pairs, {len(dataset.target.vocabulary)} target words; validation loss "
        f"{' '.join(f'{loss:.3f}' for loss in losses)}; unigram entropy {chance:.3f}"
    )
    if not (losses and math.isfinite(losses[-1]) and losses[-1] < chance - BELOW):
        print(f"the validation loss must end {BELOW} below the unigram entropy")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
