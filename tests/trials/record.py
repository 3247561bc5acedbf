"""Remember which test caught each fault, so that a fault is tried again only if something relevant changed.

A record is a JSON file with one line for each fault: the test that caught it, and a fingerprint of

- the source file with the fault, and the declaration of the fault,
- the file of the test, everything in tests/ that it imports, and the conftest files above it,
- npformer/checking, if the test uses the gradient checker.

While the fingerprint is the same, the trial is left out. Other files of the package can decide it too, and so
can the programs in this folder, but with a fingerprint of all of them, each change would try every fault. The
run of every night tries all faults, whatever the record says. No git history is needed, so a rebase changes
nothing, and whoever forgets to update the record only makes the next run longer.
"""

import ast
import functools
import hashlib
import json
import os

from trials.trial import ROOT, file_of

TESTS = ROOT / "tests"
NIGHTLY = "NPFORMER_NIGHTLY"
DATA = {"golden": "oracle/golden.npz"}  # files that a helper reads, relative to tests/


class Record:
    """The faults that were caught, with the test and the fingerprint of each.

    Args:
        path: The JSON file. If it is missing or damaged, the record is empty.
        faults: All faults that there are. The file forgets the others.
    """

    def __init__(self, path, faults):
        self.path = path
        self._names = {fault.name for fault in faults}
        try:
            self._caught = {name: (test, mark) for name, (test, mark) in json.loads(path.read_text()).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._caught = {}

    def test(self, fault):
        """Return the identifier of the test that caught the fault last time, or "" if its file is gone."""
        test = self._caught.get(fault.name, ("", ""))[0]
        return test if test and (TESTS / file_of(test)).is_file() else ""

    def holds(self, fault):
        """Return True if the fault was caught, and nothing relevant has changed since."""
        test = self.test(fault)
        return test != "" and self._caught[fault.name][1] == fingerprint(fault, file_of(test))

    def changed(self, faults):
        """Return the faults that must be tried: all where NPFORMER_NIGHTLY is set."""
        if os.environ.get(NIGHTLY):
            return list(faults)
        return [fault for fault in faults if not self.holds(fault)]

    def update(self, fault, test):
        """Store the test that caught a fault, or forget the fault if the test is ""."""
        self._caught.pop(fault.name, None)
        if test:
            self._caught[fault.name] = (test, fingerprint(fault, file_of(test)))

    def write(self):
        """Write the file."""
        names = sorted(self._caught.keys() & self._names)
        lines = [f"{json.dumps(name)}: {json.dumps(self._caught[name])}" for name in names]
        part = self.path.with_suffix(".part")
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        part.replace(self.path)


def fingerprint(fault, test):
    """Return a hash of everything that decides whether a test file catches a fault."""
    parts = [
        _digest(ROOT / "npformer" / fault.file),
        fault.declaration,
        *map(_digest, sorted(dependencies(test))),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@functools.cache
def dependencies(test):
    """Return the files on which a test file depends: itself, the conftest files, and what they import."""
    path = TESTS / test
    folders = [folder for folder in path.parents if folder.is_relative_to(TESTS)]
    found, waiting = set(), [path, *(folder / "conftest.py" for folder in folders)]
    while waiting:
        file = waiting.pop()
        if file.is_file() and file not in found:
            found.add(file)
            waiting += _imported(file) if file.suffix == ".py" else []
    return frozenset(found)


def _imported(file):
    """Return the files in tests/ that a file imports, with their data, and those of the gradient checker."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    files = []
    for module in modules:
        top = module.partition(".")[0]
        for folder in (TESTS, TESTS / "helpers"):
            files += [folder / f"{top}.py", *(folder / top).glob("*.py")]
        files += [TESTS / DATA[top]] if top in DATA else []
    if any(module.startswith(("npformer.checking", "npformer.gradcheck")) for module in modules):
        files += (ROOT / "npformer" / "checking").rglob("*.py")
    return files


@functools.cache
def _digest(path):
    """Return a hash of a file, or "" if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def forget_files():
    """Read all files again: for tests that change them."""
    dependencies.cache_clear()
    _digest.cache_clear()
