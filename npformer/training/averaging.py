"""Averaging of checkpoints: the parameters of the averaged model are the means over several steps of a run.

At a high learning rate, the parameters move around a minimum of the loss. Their mean over several steps is
nearer to the minimum. If the learning rate decays to zero, they move less and less, and averaging gains less.
Source: Vaswani et al. 2017, section 6.1, who averaged their last 5 checkpoints, 10 minutes apart.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from npformer.errors import UserError
from npformer.models.registry import config_from_checkpoint
from npformer.storage.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from npformer.training.run_folder import RunFolder


def average(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """Return the last checkpoint with the mean of all parameters. Training cannot continue from it.

    The sums are computed in float64, in the order of the arguments.

    Raises:
        UserError: If there are no checkpoints, or their models or vocabularies differ.
    """
    if not checkpoints:
        raise UserError("there are no checkpoints to average: give at least one")
    last = checkpoints[-1]
    for each in checkpoints:
        if _model_and_codecs(each) != _model_and_codecs(last):
            raise UserError(
                f"the checkpoints of step {each.step} and {last.step} have different models or vocabularies: "
                "average checkpoints of the same run"
            )
    means = {name: _mean([each.parameters[name] for each in checkpoints]) for name in last.parameters}
    return dataclasses.replace(last, parameters=means, m=None, v=None)


def _model_and_codecs(checkpoint: Checkpoint) -> tuple[object, ...]:
    """Return the settings that two checkpoints must have in common to be averaged."""
    return config_from_checkpoint(checkpoint), checkpoint.codecs


def _mean(values: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of arrays, in their dtype."""
    total = np.zeros(values[0].shape)  # float64
    for value in values:
        total += value
    return (total / len(values)).astype(values[0].dtype)


class Snapshots:
    """The snapshots of a run: files with its parameters after several steps, to be averaged at the end.

    A step that is repeated after a crash writes the same file again, so that the files are the same as
    without the crash. A file is removed when `keep` later files exist.

    Args:
        run: The folder of the run.
        keep: The number of files to keep.
        first: Only the snapshots after this step are averaged.
    """

    def __init__(self, run: RunFolder, keep: int, first: int = 0) -> None:
        self.run, self.keep, self.first = run, keep, first

    def take(self, checkpoint: Checkpoint) -> None:
        """Write the parameters of a checkpoint.

        Raises:
            UserError: If the disk is full.
        """
        save_checkpoint(dataclasses.replace(checkpoint, m=None, v=None), self.run.snapshot(checkpoint.step))
        for path in self.run.snapshots()[: -self.keep]:
            path.unlink()

    def average(self) -> tuple[Checkpoint, int] | None:
        """Return the average of the readable files and their number, or None if there are fewer than two."""
        readable = []
        for path in self.run.snapshots():
            if path <= self.run.snapshot(self.first):
                continue
            try:
                readable.append(load_checkpoint(path))
            except UserError:  # a run of hours should not fail at its last step because of an old file
                continue
        return (average(readable), len(readable)) if len(readable) > 1 else None
