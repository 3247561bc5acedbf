"""TrainingConfig: every setting of a training run, its presets, and its learning-rate schedule."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from npformer.errors import UserError
from npformer.optim import Schedule, constant, cosine, decayed, warmup
from npformer.settings import (
    choose_preset,
    is_number,
    require_choice,
    require_count,
    require_known,
    require_share,
)

SCHEDULES = ("warmup", "constant", "cosine")

# of each pair exactly one is given
EITHER = (("steps", "epochs"), ("batch_size", "batch_tokens"))


@dataclass(frozen=True)
class TrainingConfig:
    """The settings of a training run: how long, in what batches, at what learning rate.

    Errors: UserError for settings that cannot be, in a sentence that says which and why.
    """

    steps: int | None = None  # how many updates; or
    epochs: int | None = None  # how many times through the training sentences
    batch_size: int | None = None  # the most sentences in a batch; or
    batch_tokens: int | None = None  # the most tokens in a batch, of either side, padding included
    accumulate: int = 1  # batches a step: their gradients add up to that of one large batch

    schedule: str = "warmup"
    factor: float = 1.0  # of schedule "warmup"
    learning_rate: float = 1e-3  # of schedule "constant", and the peak of "cosine"
    warmup_steps: int = 4000  # of schedules "warmup" and "cosine"
    decay_share: float = 0.0  # over this share of the steps, the last, down to 0 in a line
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    clip_norm: float | None = None  # the longest that a gradient may be

    seed: int = 0  # of the first weights, the order of the sentences, and dropout
    validate_every: int = 500  # steps
    checkpoint_every: int = 500
    log_every: int = 10
    bleu_every: int | None = None  # steps from one BLEU of greedy translations to the next; None: never
    bleu_sentences: int = 200  # of the validation sentences, the first
    average_last: int | None = None  # so many snapshots of the parameters make one more model at the end
    average_every: int = 500  # steps from one snapshot to the next

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", tuple(self.betas))  # a list, where it comes from JSON
        for one, other in EITHER:
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                given = "neither" if getattr(self, one) is None else "both"
                raise UserError(f"{given} of {one} and {other} is given: give exactly one of the two")
        may_be_none = {*(name for pair in EITHER for name in pair), "bleu_every", "average_last"}
        for name in _COUNTS:
            if name not in may_be_none or getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        for name in ("factor", "learning_rate", "eps", "clip_norm"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 < value < math.inf):
                raise UserError(f"{name} is {value!r}: it must be a number above 0")
        if len(self.betas) != 2 or not all(is_number(b) and 0 <= b < 1 for b in self.betas):
            raise UserError(f"betas is {self.betas}: give two numbers, each from 0 up to but not 1")
        require_choice("schedule", self.schedule, SCHEDULES)
        require_share("decay_share", self.decay_share)
        if not isinstance(self.seed, int) or self.seed < 0:
            raise UserError(f"seed is {self.seed!r}: it must be a whole number, 0 or more")

    def replace(self, **changes: Any) -> "TrainingConfig":
        """The same settings with some changed; giving steps takes the place of epochs, and so on."""
        require_known(self, changes)
        for pair in EITHER:
            for one, other in (pair, pair[::-1]):
                if changes.get(one) is not None:
                    changes.setdefault(other, None)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict of plain values, for a file."""
        return dataclasses.asdict(self) | {"betas": list(self.betas)}

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "TrainingConfig":
        """The settings of that name, with some changed; UserError for an unknown name."""
        return cls(**PRESETS[choose_preset(name, list(PRESETS), "training preset")]).replace(**changes)


MULTI30K: dict[str, Any] = {
    "batch_tokens": 2048,
    "schedule": "warmup",
    "factor": 2.0,
    "warmup_steps": 1000,
    "decay_share": 0.2,
    "validate_every": 500,
    "checkpoint_every": 250,
    "bleu_every": 500,
    "average_last": 10,
    "average_every": 250,
}

PRESETS: dict[str, dict[str, Any]] = {
    # Vaswani et al. 2017, section 5: 25,000 tokens of each language a batch, and 100,000 steps
    "paper": {"steps": 100_000, "batch_tokens": 25_000, "validate_every": 1000, "checkpoint_every": 1000},
    # "Step by step through Attention is All You Need", the demo's code
    "jianshu-demo": {
        "epochs": 20,
        "batch_size": 32,
        "schedule": "constant",
        "learning_rate": 1e-4,
        "eps": 1e-8,
    },
    # the built-in corpus, on a laptop
    "small": {
        "steps": 2200,
        "batch_size": 64,
        "schedule": "cosine",
        "learning_rate": 3e-3,
        "warmup_steps": 220,
        "clip_norm": 1.0,
        "validate_every": 400,
        "checkpoint_every": 200,
    },
    # Transformer-Tiny on Multi30k: see npformer.training.translation. Small batches learn more in a short
    # time; decaying to 0 over the last fifth was worth 2.4 BLEU in a trial of 48 minutes
    "multi30k-en-de": MULTI30K | {"steps": 20_000},
    "multi30k-en-de-short": MULTI30K | {"steps": 12_000, "average_every": 200},
}

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
    """The learning rate as a function of the step, counted from 1; a decay ends at total_steps."""
    if config.schedule == "warmup":
        schedule = warmup(d_model, config.warmup_steps, config.factor)
    elif config.schedule == "cosine":
        schedule = cosine(config.learning_rate, total_steps, config.warmup_steps)
    else:
        schedule = constant(config.learning_rate)
    return decayed(schedule, total_steps, config.decay_share) if config.decay_share else schedule
