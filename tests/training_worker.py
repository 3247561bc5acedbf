"""A tiny training run for tests, also as a program of its own that a test can kill.

    python training_worker.py RUN [--kill STEP SECONDS] [--die STAGE COUNT] [--full-disk STEP] [--measured]

begins the run or goes on with it, and prints each step. --kill has the system end the process so long after
that step or a later one, or after its start for step 0, without a word to it. --die kills the process during
its COUNT-th write of a file: "half" with half of the data written, "before" or "after" the rename; COUNT may
also be a file's name, of which any part will do, for the rename of that. --measured counts BLEU and averages.
--full-disk lets no file grow beyond half a checkpoint once the step is made.
"""

import argparse
import contextlib
import os
import signal
import sys

from npformer import TransformerConfig, UserError
from npformer import atomic as writing
from npformer.data.datasets import Dataset, task_dataset
from npformer.training import RunFolder, Stepped, TrainingConfig, train


def tiny_dataset(**changes) -> Dataset:
    """Ninety sequences to reverse."""
    return task_dataset("reverse", **({"n": 90, "length": 5, "vocab": 12, "seed": 1} | changes))


def tiny_model(dataset: Dataset, **changes) -> TransformerConfig:
    """A model of one layer, with dropout, so that random states matter."""
    settings = {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 1, "max_length": 10, "dropout": 0.1}
    return TransformerConfig(**(settings | dataset.sizes | changes))


def tiny_training(**changes) -> TrainingConfig:
    """Twenty steps through four epochs, with a checkpoint at every second step."""
    settings = {"steps": 20, "batch_size": 16, "schedule": "constant", "learning_rate": 0.01}
    often = {"checkpoint_every": 2, "validate_every": 3, "log_every": 1, "clip_norm": 1.0, "seed": 7}
    return TrainingConfig(**(settings | often)).replace(**changes)


# BLEU on the way, and an average at the end
MEASURED = {"bleu_every": 5, "bleu_sentences": 6, "average_last": 3, "average_every": 4}


def tiny_run(run_dir, *, data=None, model=None, resume=False, **settings):
    """Train the tiny model; data and model are changes to it, the others of the training or train's own."""
    own = {name: settings.pop(name) for name in ("report", "stop", "threads", "backend") if name in settings}
    dataset = tiny_dataset(**(data or {}))
    config = tiny_model(dataset, **(model or {}))
    return train(run_dir, dataset, config, tiny_training(**settings), resume=resume, **own)


def kill_in(seconds: float) -> None:
    """Have the kernel kill this process then, wherever it is: nobody handles this signal."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def die_at(stage: str, count: str) -> None:
    """Have the process kill itself during its count-th write of a file, or of one of that name."""
    left = [int(count) if count.isdigit() else 1]

    def kill_here(here: str, target: object = None) -> None:
        if here == stage and (count.isdigit() or count in str(target)):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    class DyingOs:
        """The module os, but deadly."""

        def __getattr__(self, name):
            return getattr(os, name)

        def fsync(self, descriptor):
            if stage == "half" and left[0] == 1:
                with contextlib.suppress(OSError):  # a folder has no length
                    os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            kill_here("half")
            os.fsync(descriptor)

        def replace(self, source, target):
            kill_here("before", target)
            os.replace(source, target)
            kill_here("after", target)

    writing.os = DyingOs()


def fill_disk(run: RunFolder) -> None:
    """Let no file of this process grow beyond half a checkpoint."""
    import resource

    half = run.last.stat().st_size // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (half, resource.RLIM_INFINITY))


def main() -> int:
    """Begin or go on; returns the status that the command line would."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--kill", nargs=2, metavar=("STEP", "SECONDS"), default=(-1, 0))
    parser.add_argument("--die", nargs=2, metavar=("STAGE", "COUNT"))
    parser.add_argument("--full-disk", type=int, metavar="STEP")
    parser.add_argument("--measured", action="store_true")
    options = parser.parse_args()
    run = RunFolder(options.run)
    if options.die:
        die_at(*options.die)

    kill_step, delay = int(options.kill[0]), float(options.kill[1])
    if kill_step == 0:
        kill_in(delay)

    def report(event):
        if isinstance(event, Stepped):
            print("step", event.step, flush=True)
            if 0 < kill_step <= event.step and not signal.getitimer(signal.ITIMER_REAL)[0]:
                kill_in(delay)
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
