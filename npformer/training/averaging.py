"""One model from several moments of a run: the mean of its parameters.

Steps at a high learning rate leave the parameters jumping about a valley's floor, and their mean lies nearer
to it than any of them. Where the rate was decayed to zero they have come to rest, and there is less to gain.
Source: Vaswani et al. 2017, section 6.1, who averaged their last 5 checkpoints, 10 minutes apart.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from npformer.errors import UserError
from npformer.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from npformer.training.run import RunFolder


def average(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """The last checkpoint with the mean of all their parameters: to translate with, not to go on from.

    The sums are taken in float64, in the order given.
    Errors: UserError for none, or for models or vocabularies that are not the same.
    """
    if not checkpoints:
        raise UserError("there are no checkpoints to average: give at least one")
    last = checkpoints[-1]
    for each in checkpoints:
        if (each.model_config, each.source, each.target) != (last.model_config, last.source, last.target):
            raise UserError(
                f"the checkpoints of step {each.step} and {last.step} are of other models or vocabularies: "
                "average those of one run"
            )
    means = {name: _mean([each.parameters[name] for each in checkpoints]) for name in last.parameters}
    return dataclasses.replace(last, parameters=means, m=None, v=None)


def _mean(values: Sequence[np.ndarray]) -> np.ndarray:
    """Their mean, in their own dtype."""
    total = np.zeros(values[0].shape)  # float64
    for value in values:
        total += value
    return (total / len(values)).astype(values[0].dtype)


class Snapshots:
    """The parameters of a run at its last few moments, a file each, from which the average is made.

    They are a function of the steps alone: a step that is made once more after a crash writes the same file
    once more, and one is removed only when as many later ones are there.
    """

    def __init__(self, run: RunFolder, keep: int):
        self.run, self.keep = run, keep

    def take(self, checkpoint: Checkpoint) -> None:
        """Keep the parameters of this moment. Errors: UserError where the disk is full."""
        save_checkpoint(dataclasses.replace(checkpoint, m=None, v=None), self.run.snapshot(checkpoint.step))
        for path in self.run.snapshots()[: -self.keep]:
            path.unlink()

    def average(self) -> tuple[Checkpoint, int] | None:
        """The average, and of how many; None where there are not two. One that is broken is left out."""
        found = []
        for path in self.run.snapshots():
            try:
                found.append(load_checkpoint(path))
            except UserError:  # a run of hours shall not fail at its last step for an old file
                continue
        return (average(found), len(found)) if len(found) > 1 else None
