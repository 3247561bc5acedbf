"""Studio: the models that figures are drawn from, made once and kept.

Figures of a trained model share one translator: that of a run, or one trained here on the built-in corpus.
A second one, trained more briefly, goes from French to English, as the documents' examples of decoding do.
The figure of latent attention has a reader of recipes, trained in seconds.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from npformer.data.batches import Batch, make_batch
from npformer.data.datasets import builtin_dataset
from npformer.decoding import Translator
from npformer.decoding.forms import labels
from npformer.errors import UserError
from npformer.models import require_transformer
from npformer.training import Checkpoint, TrainingConfig, load_checkpoint, train
from npformer.training.events import Event, Saved
from npformer.training.recipes import STEPS as RECIPE_STEPS
from npformer.training.recipes import TrainedReader, train_recipes
from npformer.transformer import TransformerConfig

# The paper's place for the norm. Which head does what differs from seed to seed and from machine to machine,
# so the figures measure it; of four trainings each, the best head found the noun of *it* in 50 to 85 % of the
# held-out sentences with the norm after the residual, and in 4 to 45 % with the norm before it.
MODEL: dict[str, Any] = {"norm": "post", "final_norm": False}
SEED = 1
FRENCH_STEPS = 600  # of the second translator: enough for short sentences, and a quarter of the time


class Look(NamedTuple):
    """One sentence with its translation, seen through a model: words, and the cache of the forward pass."""

    source: list[str]  # S words, the end symbol included
    target: list[str]  # T words that the decoder read, the start symbol first
    predicted: list[str]  # T words that it was to predict, the end symbol last
    batch: Batch
    logits: Any  # (1, T, V)
    cache: Any


class Studio:
    """Where figures get their models.

    run: a trained run to draw from; without one, a model is trained into `folder` when first needed.
    steps: how many training steps then (default: those of the preset "small").
    memo: what figures measured once and share.
    """

    def __init__(
        self, *, run: str | Path | None = None, folder: str | Path = "runs/figures", steps=None, report=None
    ):
        self.run = Path(run) if run else None
        self.folder = Path(folder)
        self.steps = steps
        self.report = report
        self.memo: dict[Any, Any] = {}

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The trained model with its vocabularies; trained here where no run was given."""
        if self.run is not None:
            found = load_checkpoint(self.run / "last.safetensors")
            require_transformer(found.model_config, "the figures show")
            return found
        training = self._training(self.steps, seed=SEED)
        return self._trained("en-fr", self.folder, MODEL, training, keep=True)

    @cached_property
    def translator(self) -> Translator:
        """The trained model as a translator."""
        return as_translator(self.checkpoint)

    @cached_property
    def from_french(self) -> Translator:
        """A second model, French to English, trained more briefly."""
        return as_translator(self._trained("fr-en", self.folder / "fr-en", {}, self.french_training))

    @cached_property
    def recipe_reader(self) -> TrainedReader:
        """A reader of if-then recipes; trained anew each time, since that takes seconds."""
        return train_recipes(steps=RECIPE_STEPS if self.steps is None else min(self.steps, RECIPE_STEPS))

    @property
    def french_training(self) -> TrainingConfig:
        """How the second model is trained."""
        return self._training(FRENCH_STEPS if self.steps is None else self.steps)

    def look(self, sentence: str, translation: str | None = None, *, translator=None) -> Look:
        """Run the trained model on a sentence and its translation (its own, if none is given).

        Errors: UserError for a sentence that is empty or too long for the model.
        """
        return look(translator or self.translator, sentence, translation)

    def snapshots(self) -> list[Checkpoint]:
        """The model at several moments of its training, the first untrained: from files that training kept.

        Those of a run that kept none are its last checkpoint alone.
        """
        last = self.checkpoint  # trains, where that has not happened
        paths = sorted((self.run or self.folder).glob("step-*.safetensors"))
        return [load_checkpoint(path) for path in paths] or [last]

    def _training(self, steps: int | None, **changes: Any) -> TrainingConfig:
        if steps is not None:
            changes |= {"steps": steps, "warmup_steps": max(1, steps // 10)}
        return TrainingConfig.preset("small", **changes)

    def _trained(
        self, direction: str, folder: Path, changes: dict, training: TrainingConfig, *, keep: bool = False
    ) -> Checkpoint:
        """The checkpoint in a folder; trained there, unless it is the end of the same training already."""
        dataset = builtin_dataset(direction)
        model = TransformerConfig.preset("small", **(dataset.sizes | changes))
        path = folder / "last.safetensors"
        if path.exists():
            found = load_checkpoint(path)
            same = (found.model_config, found.training_config) == (model, training)
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
            raise KeyboardInterrupt  # half a training is no model to draw from
        return load_checkpoint(path)


def as_translator(checkpoint: Checkpoint) -> Translator:
    """A checkpoint's model with its codecs, in the host's memory."""
    return Translator(checkpoint.model(), checkpoint.source, checkpoint.target)


def look(translator: Translator, sentence: str, translation: str | None = None, **search: Any) -> Look:
    """One forward pass of a translator on a sentence and its translation.

    Without a translation it is the translator's own, by greedy search or as `search` says (beam=...).

    Errors: UserError for a sentence that is empty or too long for the model.
    """
    source, target = translator.source_codec, translator.target_codec
    limit = translator.model.config.max_length
    length = len(source.encode(sentence, strict=True)) + 1
    if length > limit:
        raise UserError(
            f"the sentence has {length} tokens, its end included, and the model's limit is {limit}: "
            "give a shorter one"
        )
    if translation is None:
        most = min(limit - 1, 2 * length + 5)  # an untrained model does not end by itself
        translation = translator.translate([sentence], max_length=most, **search)[0]
    batch = make_batch([(source.encode(sentence), target.encode(translation))])
    logits, cache = translator.model.forward(batch.source, batch.target_in)
    words = labels(target, target.words(translation))
    read = labels(source, source.words(sentence))
    return Look([*read, "</S>"], ["<S>", *words], [*words, "</S>"], batch, logits, cache)


def _empty(folder: Path) -> None:
    """Make the folder, or take an earlier training out of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("*.safetensors"), folder / "log.jsonl"]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}): the figures train a model there, so go to a "
            "folder that may be written to, or give a run"
        ) from None
