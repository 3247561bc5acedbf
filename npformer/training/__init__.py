"""Training: the loop with its log, validation and checkpoints, and going on to the bit."""

from npformer.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from npformer.training.config import TrainingConfig, make_schedule
from npformer.training.events import Event, Report, Saved, Started, Stepped, Stopped, Validated
from npformer.training.loop import Result, resume, train
from npformer.training.run import RunFolder, read_log
from npformer.training.step import Evaluation, evaluate, loss_and_gradients

__all__ = [
    "Checkpoint",
    "Evaluation",
    "Event",
    "Report",
    "Result",
    "RunFolder",
    "Saved",
    "Started",
    "Stepped",
    "Stopped",
    "TrainingConfig",
    "Validated",
    "evaluate",
    "load_checkpoint",
    "loss_and_gradients",
    "make_schedule",
    "read_log",
    "resume",
    "save_checkpoint",
    "train",
]
