"""TrainingConfig: every setting of a training run, and its learning-rate schedule."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from npformer.data.loader import Loader
from npformer.errors import UserError, in_context
from npformer.storage.checkpoint import Checkpoint
from npformer.training.optimizer import Adam, AdamW, Muon, Schedule, constant, cosine, decayed, warmup
from npformer.validation import (
    is_number,
    require_choice,
    require_count,
    require_file_settings,
    require_index,
    require_known,
    require_share,
    use_plain_numbers,
)

SCHEDULES = ("warmup", "constant", "cosine")
OPTIMIZERS = ("adam", "muon")

# settings that the first files do not have, with the values that all runs had then
LATER_SETTINGS: dict[str, Any] = {
    "min_learning_rate": 0.0,
    "weight_decay": 0.0,
    "r_drop": 0.0,
    "optimizer": "adam",
}

# exactly one setting of each pair is given
EITHER = (("steps", "epochs"), ("batch_size", "batch_tokens"))


@dataclass(frozen=True)
class TrainingConfig:
    """The settings of a training run: length, batches, learning rate, validation and checkpoints.

    Raises:
        UserError: If a setting is out of range, or settings do not go together.
    """

    steps: int | None = None  # the number of updates. Give either steps or epochs
    epochs: int | None = None  # the number of passes through the training sentences
    batch_size: int | None = None  # the largest number of sentences in a batch. Give this or batch_tokens
    batch_tokens: int | None = None  # the largest number of source or target tokens in a batch, with padding
    accumulate: int = 1  # the number of batches whose gradients are added in one step

    schedule: str = "warmup"
    factor: float = 1.0  # multiplies every learning rate of schedule "warmup"
    learning_rate: float = 1e-3  # the rate of schedule "constant", and the peak of "cosine"
    min_learning_rate: float = 0.0  # the rate at the end of schedule "cosine"
    warmup_steps: int = 4000  # the steps with an increasing rate, in schedules "warmup" and "cosine"
    decay_share: float = 0.0  # over this last share of the steps, the learning rate decays linearly to 0
    optimizer: str = "adam"  # or "muon", which updates the matrices inside layers in another way
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0  # the decay of the matrices in AdamW; with 0, AdamW is Adam
    clip_norm: float | None = None  # the largest norm of the gradient; None means no limit
    r_drop: float = 0.0  # the weight of consistency between two passes, see consistency.py; 0 makes one pass

    # the step after which the run was made longer although its learning rate had decayed; train sets it
    lengthened_after: int | None = None

    seed: int = 0  # determines the initial weights, the order of the sentences, and dropout
    validate_every: int = 500  # the number of steps between validations
    checkpoint_every: int = 500
    log_every: int = 10
    bleu_every: int | None = None  # steps between BLEU scores of greedy translations; None means never
    bleu_sentences: int = 200  # the number of validation sentences for BLEU
    average_last: int | None = None  # the number of snapshots to average at the end; None means none
    average_every: int = 500  # the number of steps between snapshots

    def __post_init__(self) -> None:
        use_plain_numbers(self)
        if isinstance(self.betas, list):  # as JSON gives it
            object.__setattr__(self, "betas", tuple(self.betas))
        for one, other in EITHER:
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                neither = getattr(self, one) is None
                problem = (
                    f"neither {one} nor {other} is given" if neither else f"both {one} and {other} are given"
                )
                raise UserError(f"{problem}: give exactly one of the two")
        for name in _COUNTS:
            if name not in _MAY_BE_NONE or getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        for name in ("factor", "learning_rate", "eps", "clip_norm"):
            value = getattr(self, name)
            if name == "clip_norm" and value is None:
                continue
            if not (is_number(value) and 0 < value < math.inf):
                raise UserError(f"{name} is {value!r}: it must be a number above 0")
        pair = isinstance(self.betas, tuple) and len(self.betas) == 2
        if not (pair and all(is_number(b) and 0 <= b < 1 for b in self.betas)):
            raise UserError(f"betas is {self.betas!r}: give two numbers, each at least 0 and below 1")
        for name in ("min_learning_rate", "weight_decay", "r_drop"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < math.inf):
                raise UserError(f"{name} is {value!r}: it must be a number of at least 0")
        if self.schedule == "cosine" and self.min_learning_rate > self.learning_rate:
            raise UserError(
                f"min_learning_rate is {self.min_learning_rate} and learning_rate is {self.learning_rate}: a "
                "cosine decays from learning_rate, so make min_learning_rate smaller"
            )
        require_choice("schedule", self.schedule, SCHEDULES)
        require_choice("optimizer", self.optimizer, OPTIMIZERS)
        require_share("decay_share", self.decay_share)
        require_index("seed", self.seed)

    def replace(self, **changes: Any) -> "TrainingConfig":
        """Return the settings with some changed. Giving `steps` removes `epochs`, and vice versa."""
        require_known(self, changes)
        for pair in EITHER:
            for one, other in (pair, pair[::-1]):
                if changes.get(one) is not None:
                    changes.setdefault(other, None)
        return dataclasses.replace(self, **changes)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> "TrainingConfig":
        """Return the settings of the training that wrote a checkpoint.

        Raises:
            UserError: If a setting is unknown, of a wrong type or impossible.
        """
        with in_context(checkpoint.place):
            settings = LATER_SETTINGS | checkpoint.training_settings
            require_file_settings(cls, settings)
            return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict of JSON values."""
        return dataclasses.asdict(self) | {"betas": list(self.betas)}

    @property
    def batching(self) -> dict[str, Any]:
        """The settings of a data loader, by name."""
        return {name: getattr(self, name) for name in ("seed", "batch_size", "batch_tokens", "accumulate")}

    def total_steps(self, loader: Loader) -> int:
        """Return the number of steps of a run with the batches of this loader."""
        if self.steps is not None:
            return self.steps
        assert self.epochs is not None  # checked by __post_init__
        return loader.count_steps(self.epochs)


