"""Training: the loop with its log, validation and checkpoints, and going on to the bit."""

from npformer.training.averaging import average
from npformer.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from npformer.training.config import TrainingConfig, make_schedule
from npformer.training.events import (
    Averaged,
    Event,
    Noted,
    Report,
    Saved,
    Scored,
    Started,
    Stepped,
    Stopped,
    Validated,
)
from npformer.training.loop import resume, train
from npformer.training.run import RunFolder, read_log
from npformer.training.step import Evaluation, evaluate, loss_and_gradients
from npformer.training.trainer import Result

__all__ = [
    "Averaged",
    "Checkpoint",
    "Evaluation",
    "Event",
    "Noted",
    "Report",
    "Result",
    "RunFolder",
    "Saved",
    "Scored",
    "Started",
    "Stepped",
    "Stopped",
    "TrainingConfig",
    "Validated",
    "average",
    "evaluate",
    "load_checkpoint",
    "loss_and_gradients",
    "make_schedule",
    "read_log",
    "resume",
    "save_checkpoint",
    "train",
]
