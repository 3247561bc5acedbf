"""Training a model of one language on the built-in corpus's English, in less than a minute."""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from npformer.data.datasets import builtin_dataset
from npformer.data.sentences import MASK, SentenceBatch, hidden_words, next_words, with_mask
from npformer.data.vocabulary import PAD, TextCodec
from npformer.errors import UserError
from npformer.optim import Adam
from npformer.training.config import TrainingConfig, make_schedule
from npformer.training.step import Evaluation, dropout_rngs, evaluate, make_step
from npformer.training.stream import plan_epoch, planned_steps
from npformer.transformer import MaskedWordModel, NextWordModel, TransformerConfig

Sentence = Sequence[int]
# makes a batch of some sentences; what it draws comes from the generator
MakeBatch = Callable[[Sequence[Sentence], np.random.Generator], SentenceBatch]

SIZES: dict[str, Any] = {
    "d_model": 64,
    "d_ff": 256,
    "n_heads": 4,
    "n_layers": 2,
    "max_length": 32,
    "norm": "pre",
    "final_norm": True,
    "dropout": 0.0,  # a sentence is read a few times: too seldom to be learned by heart
    "label_smoothing": 0.0,
}
TRAINING: dict[str, Any] = {
    "batch_size": 64,
    "schedule": "cosine",
    "learning_rate": 3e-3,
    "clip_norm": 1.0,
}


class TrainedLanguage(NamedTuple):
    """A model with the words that it knows, and how well it names those of sentences it never saw."""

    model: Any
    codec: TextCodec
    losses: list[float]  # of each step
    held_out: Evaluation
    unigram: float  # the perplexity, on the same words, of who knows how frequent each word is and no more


def train_masked_words(*, steps: int = 1500, seed: int = 0, **settings: Any) -> TrainedLanguage:
    """A MaskedWordModel that fills gaps in English sentences; settings are those of TransformerConfig."""
    dataset = builtin_dataset()
    assert isinstance(dataset.source, TextCodec)  # of the built-in corpus
    codec = with_mask(dataset.source)
    mask_id = codec.vocabulary.id(MASK)
    model = _model(MaskedWordModel, codec, seed, settings)
    return _train(model, codec, dataset, lambda words, rng: hidden_words(words, mask_id, rng), steps, seed)


def train_next_words(*, steps: int = 600, seed: int = 0, **settings: Any) -> TrainedLanguage:
    """A NextWordModel that goes on with English sentences; settings are those of TransformerConfig."""
    dataset = builtin_dataset()
    model = _model(NextWordModel, dataset.source, seed, settings)
    return _train(model, dataset.source, dataset, lambda words, rng: next_words(words), steps, seed)


def _model(kind, codec, seed, settings):
    """A model of the codec's words, small unless the settings say otherwise."""
    n_words = len(codec.vocabulary)
    sizes = SIZES | {"source_vocab": n_words, "target_vocab": n_words}
    return kind(TransformerConfig(**(sizes | settings)), rng=np.random.default_rng(seed))


def _train(model, codec, dataset, make, steps, seed):
    """Train a model on the English of a dataset, and measure it on that of its validation."""
    config = TrainingConfig(steps=steps, seed=seed, warmup_steps=max(1, steps // 10), **TRAINING)
    sentences, unseen = ([english for english, _ in part] for part in (dataset.train, dataset.valid))
    losses = fit(model, sentences, make, config)
    seen, asked = (every_sentence(part, make, config) for part in (sentences, unseen))
    unigram = unigram_perplexity(seen, asked, len(codec.vocabulary))
    return TrainedLanguage(model, codec, losses, evaluate(model, asked), unigram)


def fit(model: Any, sentences: Sequence[Sentence], make: MakeBatch, config: TrainingConfig) -> list[float]:
    """Train a model on sentences without START and END. Returns the loss of each step.

    The result is a function of the arguments alone.
    Errors: UserError for a configuration by epochs. NotFiniteError for a loss that is NaN or infinite.
    """
    steps = config.steps
    if steps is None:
        raise UserError("steps is None: fit needs a number of steps")
    schedule = make_schedule(config, model.config.d_model, steps)
    adam = Adam(model, betas=config.betas, eps=config.eps)
    losses = []
    for step, plan in enumerate(islice(planned_steps(_lengths(sentences), config), steps), 1):
        batches = [
            make([sentences[i] for i in indices], batch_rng(config.seed, step, batch))
            for batch, indices in enumerate(plan)
        ]
        rngs = dropout_rngs(config.seed, step, len(batches))
        loss, _, _ = make_step(model, adam, batches, rngs, schedule(step), config.clip_norm)
        losses.append(loss)
    return losses


def every_sentence(
    sentences: Sequence[Sentence], make: MakeBatch, config: TrainingConfig
) -> list[SentenceBatch]:
    """All sentences in batches, the same ones each time: what is drawn counts as that of step 0."""
    plan = plan_epoch(_lengths(sentences), config, 0)
    return [
        make([sentences[i] for i in indices], batch_rng(config.seed, 0, batch))
        for batch, indices in enumerate(plan)
    ]


def batch_rng(seed: int, step: int, batch: int) -> np.random.Generator:
    """The generator for what a batch hides: a function of the three, with no state.

    The last number keeps it apart from those of dropout_rngs, which have three.
    """
    return np.random.default_rng([seed, batch, step, 1])


def unigram_perplexity(seen: Sequence[SentenceBatch], asked: Sequence[SentenceBatch], n_words: int) -> float:
    """exp(-mean log p(word)) of the words asked for, with p the frequency of each among those seen.

    Every word counts once more than it was seen, so that none is impossible.
    """
    counts = np.bincount(_targets(seen), minlength=n_words) + 1  # (V,)
    return math.exp(-np.log(counts / counts.sum())[_targets(asked)].mean())


def _targets(batches):
    """All words to be named. Shapes: -> (N,)."""
    return np.concatenate([batch.target_out[batch.target_out != PAD] for batch in batches])


def _lengths(sentences):
    """What a sentence takes in a batch, START or END included. Shapes: -> (N,)."""
    return np.array([len(words) + 1 for words in sentences])
