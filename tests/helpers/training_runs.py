"""Tiny training runs, their comparison, and trainings that stop early or go wrong."""

from npformer.training import TrainingConfig, read_log, train
from npformer.training.optimizer import Adam


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


def logged(run_dir, name):
    """Return the values of that name in the log, in order."""
    return [entry[name] for entry in read_log(run_dir) if name in entry]


def stop_after(step):
    """Return a function for `stop` that is called once a step and returns True at the given step."""
    calls = []

    def stop():
        calls.append(True)
        return len(calls) == step

    return stop


def around_update(monkeypatch, step, *, before=None, after=None):
    """Call before(adam) and after(adam) at the update of the parameters in that step."""
    plain = Adam.step

    def watched(adam, *args):
        if before and adam.t == step - 1:
            before(adam)
        plain(adam, *args)
        if after and adam.t == step:
            after(adam)

    monkeypatch.setattr(Adam, "step", watched)


def assert_same(run, other):
    """Compare the logs and all checkpoints of two runs bit by bit."""
    assert losses(run) == losses(other)
    names = sorted(path.name for path in other.iterdir())
    assert sorted(path.name for path in run.iterdir()) == names
    for name in names:
        if name.endswith(".safetensors"):
            assert (run / name).read_bytes() == (other / name).read_bytes(), name
