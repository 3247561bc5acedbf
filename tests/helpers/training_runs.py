"""Comparison of training runs, and a training that stops early."""

from npformer.training import read_log


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
