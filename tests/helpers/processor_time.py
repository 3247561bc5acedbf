"""Measurements of processor time, whose limits hold on a busy machine as well."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Used:
    """The processor time of a block, in seconds."""

    seconds = 0.0


@contextmanager
def processor_time() -> Iterator[Used]:
    """Measure the processor time of this process and of the child processes that end within the block."""
    used, before = Used(), _now()
    try:
        yield used
    finally:
        used.seconds = _now() - before


def _now() -> float:
    children = os.times()
    return time.process_time() + children.children_user + children.children_system
