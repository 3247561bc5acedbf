"""Measure which tests call which functions: only those can notice a fault in the function."""

import ast
import functools
import json
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from trials.trial import ROOT, file_of, run_tests


class Reach:
    """The functions that each test calls, and the time that it takes.

    Args:
        tests: A list of (identifier, seconds), the fastest first.
        calls: A dict from "file: function" to the places of tests in that list.
    """

    def __init__(self, tests, calls):
        self._tests = [tuple(test) for test in tests]
        self._calls = {name: set(places) for name, places in calls.items()}

    def of(self, fault):
        """Return the tests that may notice a fault, and their seconds in all.

        First come those that run its code, the fastest first. If none calls the function, it may run on
        import: then all tests count that call one of its file. Last come the other tests of the folder that
        mirrors the file's, since a test may call the function in another process, which nothing measures.
        """
        names = {f"{fault.file}: {function}" for function in functions_of(fault)}
        places = set().union(*(self._calls.get(name, set()) for name in names))
        if not places:
            same_file = (p for name, p in self._calls.items() if name.startswith(f"{fault.file}: "))
            places = set().union(*same_file)
        folder = fault.file.rpartition("/")[0]
        beside = {p for p, test in enumerate(self._tests) if file_of(test[0]).rpartition("/")[0] == folder}
        tests = [self._tests[place] for place in (*sorted(places), *sorted(beside - places))]
        return [test[0] for test in tests], sum(test[1] for test in tests)


def functions_of(fault):
    """Return the functions whose lines a fault changes, without those nested in them."""
    source = (ROOT / "npformer" / fault.file).read_text(encoding="utf-8")
    old, new = source.splitlines(), fault.changed(source).splitlines()
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old))
    from_end = zip(reversed(old), reversed(new), strict=False)
    after = next((i for i, (a, b) in enumerate(from_end) if a != b), len(old))
    first, last = same + 1, max(same + 1, len(old) - after)
    return {name for name, start, end in _functions(source) if start <= last and first <= end}


@functools.cache
def _functions(source):
    """Return the outermost functions and the methods of a module as (name, first line, last line)."""
    found, waiting = [], [("", ast.parse(source))]
    while waiting:
        prefix, scope = waiting.pop()
        for node in scope.body:
            if isinstance(node, ast.FunctionDef):
                found.append((f"{prefix}{node.name}", node.lineno, node.end_lineno))
            elif isinstance(node, ast.ClassDef):
                waiting.append((f"{prefix}{node.name}.", node))
    return found


class MeasuredReach:
    """A Reach that is measured when it is first needed, since that takes longer than many trials.

    Args:
        tests: The test files.
    """

    def __init__(self, tests):
        self.tests = tests
        self._lock = threading.Lock()
        self._reach = None

    def of(self, fault):
        """Return the tests that run the code of a fault, as Reach.of does, or raise TestsFail."""
        with self._lock:
            if self._reach is None:
                outcome, self._reach = measure(self.tests)
                if self._reach is None:
                    raise TestsFail(outcome.why)
        return self._reach.of(fault)


class TestsFail(Exception):
    """The error if a test fails without any fault: then its failure proves nothing about a fault."""

    __test__ = False  # the name begins like that of a class of tests


def measure(tests):
    """Run the test files without any fault. Return the outcome, and the Reach or None if a test failed."""
    with tempfile.TemporaryDirectory(prefix="reach-") as folder:
        output = Path(folder) / "reach.json"
        outcome = run_tests(tests, plugin=Recorder(output))
        if outcome.status != 0:
            return outcome, None
        return outcome, Reach(**json.loads(output.read_text(encoding="utf-8")))


class Recorder:
    """A plugin of pytest that writes the arguments of Reach as JSON.

    The calls of a fixture's setup count for all tests that use it. The calls of a helper with functools.cache
    count for the first test only.
    """

    def __init__(self, output):
        self.output = output
        self.found = set()
        self.of_fixtures = defaultdict(set)
        self.tests = []  # (identifier, seconds, the names of the functions)

    def pytest_sessionstart(self):
        """Follow the calls of all functions from now on."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def _trace(self, frame, event, _):
        name = _name(frame.f_code)
        if name and event == "call":
            self.found.add(name)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Store what the fixture calls."""
        before, self.found = self.found, set()
        value = yield
        self.of_fixtures[fixturedef.argname] |= self.found
        self.found |= before
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Store what the test calls, and its processor time."""
        sys.settrace(self._trace)
        self.found, start = set(), time.process_time()
        value = yield
        seconds = time.process_time() - start
        names = self.found.union(*(self.of_fixtures[name] for name in item.fixturenames))
        self.tests.append((item.nodeid, seconds, names))
        return value

    def pytest_sessionfinish(self):
        """Write the file."""
        sys.settrace(None)
        calls = defaultdict(list)
        tests = sorted(self.tests, key=lambda test: test[1])
        for place, (*_, names) in enumerate(tests):
            for name in names:
                calls[name].append(place)
        self.output.write_text(json.dumps({"tests": [test[:2] for test in tests], "calls": calls}))


@functools.cache
def _name(code):
    """Return "file: function" of a function of the package, and "" for others."""
    _, package, file = code.co_filename.rpartition("/npformer/")
    return f"{file}: {code.co_qualname.partition('.<locals>')[0]}" if package else ""
