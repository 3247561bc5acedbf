"""TrainingConfig: every setting of a training run, and its learning-rate schedule."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from npformer.data.loader import DataLoader
from npformer.errors import UserError
from npformer.storage.validation import (
    is_number,
    require_choice,
    require_count,
    require_known,
    require_share,
)
from npformer.training.optimizer import Schedule, constant, cosine, decayed, warmup

SCHEDULES = ("warmup", "constant", "cosine")

# exactly one setting of each pair is given
EITHER = (("steps", "epochs"), ("batch_size", "batch_tokens"))


@dataclass(frozen=True)
class TrainingConfig:
    """The settings of a training run: its length, its batches, its learning rate and its measurements.

    Raises:
        UserError: If a setting is out of range, or settings do not go together.
    """

    steps: int | None = None  # the number of updates; or
    epochs: int | None = None  # the number of passes through the training sentences
    batch_size: int | None = None  # the largest number of sentences in a batch; or
    batch_tokens: int | None = None  # the largest number of tokens in a batch, of either side, with padding
    accumulate: int = 1  # the number of batches in a step, whose gradients add up to that of one large batch

    schedule: str = "warmup"
    factor: float = 1.0  # multiplies every learning rate of schedule "warmup"
    learning_rate: float = 1e-3  # of schedule "constant", and the peak of "cosine"
    warmup_steps: int = 4000  # of schedules "warmup" and "cosine"
    decay_share: float = 0.0  # over this last share of the steps, the learning rate decays linearly to 0
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    clip_norm: float | None = None  # the largest norm of the gradient; None: no limit

    seed: int = 0  # of the initial weights, the order of the sentences, and dropout
    validate_every: int = 500  # steps
    checkpoint_every: int = 500
    log_every: int = 10
    bleu_every: int | None = None  # steps between measurements of BLEU of greedy translations; None: never
    bleu_sentences: int = 200  # the number of validation sentences for BLEU
    average_last: int | None = None  # the number of snapshots that are averaged at the end; None: no average
    average_every: int = 500  # steps between snapshots

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", tuple(self.betas))  # JSON gives a list
        for one, other in EITHER:
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                neither = getattr(self, one) is None
                problem = (
                    f"neither {one} nor {other} is given" if neither else f"both {one} and {other} are given"
                )
                raise UserError(f"{problem}: give exactly one of the two")
        may_be_none = {*(name for pair in EITHER for name in pair), "bleu_every", "average_last"}
        for name in _COUNTS:
            if name not in may_be_none or getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        for name in ("factor", "learning_rate", "eps", "clip_norm"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 < value < math.inf):
                raise UserError(f"{name} is {value!r}: it must be a number above 0")
        if len(self.betas) != 2 or not all(is_number(b) and 0 <= b < 1 for b in self.betas):
            raise UserError(f"betas is {self.betas}: give two numbers, each at least 0 and below 1")
        require_choice("schedule", self.schedule, SCHEDULES)
        require_share("decay_share", self.decay_share)
        if not isinstance(self.seed, int) or self.seed < 0:
            raise UserError(f"seed is {self.seed!r}: it must be a whole number, 0 or more")

    def replace(self, **changes: Any) -> "TrainingConfig":
        """Return the settings with some changed. Giving `steps` removes `epochs`, and vice versa."""
        require_known(self, changes)
        for pair in EITHER:
            for one, other in (pair, pair[::-1]):
                if changes.get(one) is not None:
                    changes.setdefault(other, None)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict of plain values, for a file."""
        return dataclasses.asdict(self) | {"betas": list(self.betas)}

    @property
    def batching(self) -> dict[str, Any]:
        """The settings of a DataLoader, by name."""
        return {name: getattr(self, name) for name in ("seed", "batch_size", "batch_tokens", "accumulate")}

    def total_steps(self, loader: DataLoader) -> int:
        """Return the number of steps of a run with the batches of this loader."""
        if self.steps is not None:
            return self.steps
        assert self.epochs is not None  # checked by __post_init__
        return loader.count_steps(self.epochs)


_COUNTS = (
    "steps",
    "epochs",
    "batch_size",
    "batch_tokens",
    "accumulate",
    "warmup_steps",
    "validate_every",
    "checkpoint_every",
    "log_every",
    "bleu_every",
    "bleu_sentences",
    "average_last",
    "average_every",
)


def make_schedule(config: TrainingConfig, d_model: int, total_steps: int) -> Schedule:
    """Return the learning rate as a function of the step, counted from 1.

    Args:
        config: The settings of the training.
        d_model: The width of the model, for schedule "warmup".
        total_steps: The number of steps of the run, at which a decay ends.
    """
    if config.schedule == "warmup":
        schedule = warmup(d_model, config.warmup_steps, config.factor)
    elif config.schedule == "cosine":
        schedule = cosine(config.learning_rate, total_steps, config.warmup_steps)
    else:
        schedule = constant(config.learning_rate)
    return decayed(schedule, total_steps, config.decay_share) if config.decay_share else schedule
