"""Training a reader of recipes, in seconds: the whole protocol, the same for every model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from npformer.data.recipes import ACTIONS, TRIGGERS, Examples, encode_recipes, recipe_codec, recipe_corpus
from npformer.data.vocabulary import TextCodec
from npformer.ifthen import BagOfWords, ProgramLoss, RecipeReader
from npformer.optim import Adam, clip_global_norm, cosine
from npformer.settings import require_choice, require_count

MODELS: dict[str, type] = {"latent": RecipeReader, "bag": BagOfWords}
STEPS = 400
BATCH = 64
LEARNING_RATE = 0.02
CLIP = 1.0


class Score(NamedTuple):
    """Which share of recipes was read right."""

    trigger: float
    action: float
    both: float


class TrainedReader(NamedTuple):
    """A model that can read, with the words that it knows, and how well it reads what was held out."""

    model: Any
    codec: TextCodec
    score: Score

    def read(self, description: str) -> tuple[str, str, Any]:
        """Returns (trigger, action, cache) of one description. Errors: UserError for an empty one."""
        ids = np.array([self.codec.encode(description, strict=True)])
        program, cache = self.model.forward(ids)
        return TRIGGERS[int(program.trigger.argmax())], ACTIONS[int(program.action.argmax())], cache

    def unknown_words(self, description: str) -> list[str]:
        """The words of a description that the model has never seen, each once."""
        return self.codec.vocabulary.unknown(self.codec.words(description))


def train_recipes(
    kind: str = "latent",
    *,
    steps: int = STEPS,
    seed: int = 0,
    report: Callable[[int, float], None] | None = None,
    **settings: Any,
) -> TrainedReader:
    """Train a model on the built-in recipes, and try it on those that were held out.

    kind is "latent" for RecipeReader, "bag" for BagOfWords; settings are the model's. report(step, loss) is
    called after every step. The result is a function of the arguments alone.
    Errors: UserError for another kind, or steps that are no number of 1 or more.
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
    """Lower the loss by Adam, on a batch of examples drawn anew at every step."""
    rng = np.random.default_rng([seed, 1])  # not the generator of the weights
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


def score(model: Any, examples: Examples) -> Score:
    """Which share of triggers, of actions, and of whole programs the model finds."""
    program, _ = model.forward(examples.ids)
    trigger = program.trigger.argmax(-1) == examples.triggers  # (N,)
    action = program.action.argmax(-1) == examples.actions
    return Score(float(trigger.mean()), float(action.mean()), float((trigger & action).mean()))
