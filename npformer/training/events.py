"""The events of a training run, which it reports to a callback such as a progress bar, and its result."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Started:
    """The run begins, or resumes after `step` steps."""

    step: int
    steps: int
    parameters: int
    run_dir: Path


@dataclass(frozen=True)
class Stepped:
    """One step was made."""

    step: int
    steps: int
    loss: float  # the loss on this step's batches, with the model's dropout and label smoothing
    lr: float
    norm: float  # the norm of the gradient before clipping
    tokens: int  # target tokens of this step, with the end symbols and without padding
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class Validated:
    """The model was evaluated on the validation examples."""

    step: int
    loss: float
    accuracy: float  # the share of target tokens that get the highest probability, see Evaluation
    best: bool  # True if its objective is the lowest of the run so far
    bits_per_character: float | None = None  # of a text; None for sentences


@dataclass(frozen=True)
class Sampled:
    """A language model wrote a sample of text."""

    step: int
    text: str  # the beginning of the validation text, and how the model continues it


@dataclass(frozen=True)
class Scored:
    """The BLEU score of greedy translations of validation sentences was computed."""

    step: int
    bleu: float  # 0 .. 100
    sentences: int


@dataclass(frozen=True)
class Averaged:
    """The average of the last snapshots was evaluated on the validation sentences."""

    step: int
    snapshots: int
    loss: float | None  # None if there are no validation sentences
    best: bool  # True if its objective is the lowest of the run: it is then the best checkpoint


@dataclass(frozen=True)
class Noted:
    """A note for the user."""

    step: int
    text: str


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    step: int
    path: Path


@dataclass(frozen=True)
class Stopped:
    """The run has finished or was stopped."""

    step: int
    steps: int
    message: str


Event = Started | Stepped | Validated | Sampled | Scored | Averaged | Noted | Saved | Stopped
Report = Callable[[Event], None]


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Attributes:
        step: The number of steps made.
        steps: The number of steps planned.
        best_loss: The lowest validation loss with label smoothing (`objective` of an Evaluation), or None
            without a validation.
        message: A sentence that says how the run ended.
    """

    step: int
    steps: int
    best_loss: float | None
    message: str
    stopped_by: int | None = None  # the number of the signal that asked it to stop, such as that of Ctrl-C
    reads: str = "sentence pairs"  # what the model trained on, see ModelSettings

    @property
    def finished(self) -> bool:
        """True if all steps were made."""
        return self.step >= self.steps

    def require_finished(self) -> None:
        """End the program if the run is not finished, or if a signal came during it.

        This is for programs that have nothing to do without the trained model, or that train several models.
        A signal that came during the last step must end them too.

        Raises:
            KeyboardInterrupt: If the run was stopped by Ctrl-C, or by a function.
            SystemExit: If it was stopped by another signal. The exit status is 128 plus its number.
        """
        if self.finished and self.stopped_by is None:
            return
        if self.stopped_by in (None, signal.SIGINT):
            raise KeyboardInterrupt
        raise SystemExit(128 + self.stopped_by)
