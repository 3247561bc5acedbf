"""What a training run tells whoever listens: a progress bar, or a test."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Started:
    """The run begins, or goes on after `step` steps."""

    step: int
    steps: int
    parameters: int
    run_dir: Path


@dataclass(frozen=True)
class Stepped:
    """One update was made."""

    step: int
    steps: int
    loss: float  # of this step's sentences, with dropout and label smoothing
    lr: float
    norm: float  # of the gradient, before clipping
    tokens: int
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class Validated:
    """The model was measured on the validation sentences."""

    step: int
    loss: float
    accuracy: float
    best: bool  # lower than ever before


@dataclass(frozen=True)
class Scored:
    """Validation sentences were translated, greedily, and held against their translations."""

    step: int
    bleu: float  # 0 .. 100
    sentences: int


@dataclass(frozen=True)
class Averaged:
    """The average of the last snapshots was measured on the validation sentences."""

    step: int
    snapshots: int
    loss: float | None  # None where there are no validation sentences
    best: bool  # its objective is lower than that of any single moment: it is the best checkpoint


@dataclass(frozen=True)
class Noted:
    """Something that whoever trains should know."""

    step: int
    text: str


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    step: int
    path: Path


@dataclass(frozen=True)
class Stopped:
    """The run came to its end, or was stopped before."""

    step: int
    steps: int
    message: str


Event = Started | Stepped | Validated | Scored | Averaged | Noted | Saved | Stopped
Report = Callable[[Event], None]
