"""Studio: the models that figures are drawn from, made once and kept.

Figures of a trained model share one translator: that of a run, or one trained here on the built-in corpus.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from npformer.data.batches import Batch, make_batch
from npformer.data.datasets import builtin_dataset
from npformer.decoding import Translator
from npformer.training import Checkpoint, TrainingConfig, load_checkpoint, train
from npformer.training.events import Event, Saved
from npformer.transformer import TransformerConfig


class Look(NamedTuple):
    """One sentence with its translation, seen through a model: words, and the cache of the forward pass."""

    source: list[str]  # S words, the end symbol included
    target: list[str]  # T words that the decoder read, the start symbol first
    predicted: list[str]  # T words that it was to predict, the end symbol last
    batch: Batch
    cache: Any


class Studio:
    """Where figures get their models.

    run: a trained run to draw from; without one, a model is trained into `folder` when first needed.
    steps: how many training steps then (default: those of the preset "small").
    """

    def __init__(
        self, *, run: str | Path | None = None, folder: str | Path = "runs/figures", steps=None, report=None
    ):
        self.run = Path(run) if run else None
        self.folder = Path(folder)
        self.steps = steps
        self.report = report

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The trained model with its vocabularies; trained here where no run was given."""
        if self.run is not None:
            return load_checkpoint(self.run / "last.safetensors")
        path = self.folder / "last.safetensors"
        if path.exists():
            checkpoint = load_checkpoint(path)
            if checkpoint.step == self._training().steps:
                return checkpoint
        self._train()
        return load_checkpoint(path)

    @cached_property
    def translator(self) -> Translator:
        """The trained model as a translator."""
        checkpoint = self.checkpoint
        return Translator(checkpoint.model(), checkpoint.source, checkpoint.target)

    def look(self, sentence: str, translation: str | None = None) -> Look:
        """Run the trained model on a sentence and its translation (its own, if none is given)."""
        translator = self.translator
        source, target = translator.source_codec, translator.target_codec
        if translation is None:
            translation = translator.translate([sentence])[0]
        batch = make_batch([(source.encode(sentence, strict=True), target.encode(translation))])
        _, cache = translator.model.forward(batch.source, batch.target_in)
        words = target.words(translation)
        return Look([*source.words(sentence), "</S>"], ["<S>", *words], [*words, "</S>"], batch, cache)

    def snapshots(self) -> list[Checkpoint]:
        """The model at several moments of its training, the first untrained: from the files that training kept."""
        paths = sorted((self.run or self.folder).glob("step-*.safetensors"))
        return [load_checkpoint(path) for path in paths] or [self.checkpoint]

    def _training(self) -> TrainingConfig:
        training = TrainingConfig.preset("small")
        if self.steps is not None:
            training = training.replace(steps=self.steps, warmup_steps=max(1, self.steps // 10))
        return training

    def _train(self) -> None:
        """Train on the built-in corpus, keeping a copy of each checkpoint for the picture of training."""
        dataset = builtin_dataset()
        model = TransformerConfig.preset("small", **dataset.sizes)
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("*.safetensors"):
            old.unlink()
        (self.folder / "log.jsonl").unlink(missing_ok=True)

        def report(event: Event) -> None:
            if isinstance(event, Saved) and event.path.name == "last.safetensors":
                copy = self.folder / f"step-{event.step:06}.safetensors"
                copy.write_bytes(event.path.read_bytes())
            if self.report is not None:
                self.report(event)

        train(self.folder, dataset, model, self._training(), threads=1, report=report)
