"""A translator of subwords that has learned nothing, and its card: what stands for the one that ships."""

import numpy as np

from npformer.data import LANGUAGES, SPECIALS, Vocabulary
from npformer.data.subwords import SubwordCodec
from npformer.pretrained import Card
from npformer.training import Checkpoint, TrainingConfig
from npformer.transformer import Transformer, TransformerConfig

# the letters of both languages, and what training would have joined
PIECES = ["▁a", "▁m", "an", "▁man", "ng", "ing", "▁r", "id", "▁rid", "▁i", "▁is", "ein", "▁ein", "en", "▁f"]
LETTERS = "▁abcdefghijklmnopqrstuvwxyzäöüß.,!?&;#0123456789-"
SENTENCE = "A man is riding a bicycle."


def toy_codec(language, pieces=PIECES):
    """A codec of tokenised text."""
    return SubwordCodec(Vocabulary((*SPECIALS, *pieces, *LETTERS)), LANGUAGES[language], text="tokenised")


def toy_checkpoint(*, source=None, target=None, seed=0, **changes):
    """A checkpoint of two layers with two heads, one vocabulary for both languages."""
    source, target = source or toy_codec("en"), target or toy_codec("de")
    sizes = {"source_vocab": len(source.vocabulary), "target_vocab": len(source.vocabulary)}
    small = {"d_model": 16, "d_ff": 16, "n_heads": 2, "n_layers": 2, "max_length": 128, "tied": "all"}
    config = TransformerConfig(**(small | sizes | changes))
    model = Transformer(config, rng=np.random.default_rng(seed))
    moments = np.zeros(model.count_parameters(), np.float32)
    return Checkpoint(
        step=7,
        best_loss=2.5,
        model_config=config,
        training_config=TrainingConfig(steps=7, batch_size=2),
        source=source,
        target=target,
        dataset={},
        fingerprint="",
        backend="numpy",
        threads=1,
        workers=1,
        ranks=1,
        parameters=model.state(),
        m=moments,
        v=moments,
    )


FIELDS = {
    "title": "English to German",
    "data": "29,000 sentences of a test's making",
    "licence": "for tests",
    "recipe": "4 + 4 layers | none of them trained",
    "command": "npformer train --recipe toy",
    "hours": 2.5,
    "machine": "two cores",
    "date": "2026-01-31",
    "example": SENTENCE,
}


def toy_card(**changes):
    """A card without scores."""
    return Card(**(FIELDS | changes))
