"""The list of planted bugs: every bug can still be planted, and every backward pass has one.

tests/planted_bugs/run.py checks that the tests catch them.
"""

import ast
import functools
from collections import defaultdict

import pytest
from planted_bugs import BUGS, Bug, NoLongerApplies
from planted_bugs.bug import ROOT, bugs_in

FOLDERS = ("functional", "kernels", "nn", "models")
WITHOUT_BUG = {
    "functional/activations.py: identity_backward": "dx = dy: nothing that could be wrong",
    "nn/positions.py: FixedPositions.backward": "nothing is learned there, so it is empty",
}


@functools.cache
def source(file):
    return (ROOT / "npformer" / file).read_text(encoding="utf-8")


def test_every_bug_can_still_be_planted():
    """The file contains the old text as often as the list says, and the new text is valid Python."""
    for bug in BUGS:
        assert 1 <= bug.nth <= bug.of, bug
        changed = bug.changed(source(bug.file))
        assert changed != source(bug.file), bug
        try:
            compile(changed, bug.file, "exec")
        except SyntaxError as error:
            pytest.fail(f"with the planted bug {bug.name!r}, {bug.file} is no Python: {error}")


def test_all_bugs_are_different():
    same = defaultdict(list)
    for bug in BUGS:
        same[bug.name].append(bug.name)
        same[bug.changed(source(bug.file))].append(bug.name)
    assert [names for names in same.values() if len(names) > 1] == []


def backward_passes():
    """Return a dict from "file: name" of every backward pass to its first and last line."""
    found = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / "npformer" / folder).rglob("*.py")):
        file = path.relative_to(ROOT / "npformer").as_posix()
        tree = ast.parse(source(file))
        scopes = [("", tree)] + [(f"{n.name}.", n) for n in tree.body if isinstance(n, ast.ClassDef)]
        for prefix, scope in scopes:
            for node in scope.body:
                if isinstance(node, ast.FunctionDef) and f"_{node.name}".endswith("_backward"):
                    found[f"{file}: {prefix}{node.name}"] = (node.lineno, node.end_lineno)
    return found


def lines_of(bug):
    """Return the first and the last line of the bug's old text."""
    start = bug.position(source(bug.file))
    first = source(bug.file).count("\n", 0, start) + 1
    return first, first + bug.old.rstrip("\n").count("\n")


def test_every_backward_pass_has_one():
    aimed = {(bug.file, *lines_of(bug)) for bug in BUGS}
    without = []
    for name, (start, end) in backward_passes().items():
        file = name.partition(":")[0]
        if not any(file == f and start <= first and last <= end for f, first, last in aimed):
            without.append(name)
    missing = [name for name in without if name not in WITHOUT_BUG]
    assert missing == [], "plant a bug in each, in tests/planted_bugs/"
    assert sorted(without) == sorted(WITHOUT_BUG), "these have a bug now: take them from WITHOUT_BUG"


DECLARED = """# Bugs in one and two.

one.py
- f(x, y)
  negative | -f(x, y)
  y for x | x, → y,
two.py
- 2 of 3: dx
# the gradient stays right
  second
    | -dx\\n
  lost |
"""


def test_a_declaration_names_the_file_the_right_text_and_each_wrong_one():
    bugs = bugs_in(DECLARED)
    assert bugs == [
        Bug("negative", "one.py", "f(x, y)", "-f(x, y)"),
        Bug("y for x", "one.py", "f(x, y)", "f(y, y)"),
        Bug("second", "two.py", "dx", "-dx\n", nth=2, of=3),
        Bug("lost", "two.py", "dx", "", nth=2, of=3),
    ]
    assert bugs[3].changed("dx dx dx") == "dx  dx"
    for wrong, message in (("  no such part | x → -x", "must hold 'x' once"), ("  a name", "no wrong text")):
        with pytest.raises(AssertionError, match=message):
            bugs_in(f"one.py\n- x * x\n{wrong}")


def test_the_error_for_a_bug_that_no_longer_applies():
    for old, of in (("no such text", 1), ("return", 1)):
        bug = Bug("stale", "functional/linear.py", old, "", of=of)
        with pytest.raises(
            NoLongerApplies, match=r"planted bug 'stale' no longer applies: functional/linear"
        ):
            bug.changed(source(bug.file))
