"""A tiny training run for tests, also as a separate program that a test can kill.

    python training_worker.py RUN [--kill STEP SECONDS] [--die STAGE COUNT] [--full-disk STEP] [--hold STEP]
        [--measured]

The program begins or resumes the run and prints each step. --kill lets the system kill the process by a
signal SECONDS after that step or a later one, or after its start for step 0, and in any case before its last
step, where it waits for the signal. --die kills the process during
its COUNT-th write of a file: "half" with half of the data written, "before" or "after" the rename. COUNT may
also be part of a file's name, for the rename of that file. --measured computes BLEU and averages checkpoints.
--full-disk limits all files to half the size of a checkpoint from that step on. --hold waits after that step
until a signal arrives.
"""

import argparse
import contextlib
import os
import signal
import sys

from npformer import TransformerConfig, UserError
from npformer.data.dataset import PairDataset, task_dataset
from npformer.storage import atomic as writing
from npformer.training import RunFolder, Stepped, TrainingConfig, train


def tiny_dataset(**changes) -> PairDataset:
    """Return ninety pairs of sequences, whose targets are reversed."""
    return task_dataset("reverse", **({"n": 90, "length": 5, "vocab": 12, "seed": 1} | changes))


def tiny_model(dataset: PairDataset, **changes) -> TransformerConfig:
    """Return a model of one layer, with dropout, so that random states matter."""
    settings = {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 1, "max_length": 10, "dropout": 0.1}
    return TransformerConfig(**(settings | dataset.sizes | changes))


def tiny_training(**changes) -> TrainingConfig:
    """Return settings for twenty steps in four epochs, with a checkpoint after every second step."""
    settings = {"steps": 20, "batch_size": 16, "schedule": "constant", "learning_rate": 0.01}
    often = {"checkpoint_every": 2, "validate_every": 3, "log_every": 1, "clip_norm": 1.0, "seed": 7}
    return TrainingConfig(**(settings | often)).replace(**changes)


# BLEU during the run, and an average at the end
MEASURED = {"bleu_every": 5, "bleu_sentences": 6, "average_last": 3, "average_every": 4}
ARGUMENTS = ("report", "stop", "threads", "workers", "backend")  # of train


def tiny_run(run_dir, *, data=None, model=None, resume=False, **settings):
    """Train the tiny model with changes of the data, the model, the settings or the arguments of train."""
    own = {name: settings.pop(name) for name in ARGUMENTS if name in settings}
    dataset = tiny_dataset(**(data or {}))
    config = tiny_model(dataset, **(model or {}))
    return train(run_dir, dataset, config, tiny_training(**settings), resume=resume, **own)


def kill_in(seconds: float) -> None:
    """Let the kernel kill this process after some seconds by a signal without a handler."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def die_at(stage: str, count: str) -> None:
    """Let the process kill itself during its count-th write of a file, or of a file with that name."""
    left = [int(count) if count.isdigit() else 1]

    def kill_here(here: str, target: object = None) -> None:
        if here == stage and (count.isdigit() or count in str(target)):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    class DyingOs:
        """A replacement for the module os that kills the process."""

        def __getattr__(self, name):
            return getattr(os, name)

        def fsync(self, descriptor):
            if stage == "half" and left[0] == 1:
                with contextlib.suppress(OSError):  # a folder has no size
                    os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            kill_here("half")
            os.fsync(descriptor)

        def replace(self, source, target):
            kill_here("before", target)
            os.replace(source, target)
            kill_here("after", target)

    writing.os = DyingOs()


def fill_disk(run: RunFolder) -> None:
    """Limit every file of this process to half the size of a checkpoint."""
    import resource

    half = run.last.stat().st_size // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (half, resource.RLIM_INFINITY))


class Signals:
    """The signals that this process receives from now on."""

    def __init__(self) -> None:
        self.read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)

    def wait(self) -> None:
        """Return once a signal has arrived, even if it arrived before this call."""
        os.read(self.read, 1)


def main() -> int:
    """Begin or resume the run. Return the exit status of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--kill", nargs=2, metavar=("STEP", "SECONDS"), default=(-1, 0))
    parser.add_argument("--die", nargs=2, metavar=("STAGE", "COUNT"))
    parser.add_argument("--full-disk", type=int, metavar="STEP")
    parser.add_argument("--hold", type=int, metavar="STEP")
    parser.add_argument("--measured", action="store_true")
    options = parser.parse_args()
    run = RunFolder(options.run)
    if options.die:
        die_at(*options.die)

    kill_step, delay = int(options.kill[0]), float(options.kill[1])
    if kill_step == 0:
        kill_in(delay)

    signals = Signals() if options.hold else None

    def report(event):
        if isinstance(event, Stepped):
            print("step", event.step, flush=True)
            if signals and event.step == options.hold:
                signals.wait()
            if 0 < kill_step <= event.step and not signal.getitimer(signal.ITIMER_REAL)[0]:
                kill_in(delay)
            if kill_step >= 0 and event.step == options.steps - 1:
                signal.pause()
            if event.step == options.full_disk:
                fill_disk(run)

    try:
        settings = {"steps": options.steps, "threads": 1} | (MEASURED if options.measured else {})
        result = tiny_run(run.path, report=report, resume=run.last.exists(), **settings)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(result.message, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
