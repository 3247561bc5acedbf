"""Training: the loop with its log, validation and checkpoints, the optimizer, workers, ranks and presets.

The path of a batch, from a file to the update of the parameters:

1. `data/dataset.py` reads the sentence pairs of a file and encodes them as token ids; `data/text.py` does so
   with one long text;
2. `data/loader.py` plans the batches of pairs of each epoch and pads them into arrays; `data/text.py` draws
   windows of a text;
3. `training/trainer.py` asks the loader for the batches of each step;
4. `training/step.py` runs the model forward and backward, over all workers, and clips the gradients;
5. `training/optimizer.py` updates the parameters.
"""

from npformer.training.averaging import average
from npformer.training.config import TrainingConfig, make_optimizer, make_schedule
from npformer.training.evaluation import Evaluation, evaluate
from npformer.training.events import (
    Averaged,
    Event,
    Noted,
    Report,
    Result,
    Sampled,
    Saved,
    Scored,
    Started,
    Stepped,
    Stopped,
    Validated,
)
from npformer.training.presets import PRESETS, Preset, find_preset
from npformer.training.run_folder import RunFolder, read_log
from npformer.training.step import loss_and_gradients, make_step
from npformer.training.trainer import resume, train

__all__ = [
    "PRESETS",
    "Averaged",
    "Evaluation",
    "Event",
    "Noted",
    "Preset",
    "Report",
    "Result",
    "RunFolder",
    "Sampled",
    "Saved",
    "Scored",
    "Started",
    "Stepped",
    "Stopped",
    "TrainingConfig",
    "Validated",
    "average",
    "evaluate",
    "find_preset",
    "loss_and_gradients",
    "make_optimizer",
    "make_schedule",
    "make_step",
    "read_log",
    "resume",
    "train",
]
