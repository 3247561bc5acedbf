"""Studio: the models from which figures are drawn. They are trained when first needed and then kept.

Figures of a trained model share one translator: that of a run, or one trained here on the built-in corpus.
A second translator, trained more briefly, goes from French to English, as in the documents' examples of
decoding. The figure of latent attention has a model of recipes, trained in seconds.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from npformer.data.dataset import builtin_dataset
from npformer.errors import UserError
from npformer.generation import Translator
from npformer.models.registry import config_from_checkpoint, require_transformer
from npformer.models.transformer import TransformerConfig
from npformer.pretrained.attention import ForwardPass, forward_pass
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.training import TrainingConfig, train
from npformer.training.events import Event, Saved
from npformer.training.if_then import STEPS as RECIPE_STEPS
from npformer.training.if_then import TrainedReader, train_recipes
from npformer.training.presets import find_preset

# The norm comes after the sum, as in the paper. What a head attends to differs from seed to seed and from
# machine to machine, so the figures measure it. With the norm after the sum, the best head found the noun of
# *it* in 50 to 99.8 % of the held-out sentences in five trainings; with the norm before the sublayer, in 4 to
# 45 % in four trainings.
MODEL: dict[str, Any] = {"norm": "post", "final_norm": False}
SEED = 1
FRENCH_STEPS = 600  # of the second translator: enough for short sentences, in a quarter of the time


class Studio:
    """The source of the models from which figures are drawn.

    Args:
        run: A trained run to draw from. By default a model is trained into `folder` when first needed.
        folder: The folder in which models are trained.
        steps: The number of training steps; by default that of the preset "small".
        report: A progress callback for training.

    Attributes:
        memo: Measurements that figures share.
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

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The trained model with its vocabularies, trained here where no run was given."""
        if self.run is not None:
            found = load_checkpoint(self.run / "last.safetensors")
            require_transformer(config_from_checkpoint(found), "the figures show")
            return found
        training = self._training(self.steps, seed=SEED)
        return self._trained("en-fr", self.folder, MODEL, training, keep=True)

    @cached_property
    def translator(self) -> Translator:
        """The trained model as a translator."""
        return Translator.from_checkpoint(self.checkpoint)

    @cached_property
    def from_french(self) -> Translator:
        """A second model, French to English, trained more briefly."""
        found = self._trained("fr-en", self.folder / "fr-en", {}, self.french_training)
        return Translator.from_checkpoint(found)

    @cached_property
    def recipe_reader(self) -> TrainedReader:
        """A model of if-then recipes, trained anew each time because that takes only seconds."""
        return train_recipes(steps=RECIPE_STEPS if self.steps is None else min(self.steps, RECIPE_STEPS))

    @property
    def french_training(self) -> TrainingConfig:
        """The training configuration of the second model."""
        return self._training(FRENCH_STEPS if self.steps is None else self.steps)

    def forward_pass(
        self, sentence: str, translation: str | None = None, *, translator: Translator | None = None
    ) -> ForwardPass:
        """Run the trained model on a sentence and its translation.

        Args:
            sentence: The sentence.
            translation: Its translation; by default the model's own.
            translator: The model; by default the English-French one.

        Raises:
            UserError: If the sentence is empty or too long for the model.
        """
        return forward_pass(translator or self.translator, sentence, translation)

    def snapshots(self) -> list[Checkpoint]:
        """Return the checkpoints of several training steps, from the untrained model to the last one.

        Returns:
            The checkpoints that the run kept, or only the last one if it kept none.
        """
        last = self.checkpoint  # trains the model if there is none yet
        paths = sorted((self.run or self.folder).glob("step-*.safetensors"))
        return [load_checkpoint(path) for path in paths] or [last]

    def _training(self, steps: int | None, **changes: Any) -> TrainingConfig:
        if steps is not None:
            changes |= {"steps": steps, "warmup_steps": max(1, steps // 10)}
        return find_preset("small").training.replace(**changes)

    def _trained(
        self,
        direction: str,
        folder: Path,
        changes: dict[str, Any],
        training: TrainingConfig,
        *,
        keep: bool = False,
    ) -> Checkpoint:
        """Return the checkpoint in a folder. Train a model there if the same training has not ended."""
        dataset = builtin_dataset(direction)
        model = TransformerConfig.architecture("small", **(dataset.sizes | changes))
        path = folder / "last.safetensors"
        if path.exists():
            found = load_checkpoint(path)
            settings = (config_from_checkpoint(found), TrainingConfig(**found.training_settings))
            same = settings == (model, training)
            if same and found.step == training.steps and found.fingerprint == dataset.fingerprint:
                return found
        _empty(folder)

        def report(event: Event) -> None:
            if keep and isinstance(event, Saved) and event.path == path:  # for the picture of training
                copy = folder / f"step-{event.step:06}.safetensors"
                copy.write_bytes(event.path.read_bytes())
            if self.report is not None:
                self.report(event)

        result = train(folder, dataset, model, training, threads=1, report=report)
        if not result.finished:
            raise KeyboardInterrupt  # the model of an interrupted training is not drawn
        return load_checkpoint(path)


def _empty(folder: Path) -> None:
    """Create the folder if it does not exist, and delete an earlier training from it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("*.safetensors"), folder / "log.jsonl"]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}): the figures train a model there, so go to a "
            "folder that may be written to, or give a run"
        ) from None
