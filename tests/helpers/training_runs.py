"""Tiny training runs, their comparison, and a training that stops early."""

from npformer.training import TrainingConfig, read_log, train


def runner(kind, sizes, training):
    """Return run_on(dataset, run, ...), which trains a tiny model on one thread.

    Args:
        kind: The class of the model's configuration.
        sizes: The settings of the model.
        training: The settings of the training.
    """

    def run_on(dataset, run, *, model=None, config=None, **arguments):
        """Train with changes of the settings of the model and of the training, and arguments of train."""
        settings = kind(**(sizes | dataset.sizes | (model or {})))
        return train(
            run, dataset, settings, TrainingConfig(**(training | (config or {}))), threads=1, **arguments
        )

    return run_on


def losses(run_dir):
    """Return the log without the values that depend on time."""
    clock = ("seconds", "tokens_per_second")
    return [{k: v for k, v in entry.items() if k not in clock} for entry in read_log(run_dir)]


def stop_after(step):
    """Return a function for `stop` that is called once a step and returns True at the given step."""
    calls = []

    def stop():
        calls.append(True)
        return len(calls) == step

    return stop


def assert_same(run, other):
    """Compare logs and checkpoints bit by bit."""
    assert losses(run) == losses(other)
    for name in ("last.safetensors", "best.safetensors"):
        assert (run / name).read_bytes() == (other / name).read_bytes(), name