# the settings that count something, of which some may be None
_COUNTS = tuple(
    field.name
    for field in dataclasses.fields(TrainingConfig)
    if field.type in (int, int | None) and field.name != "seed"
)
_MAY_BE_NONE = {*EITHER[0], *EITHER[1], "bleu_every", "average_last", "lengthened_after"}


def make_schedule(config: TrainingConfig, d_model: int, total_steps: int) -> Schedule:
    """Return the learning rate as a function of the step, counted from 1.

    A run that was made longer after its learning rate had decayed begins anew: in the steps that were added,
    "cosine" rises and falls once more, as in the warm restarts of Loshchilov and Hutter 2017, and "warmup"
    and "constant" continue as if they had not decayed, up to a decay over the last share of the added steps.

    Args:
        config: The settings of the training.
        d_model: The width of the model, for schedule "warmup".
        total_steps: The number of steps of the run, at which a decay ends.
    """
    first = config.lengthened_after or 0
    steps = total_steps - first  # of the schedule, which begins after step `first`
    if config.schedule == "warmup":
        schedule = _shifted(warmup(d_model, config.warmup_steps, config.factor), first)
    elif config.schedule == "cosine":
        warm = min(config.warmup_steps, steps // 10) if first else config.warmup_steps
        schedule = cosine(config.learning_rate, steps, warm, config.min_learning_rate)
    else:
        schedule = constant(config.learning_rate)
    if config.decay_share:
        schedule = decayed(schedule, steps, config.decay_share)
    return _shifted(schedule, -first)


def make_optimizer(config: TrainingConfig, model: Any) -> Adam:
    """Return the optimizer of a model: Muon, AdamW if the configuration has a weight decay, or Adam.

    Raises:
        UserError: If the optimizer is Muon and the model has no matrices inside layers.
    """
    adam: dict[str, Any] = {"betas": config.betas, "eps": config.eps}
    if config.optimizer == "muon":
        return Muon(model, weight_decay=config.weight_decay, **adam)
    if config.weight_decay:
        return AdamW(model, weight_decay=config.weight_decay, **adam)
    return Adam(model, **adam)


def _shifted(schedule: Schedule, by: int) -> Schedule:
    return lambda step: schedule(step + by)
