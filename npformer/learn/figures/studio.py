"""Studio: the models from which figures are drawn. They are trained when first needed and then kept.

Figures of a trained model share one translator: that of a run, or one trained here with the recipe of the
lessons. Figures that measure a head do so in three trainings of this recipe, which differ in their seed. A
second translator goes from French to English, as in the documents' examples of decoding. The figure of latent
attention has a model of recipes, trained in seconds.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from npformer.learn.figures.trainings import (
    TRAININGS,
    figure_recipe,
    french_recipe,
    kept_checkpoints,
    train_all,
    train_in,
)
from npformer.models.registry import config_from_checkpoint, require_transformer
from npformer.pretrained import Translator
from npformer.pretrained.attention import ForwardPass, forward_pass
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.training.events import Event
from npformer.training.if_then import STEPS as RECIPE_STEPS
from npformer.training.if_then import TrainedReader, train_recipes


class Studio:
    """The source of the models from which figures are drawn.

    Args:
        run: A trained run to draw from, which is read at once. By default models are trained into `folder`
            when first needed.
        folder, steps: The folder in which models are trained, and the number of training steps; by default
            that of the lessons' recipe.
        report: A progress callback for training.

    Attributes:
        memo: Measurements that figures share.

    Raises:
        UserError: If the run cannot be read, or if its model is not a Transformer.
    """

    def __init__(
        self,
        *,
        run: str | Path | None = None,
        folder: str | Path = "runs/figures",
        steps: int | None = None,
        report: Callable[[Event], None] | None = None,
    ) -> None:
        self.run = Path(run) if run else None
        self.folder = Path(folder)
        self.steps = steps
        self.report = report
        self.memo: dict[Any, Any] = {}
        self._given = None if self.run is None else _checkpoint_of(self.run)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The trained model with its vocabularies, trained here where no run was given."""
        return self._given or train_in(self.folder, figure_recipe(steps=self.steps), report=self.report)

    @cached_property
    def translator(self) -> Translator:
        """The trained model as a translator."""
        return Translator.from_checkpoint(self.checkpoint)

    @cached_property
    def translators(self) -> list[Translator]:
        """The trained model and those of the other trainings, or only the model of the run that was given."""
        if self.run is not None:
            return [self.translator]
        folders = [self.folder, *(self.folder / f"training-{number}" for number in range(1, TRAININGS))]
        _, *others = train_all(folders, steps=self.steps, report=self.report)
        return [self.translator, *map(Translator.from_checkpoint, others)]

    @cached_property
    def from_french(self) -> Translator:
        """A second model, French to English."""
        recipe = french_recipe(steps=self.steps)
        return Translator.from_checkpoint(train_in(self.folder / "fr-en", recipe, report=self.report))

    @cached_property
    def recipe_reader(self) -> TrainedReader:
        """A model of if-then recipes, trained anew each time because that takes only seconds."""
        return train_recipes(steps=RECIPE_STEPS if self.steps is None else min(self.steps, RECIPE_STEPS))

    def forward_pass(
        self, sentence: str, translation: str | None = None, *, translator: Translator | None = None
    ) -> ForwardPass:
        """Run the trained model on a sentence and its translation.

        Args:
            sentence, translation: The sentence, and its translation; by default the model's own.
            translator: The model; by default the English-French one.

        Raises:
            UserError: If the sentence is empty or too long for the model.
        """
        return forward_pass(translator or self.translator, sentence, translation)

    def snapshots(self) -> list[Checkpoint]:
        """Return the checkpoints that training kept, in order, or only the last one if there are none."""
        last = self.checkpoint  # trains the model if there is none yet
        return [load_checkpoint(path) for path in kept_checkpoints(self.run or self.folder)] or [last]


def _checkpoint_of(run: Path) -> Checkpoint:
    """Return the last checkpoint of a run.

    Raises:
        UserError: If it cannot be read, or if its model is not a Transformer.
    """
    found = load_checkpoint(run / "last.safetensors")
    require_transformer(config_from_checkpoint(found), "the figures show")
    return found
