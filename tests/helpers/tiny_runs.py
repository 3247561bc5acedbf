"""Checkpoints of tiny untrained models of each kind, as training would leave them."""

import numpy as np
from toy_pretrained import checkpoint_of, toy_checkpoint

from npformer.data import TextCodec
from npformer.data.sentences import with_mask
from npformer.data.text_codecs import CharacterCodec
from npformer.models.bert import Bert, BertConfig
from npformer.models.gpt import GPT, GPTConfig

WORDS = "the cat sees a dog and eats it"
CHARACTERS = CharacterCodec("\n abcdeghnost")
SENTENCES = with_mask(TextCodec.from_lines([WORDS]))


def wide(model, rng):
    """Make the weights larger, so that the model is far from linear and attends to some tokens more."""
    for parameter in model.parameters():
        parameter.value[...] += rng.normal(0, 0.3, parameter.shape)
    return model


def gpt_checkpoint(**changes):
    """Return the checkpoint of a GPT of two layers with two heads, which reads 12 characters, in float64."""
    sizes = {"vocab_size": len(CHARACTERS.tokens), "d_model": 8, "n_layers": 2, "n_heads": 2, "context": 12}
    rng = np.random.default_rng(1)
    model = wide(GPT(GPTConfig(**(sizes | changes)), rng=rng, dtype=np.float64), rng)
    return checkpoint_of(model, "gpt", {"text": CHARACTERS.to_json()})


def bert_checkpoint(**changes):
    """Return the checkpoint of a BERT of two layers with two heads, which reads 10 words, in float64."""
    sizes = {"vocab_size": len(SENTENCES.tokens), "d_model": 8, "n_layers": 2, "n_heads": 2, "max_length": 10}
    rng = np.random.default_rng(2)
    model = wide(Bert(BertConfig(**(sizes | changes)), rng=rng, dtype=np.float64), rng)
    return checkpoint_of(model, "bert", {"sentences": SENTENCES.to_json()})


CHECKPOINTS = {"translator": toy_checkpoint, "gpt": gpt_checkpoint, "bert": bert_checkpoint}
