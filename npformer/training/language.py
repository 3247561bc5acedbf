"""Training of language models on the English sentences of the built-in corpus, in less than a minute."""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from npformer.data.codecs import TextCodec
from npformer.data.dataset import PairDataset, builtin_dataset
from npformer.data.loader import Ids
from npformer.data.sentences import (
    MASK,
    MakeBatch,
    Sentence,
    SentenceBatch,
    SentenceLoader,
    causal_batch,
    masked_batch,
    with_mask,
)
from npformer.data.vocabulary import PAD
from npformer.errors import UserError
from npformer.models.bert import MaskedLanguageModel
from npformer.models.transformer import TransformerConfig
from npformer.models.transformer.language_model import CausalLanguageModel
from npformer.training.config import TrainingConfig, make_optimizer, make_schedule
from npformer.training.step import Evaluation, dropout_rngs, evaluate, make_step

SIZES: dict[str, Any] = {
    "d_model": 64,
    "d_ff": 256,
    "n_heads": 4,
    "n_layers": 2,
    "max_length": 32,
    "norm": "pre",
    "final_norm": True,
    "dropout": 0.0,  # the model reads each sentence too few times to overfit
    "label_smoothing": 0.0,
}
TRAINING: dict[str, Any] = {
    "batch_size": 64,
    "schedule": "cosine",
    "learning_rate": 3e-3,
    "clip_norm": 1.0,
}


class TrainedLanguage(NamedTuple):
    """A trained language model with its codec, and its quality on sentences that it was not trained on."""

    model: Any
    codec: TextCodec
    losses: list[float]  # the loss of each step
    held_out: Evaluation
    unigram: float  # the perplexity of a model that knows only the frequencies of the tokens


def train_masked_language_model(*, steps: int = 1500, seed: int = 0, **settings: Any) -> TrainedLanguage:
    """Train a MaskedLanguageModel, which fills gaps in English sentences.

    Args:
        steps: The number of steps.
        seed: The seed of the weights, the batches and the hidden tokens.
        settings: Settings of TransformerConfig.
    """
    dataset = builtin_dataset()
    assert isinstance(dataset.source, TextCodec)  # the built-in corpus has this codec
    codec = with_mask(dataset.source)
    mask_id = codec.vocabulary.id(MASK)
    model = _model(MaskedLanguageModel, codec, seed, settings)
    return _train(model, codec, dataset, lambda tokens, rng: masked_batch(tokens, mask_id, rng), steps, seed)


def train_causal_language_model(*, steps: int = 600, seed: int = 0, **settings: Any) -> TrainedLanguage:
    """Train a CausalLanguageModel, which continues English sentences.

    Args:
        steps: The number of steps.
        seed: The seed of the weights and the batches.
        settings: Settings of TransformerConfig.
    """
    dataset = builtin_dataset()
    assert isinstance(dataset.source, TextCodec)  # the built-in corpus has this codec
    model = _model(CausalLanguageModel, dataset.source, seed, settings)
    return _train(model, dataset.source, dataset, lambda tokens, rng: causal_batch(tokens), steps, seed)


def _model(kind: Callable[..., Any], codec: TextCodec, seed: int, settings: dict[str, Any]) -> Any:
    """Return a model for the words of the codec, small unless the settings say otherwise."""
    vocab_size = len(codec.vocabulary)
    sizes = SIZES | {"source_vocab": vocab_size, "target_vocab": vocab_size}
    return kind(TransformerConfig(**(sizes | settings)), rng=np.random.default_rng(seed))


def _train(
    model: Any, codec: TextCodec, dataset: PairDataset, make: MakeBatch, steps: int, seed: int
) -> TrainedLanguage:
    """Train a model on the English sentences of a dataset, and evaluate it on those for validation."""
    config = TrainingConfig(steps=steps, seed=seed, warmup_steps=max(1, steps // 10), **TRAINING)
    train, valid = ([english for english, _ in part] for part in (dataset.train, dataset.valid))
    losses = fit(model, train, make, config)
    training, held_out = (
        SentenceLoader(part, make, **config.batching).every_sentence() for part in (train, valid)
    )
    unigram = unigram_perplexity(training, held_out, len(codec.vocabulary))
    return TrainedLanguage(model, codec, losses, evaluate(model, held_out), unigram)


def fit(model: Any, sentences: Sequence[Sentence], make: MakeBatch, config: TrainingConfig) -> list[float]:
    """Train a model on sentences without START and END. The result depends on the arguments only.

    Args:
        model: The model to train.
        sentences: The token ids of each sentence.
        make: Makes a batch of some sentences.
        config: The settings of the training.

    Returns:
        The loss of each step.

    Raises:
        UserError: If the configuration counts epochs.
        NotFiniteError: If a loss is NaN or infinite.
    """
    steps = config.steps
    if steps is None:
        raise UserError("steps is None: fit needs a number of steps")
    schedule = make_schedule(config, model.config.d_model, steps)
    optimizer = make_optimizer(config, model)
    losses = []
    loader = SentenceLoader(sentences, make, **config.batching)
    for step, batches in enumerate(islice(loader.steps(), steps), 1):
        rngs = dropout_rngs(config.seed, step, len(batches))
        loss, _, _ = make_step(model, optimizer, batches, rngs, schedule(step), config.clip_norm)
        losses.append(loss)
    return losses


def unigram_perplexity(
    training: Sequence[SentenceBatch], held_out: Sequence[SentenceBatch], vocab_size: int
) -> float:
    """Return exp(-mean log p(token)) over the held-out tokens, with p the frequency of a token in training.

    One is added to every count, so that no token has the probability 0.

    Args:
        training: The batches in which the tokens are counted.
        held_out: The batches whose tokens are predicted.
        vocab_size: The size of the vocabulary, V.
    """
    counts = np.bincount(_targets(training), minlength=vocab_size) + 1  # (V,)
    return math.exp(-np.log(counts / counts.sum())[_targets(held_out)].mean())


def _targets(batches: Sequence[SentenceBatch]) -> Ids:
    """Return all tokens to predict, (N,)."""
    return np.concatenate([batch.target_out[batch.target_out != PAD] for batch in batches])
