"""A plugin of pytest that prints where the processor time goes, in all processes together.

python -m pytest -p processor_times

The rows are the seconds of the folders and of the test files with their child processes, of the fixtures
among them, and of importing a file, which each worker does once.
"""

from collections import Counter
from contextlib import contextmanager

import pytest
from processor_time import processor_time

KINDS = ("tests", "fixtures", "imports")
ROWS = 40  # the most expensive of each kind
seconds = {kind: Counter() for kind in KINDS}


@contextmanager
def counted(kind, name):
    """Count the processor time of a block."""
    try:
        with processor_time() as used:
            yield
    finally:
        seconds[kind][name] += used.seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Count a test with what it sets up."""
    with counted("tests", item.nodeid.partition("::")[0]):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Count a fixture."""
    with counted("fixtures", f"{fixturedef.baseid or 'all'}: {fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Count the import of a test file."""
    if not isinstance(collector, pytest.Module):
        return (yield)
    with counted("imports", collector.nodeid):
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add what a worker of xdist has counted."""
    for kind, found in node.workeroutput.get("processor_times", {}).items():
        seconds[kind].update(found)


def pytest_sessionfinish(session):
    """Send what this worker has counted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["processor_times"] = {
            kind: dict(found) for kind, found in seconds.items()
        }


def pytest_terminal_summary(terminalreporter):
    """Print the rows."""
    folders = Counter()
    for name, spent in seconds["tests"].items():
        folders[name.rpartition("/")[0]] += spent
    for kind, found in {"folders": folders, **seconds}.items():
        terminalreporter.write_sep("=", f"{kind}: {sum(found.values()):.0f} s of processor time")
        for name, spent in found.most_common(ROWS):
            terminalreporter.write_line(f"{spent:8.1f}  {name}")
