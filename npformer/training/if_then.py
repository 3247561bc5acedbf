"""Training of models on if-then recipes, which takes seconds and is the same for every model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from npformer.data.codecs import TextCodec
from npformer.data.if_then import ACTIONS, TRIGGERS, Examples, encode_recipes, recipe_codec, recipe_corpus
from npformer.models.if_then import BagOfWords, ProgramLoss, RecipeReader
from npformer.training.optimizer import Adam, clip_global_norm, cosine
from npformer.validation import require_choice, require_count

MODELS: dict[str, type] = {"latent": RecipeReader, "bag": BagOfWords}
STEPS = 400
BATCH = 64
LEARNING_RATE = 0.02
CLIP = 1.0


class ProgramAccuracy(NamedTuple):
    """The shares of recipes whose trigger, action and whole program a model predicts correctly."""

    trigger: float
    action: float
    both: float


class TrainedReader(NamedTuple):
    """A trained model with its codec, and its accuracy on held-out recipes."""

    model: Any
    codec: TextCodec
    score: ProgramAccuracy

    def read(self, description: str) -> tuple[str, str, Any]:
        """Return (trigger, action, cache) of one description.

        Raises:
            UserError: If the description is empty.
        """
        ids = np.array([self.codec.encode(description, strict=True)])
        program, cache = self.model.forward(ids)
        return TRIGGERS[int(program.trigger.argmax())], ACTIONS[int(program.action.argmax())], cache

    def unknown_words(self, description: str) -> list[str]:
        """Return the words of a description that are not in the vocabulary, each once."""
        return self.codec.vocabulary.unknown(self.codec.words(description))


def train_recipes(
    kind: str = "latent",
    *,
    steps: int = STEPS,
    seed: int = 0,
    report: Callable[[int, float], None] | None = None,
    **settings: Any,
) -> TrainedReader:
    """Train a model on the built-in recipes, and evaluate it on held-out ones.

    The result depends on the arguments only.

    Args:
        kind: "latent" for RecipeReader, "bag" for BagOfWords.
        steps: The number of steps.
        seed: The seed of the weights and the batches.
        report: Called with the step and its loss after every step, or None.
        settings: Settings of the model.

    Raises:
        UserError: If the kind is unknown, or steps is not 1 or more.
    """
    require_choice("kind", kind, tuple(MODELS))
    require_count("steps", steps)
    corpus = recipe_corpus()
    codec = recipe_codec(corpus.train)
    sizes = len(codec.vocabulary), len(TRIGGERS), len(ACTIONS)
    model = MODELS[kind](*sizes, rng=np.random.default_rng(seed), **settings)
    fit(model, encode_recipes(corpus.train, codec), steps=steps, seed=seed, report=report)
    return TrainedReader(model, codec, score(model, encode_recipes(corpus.test, codec)))


def fit(
    model: Any,
    examples: Examples,
    *,
    steps: int,
    seed: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train a model with Adam. Each step draws a batch of examples.

    Args:
        model: The model.
        examples: The recipes to train on.
        steps: The number of steps.
        seed: The seed of the batches.
        report: Called with the step and its loss after every step, or None.
    """
    rng = np.random.default_rng([seed, 1])  # differs from the generator of the weights
    loss, adam = ProgramLoss(model), Adam(model)
    schedule = cosine(LEARNING_RATE, steps, max(1, steps // 10))
    for step in range(1, steps + 1):
        model.zero_grad()
        mean, cache = loss.forward(*examples.of(rng.integers(0, len(examples.ids), BATCH)))
        loss.backward(1.0, cache)
        clip_global_norm(model.grads, CLIP)
        adam.step(schedule(step))
        if report is not None:
            report(step, float(mean))


def score(model: Any, examples: Examples) -> ProgramAccuracy:
    """Return the shares of triggers, of actions and of whole programs that the model predicts correctly."""
    program, _ = model.forward(examples.ids)
    trigger = program.trigger.argmax(-1) == examples.triggers  # (N,)
    action = program.action.argmax(-1) == examples.actions
    return ProgramAccuracy(float(trigger.mean()), float(action.mean()), float((trigger & action).mean()))
