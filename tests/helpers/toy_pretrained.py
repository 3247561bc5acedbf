"""An untrained translator with subwords, and its card, in place of a pretrained translator."""

import numpy as np

from npformer.data import LANGUAGES, SPECIALS, Vocabulary
from npformer.data.subwords import SubwordCodec
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.pretrained import Card
from npformer.storage.checkpoint import Checkpoint
from npformer.training import TrainingConfig

# the letters of both languages, and subwords such as training would make
PIECES = ["▁a", "▁m", "an", "▁man", "ng", "ing", "▁r", "id", "▁rid", "▁i", "▁is", "ein", "▁ein", "en", "▁f"]
LETTERS = "▁abcdefghijklmnopqrstuvwxyzäöüß.,!?&;#0123456789-"
SENTENCE = "A man is riding a bicycle."


def toy_codec(language, pieces=PIECES):
    """Return a codec of tokenised text."""
    return SubwordCodec(Vocabulary((*SPECIALS, *pieces, *LETTERS)), LANGUAGES[language], text="tokenised")


def checkpoint_of(model, kind, codecs, **changes):
    """Return a checkpoint of a model after its last step, without the moments of Adam."""
    fields = {
        "step": 1,
        "best_loss": None,
        "training_settings": TrainingConfig(steps=1, batch_size=2).to_dict(),
        "dataset": {},
        "fingerprint": "",
        "backend": "numpy",
        **dict.fromkeys(("threads", "workers", "ranks"), 1),
        **dict.fromkeys(("m", "v")),
    }
    made = {"model_kind": kind, "model_settings": model.config.to_dict(), "codecs": codecs}
    return Checkpoint(**fields | made | {"parameters": model.state_dict()} | changes)


def toy_checkpoint(*, source=None, target=None, seed=0, **changes):
    """Return a checkpoint of two layers with two heads and one vocabulary for both languages."""
    source, target = source or toy_codec("en"), target or toy_codec("de")
    sizes = {"source_vocab": len(source.vocabulary), "target_vocab": len(source.vocabulary)}
    small = {"d_model": 16, "d_ff": 16, "n_heads": 2, "n_layers": 2, "max_length": 128, "tied": "all"}
    config = TransformerConfig(**(small | sizes | changes))
    model = Transformer(config, rng=np.random.default_rng(seed))
    moments = np.zeros(model.count_parameters(), np.float32)
    codecs = {"source": source.to_json(), "target": target.to_json()}
    training = TrainingConfig(steps=7, batch_size=2).to_dict()
    after = {"step": 7, "best_loss": 2.5, "training_settings": training, "m": moments, "v": moments}
    return checkpoint_of(model, "transformer", codecs, **after)


FIELDS = {
    "title": "English to German",
    "data": "29,000 sentences of a test's making",
    "licence": "for tests",
    "training": "4 + 4 layers | none of them trained",
    "command": "npformer train --preset toy",
    "hours": 2.5,
    "machine": "two cores",
    "date": "2026-01-31",
    "example": SENTENCE,
    "comparison": "another model has 40 BLEU",
}

# what npformer score --json of an earlier version printed
MEASURED = {
    "source": "test.en",
    "reference": "test.de",
    "setting": "tokenised",
    "bleu": 12.345,
    "signature": "nrefs:1|tok:none",
    "beam": 5,
    "length_penalty": 0.6,
    "sentences": 1000,
    "empty": 0,
    "weights": "",
}


def toy_card(**changes):
    """Return a card without scores."""
    return Card(**(FIELDS | changes))
