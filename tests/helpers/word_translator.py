"""An untrained translator of whole words, which is small enough for a live page of the explorer."""

import numpy as np
from tiny_runs import wide
from toy_pretrained import checkpoint_of

from npformer.data import LANGUAGES, TextCodec
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.pretrained import Translator

ENGLISH = ["the dog is tired", "the animal didn't cross the street because it was too wide", "a cat sees it"]
FRENCH = ["le chien est fatigué", "l'animal n'a pas traversé la rue parce qu'elle était large", "un chat"]
SOURCE = TextCodec.from_lines(ENGLISH, language=LANGUAGES["en"])
TARGET = TextCodec.from_lines(FRENCH, language=LANGUAGES["fr"])
SMALL = {"d_model": 8, "d_ff": 12, "n_heads": 2, "n_layers": 2, "max_length": 64, "tied": "output"}


def word_model(seed=0, **changes):
    """Return a model with two layers and two heads."""
    sizes = {"source_vocab": len(SOURCE.tokens), "target_vocab": len(TARGET.tokens)}
    rng = np.random.default_rng(seed)
    return wide(Transformer(TransformerConfig(**(sizes | SMALL | changes)), rng=rng), rng)


def word_translator(**changes):
    """Return the translator with that model, as npformer.load returns one."""
    return Translator.of_codecs(word_model(**changes), SOURCE, TARGET, name="runs/toy")


def word_checkpoint(**changes):
    """Return a checkpoint of the translator."""
    codecs = {"source": SOURCE.to_json(), "target": TARGET.to_json()}
    return checkpoint_of(word_model(**changes), "transformer", codecs)
