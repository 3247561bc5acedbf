"""The list of planted bugs: every bug can still be planted, and every backward pass has one.

tests/planted_bugs/run.py checks that the tests catch them.
"""

import ast
import functools
from collections import Counter

import pytest
from planted_bugs import BUGS, KINDS, Bug, NoLongerApplies
from planted_bugs.bug import ROOT

FOLDERS = ("functional", "kernels", "nn", "models")
WITHOUT_BUG = {
    "functional/activations.py: identity_backward": "dx = dy: nothing that could be wrong",
    "nn/positions.py: FixedPositions.backward": "nothing is learned there, so it is empty",
    "nn/residual.py: Residual.backward": "the base class: it only raises NotImplementedError",
}


@functools.cache
def source(file):
    return (ROOT / "npformer" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_bug_can_still_be_planted(bug):
    """The file contains the old text as often as the list says, and the new text is valid Python."""
    assert 1 <= bug.nth <= bug.of
    changed = bug.changed(source(bug.file))
    assert changed != source(bug.file)
    compile(changed, bug.file, "exec")


def test_there_are_at_least_forty_and_some_of_every_kind():
    assert len(BUGS) >= 40
    assert {bug.kind for bug in BUGS} == set(KINDS)


def test_all_bugs_are_different():
    for what in (lambda bug: bug.name, lambda bug: bug.changed(source(bug.file))):
        assert [text for text, count in Counter(map(what, BUGS)).items() if count > 1] == []


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


def test_the_error_for_a_bug_that_no_longer_applies():
    for old, of in (("no such text", 1), ("return", 1)):
        bug = Bug("stale", "sign", "functional/linear.py", old, "", of=of)
        with pytest.raises(
            NoLongerApplies, match=r"planted bug 'stale' no longer applies: functional/linear"
        ):
            bug.changed(source(bug.file))


def test_the_intended_occurrence_is_changed():
    bug = Bug("second", "sign", "any.py", "dx", "-dx", nth=2, of=3)
    assert bug.changed("dx dx dx") == "dx -dx dx"
