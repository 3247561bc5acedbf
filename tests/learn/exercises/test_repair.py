"""The grader repairs the learner's own code, and names the line and the kind of the mistake."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from mistake_tables import count_steps, drawn, functions_of, mistakes_of

from npformer.learn.exercises import EXERCISES, grade, judge
from npformer.learn.exercises.observe import observe
from npformer.learn.exercises.repair import TooManySteps, limited, repair
from npformer.learn.exercises.topics.translation import PIECES
from npformer.mistakes import edits
from npformer.mistakes.budget import Budget

DOT = EXERCISES.find("dot-similarity-backward")
BEGINNING = "def dot_similarity_backward(d, cache):\n    q, k = cache\n"
MISTAKES = drawn(mistakes_of(Path(__file__).parent / "repairs.txt"), 3)


@pytest.fixture
def own(tmp_path):
    """Return a function that writes a solution into a file, and returns its functions and the file."""

    def write(text):
        file = tmp_path / "own.py"
        file.write_text(text, encoding="utf-8")
        return functions_of(text, str(file)), str(file)

    return write


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.line[:40])
def test_a_repair_names_the_line_and_the_kind_of_the_mistake(mistake, own, monkeypatch):
    count_steps(monkeypatch, edits=5000)
    says = repair(EXERCISES.find(mistake.exercise), *own(mistake.text))
    assert re.search(mistake.names, says), says
    assert "all results are right)" in says


def test_a_missing_call_of_the_packages_function_is_named(own, monkeypatch):
    count_steps(monkeypatch, edits=5000)
    text = "from npformer import functional as F\ndef kl_divergence_backward(d, c):\n    log_p, q = c\n"
    text += "    n = q.size // q.shape[-1]\n    g = -q * d / n\n    return g\n"
    says = repair(EXERCISES.find("kl-backward"), *own(text))
    assert "line 5: the call of F.log_softmax_backward is missing (with this change all" in says


@pytest.mark.parametrize(
    "body",
    [
        "return np.diag(y) - np.outer(y, y)",
        "return (np.diag(y) - np.outer(y, y)) @ dy",
        "jacobian = np.diag(y) - np.outer(y, y)\n    return dy @ jacobian",
    ],
)
def test_the_jacobian_of_a_softmax_is_named(body, own):
    text = f"def softmax_backward(dy, y):\n    {body}\n"
    (clue,) = grade(EXERCISES.find("softmax-backward"), *own(text)).clues
    assert clue.startswith("line 2: np.diag(y) - np.outer(y, y) is the Jacobian of one row")


@pytest.mark.parametrize(
    "text",
    [
        BEGINNING + "    return d @ k, d.swapaxes(-1, -2) @ q",
        DOT.file_text(),
        "def dot_similarity_backward(d, cache):\n    return 1",
    ],
    ids=["right", "untouched", "beyond repair"],
)
def test_other_solutions_are_not_repaired(text, own):
    assert repair(DOT, *own(text)) == ""


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("dropout-backward", "def dropout_backward(dy, mask):\n    x = None\n    return dy * mask", "mask"),
        (
            "decoder-backward",
            "def decoder_backward(layer, dy, cache):\n"
            "    dy, total = layer.norm.backward(dy, cache.norm), 0\n"
            "    for one, c in zip(layer.layers[::-1], cache.layers[::-1]):\n"
            "        dy, dmemory = one.backward(dy, c)\n"
            "        total = total + dmemory\n"
            "    return dy, total\n",
            "layer.norm",
        ),
    ],
)
def test_a_variable_or_an_attribute_that_is_none_is_named(name, text, what, own):
    clues = grade(EXERCISES.find(name), *own(text)).clues
    assert clues[0] == f"{what} is None in this trial, and this case is not treated"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("def f():\n    while True:\n        pass\n", 1000),
        ("def f(dy=0):\n    for _ in range(100):\n        dy = dy + 1\n", 0),
        # np.array(rows) would take minutes and gigabytes
        ("def f():\n    rows = []\n    p = rows\n    rows.append(p)\n    return len(rows)\n", 1000),
    ],
    ids=["never ends", "the time is over", "a list in itself"],
)
def test_a_changed_function_that_takes_too_much_is_stopped(text, seconds, own):
    functions, file = own(text)
    with pytest.raises(TooManySteps), limited(file, Budget(seconds)):
        functions["f"]()


@pytest.mark.parametrize("looks", range(1, 13))
def test_a_limit_that_is_over_in_a_finalizer_ends_the_function(looks, own):
    """Python drops an exception that is raised in a finalizer, and ends the tracing that raised it."""
    functions, file = own("def f(make):\n    for _ in range(9):\n        make()\n")  # finalized at once
    left = iter(range(looks))
    limit = SimpleNamespace(is_over=lambda: next(left, None) is None)

    class Finalized:
        def __del__(self):
            pass

    with pytest.raises(TooManySteps), limited(file, limit):
        functions["f"](Finalized)


def test_the_child_cannot_answer_with_a_mistake_instead_of_results():
    observations = [*observe(DOT, DOT.plain)]
    assert judge(DOT, [*observations, {"mistake": "line 1: x\nis wrong"}]).solved
    assert judge(DOT, [{"mistake": "line 1: x"}]) is None


FACTOR_TOO_EARLY = """
def cross_entropy_backward(dloss, cache):
    log_probs, targets, real, smoothing, shape, tokens = cache
    d = (np.exp(log_probs) - smoothing / shape[-1]) * real[:, None]
    d[np.arange(len(targets)), targets] -= 1 - smoothing
    return (d * (dloss / tokens)).reshape(shape)
"""


@pytest.mark.parametrize(("by_chance", "is_told"), [((), True), ((edits.OTHER_VARIABLES,), False)])
def test_a_change_that_makes_some_results_right_is_told_unless_it_may_be_chance(
    by_chance, is_told, own, monkeypatch
):
    """The trial without smoothing is right if `real` is subtracted instead of 1 - smoothing."""
    monkeypatch.setattr(edits, "KINDS", (edits.OTHER_VARIABLES,))
    monkeypatch.setattr(edits, "RIGHT_BY_CHANCE", by_chance)
    says = repair(EXERCISES.find("cross-entropy-backward"), *own(FACTOR_TOO_EARLY))
    assert ("the first wrong results are right, and others are still wrong" in says) == is_told


HIGHEST_RANK = """
def join_pieces(pieces, text):
    parts = list(text)
    while True:
        pairs = enumerate(zip(parts, parts[1:]))
        found = [(pieces.ranks[a + b], -i) for i, (a, b) in pairs if a + b in pieces.ranks]
        if not found:
            return parts
        _, i = max(found)
        i = -i
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
"""


def test_an_edit_does_not_change_the_objects_of_a_trial(own):
    """The loop of a comprehension keeps its variables: `for i, (a, pieces.ranks) in` would write ranks."""
    ranks = dict(PIECES.ranks)
    verdict = grade(EXERCISES.find("join-pieces"), *own(HIGHEST_RANK))
    assert PIECES.ranks == ranks
    assert verdict.message.startswith("the pieces of ▁lower is ")
