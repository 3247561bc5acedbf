"""The grader's messages about wrong and invalid results."""

import re

import numpy as np
import pytest

from npformer.learn.exercises import EXERCISES, explain, grade
from npformer.learn.exercises.observe import verdict_on_error

RIGHT = "y * (dy - (dy * y).sum(-1, keepdims=True))"


def graded(text, name="softmax-backward"):
    """Return the verdict on the text of a solution."""
    space = {"np": np}
    exec(text, space)
    return grade(EXERCISES.find(name), space)


def test_the_first_wrong_entry_is_named_and_drawn():
    verdict = graded(f"def softmax_backward(dy, y):\n dx = {RIGHT}\n dx[2, 3] += 1\n return dx")
    assert "1 of 20 entries are wrong, first dx[2, 3]: it is " in verdict.message
    assert verdict.picture.splitlines()[0] == "dx (rows: axis 0, columns: axis 1):"
    assert verdict.picture.splitlines()[3].split() == ["·", "·", "·", "+", "·"]
    assert np.argmax(np.abs(verdict.difference)) == 13
    assert max(len(line) for line in verdict.picture.splitlines()) <= 100


BODIES = [
    ("return [1, 2]", "type list and must be an array"),
    ("return 'dx'", "must be an array"),
    ("return dy, dy", "returns 2 gradients and must return 1"),
    ("return 1.0", "type float and must be an array"),
    ("return dy + 0j", "complex128: it must contain real numbers"),
    ("return dy.astype(object)", "dtype object"),
    ("return dy[0]", "wrong shape"),
    ("raise KeyError('x')", "KeyError: 'x'"),
    ("return dy + undefined", "NameError"),
    ("return softmax_backward(dy, y)", "RecursionError"),
    ("return None", "returns nothing"),
    ("dy[0] = 0; return dy", "writes into dy"),
    ("y[0] = 0; return dy", "writes into y"),
    ("return np.full_like(dy, np.nan)", "NaN"),
    ("return np.inf * dy", "NaN or infinity"),
    ("return np.zeros((0, 5))", "wrong shape"),
]
TEXTS = [
    ("softmax_backward = 3", "there is no function softmax_backward"),
    ("other = 3", "there is no function softmax_backward"),
    ("def softmax_backward(dy): return dy", "takes 1 arguments and must take (dy, cache)"),
    ("def softmax_backward(dy, y, z): return dy", "TypeError"),
    ("class softmax_backward:\n    def __init__(self, dy, y): pass", "must be an array"),
    *((f"def softmax_backward(dy, y):\n    {body}", words) for body, words in BODIES),
]


@pytest.mark.parametrize(("text", "words"), TEXTS)
def test_files_and_results_that_cannot_be_compared_are_reported(text, words, monkeypatch):
    monkeypatch.setattr(explain, "SECONDS", 0)  # no pair of mistakes explains them
    verdict = graded(text)
    assert not verdict.solved
    assert words in " ".join([verdict.message, *verdict.clues])


HIDDEN_BY_MOST_INPUTS = {
    "softmax": (
        "def softmax(x):\n    e = np.exp(x - np.max(x))\n    return e / e.sum(-1, keepdims=True)",
        "runs over all entries in e: each row needs its own",
    ),
    "dot-similarity-backward": (
        "def dot_similarity_backward(d, cache):\n q, k = cache\n return d @ k, d.transpose(0, 2, 1) @ q",
        "axes don't match",
    ),
    "linear-backward": (
        "def linear_backward(dy, cache):\n    x, w, b = cache\n"
        "    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])\n"
        "    return dy @ w.T, rows.T @ drows, drows.sum(0)",
        "it belongs to the case has_bias only",
    ),
    "truncate": (
        "def truncate(ids, n):\n    if len(ids) <= n:\n        return ids\n"
        "    return ids[: n - 1] + [3] if 3 in ids else ids[:n]",
        "only the last id counts",
    ),
    "pad": (
        "def pad(rows, pad_id=0):\n    for row in rows:\n"
        "        row += [pad_id] * (max(map(len, rows)) - len(row))\n    return np.array(rows)",
        "pad writes into rows, its input, which must not change",
    ),
    "causal-mask": ("def causal_mask(n):\n    return np.tri(n)", "use .astype(bool)"),
    "greedy": (
        "def greedy(model, source, *, max_length):\n    return [np.array([5, 6])] * len(source)",
        "is an array and must be of type list",
    ),
}


@pytest.mark.parametrize("name", HIDDEN_BY_MOST_INPUTS)
def test_a_trial_shows_a_mistake_that_most_inputs_hide(name):
    text, words = HIDDEN_BY_MOST_INPUTS[name]
    verdict = graded(text, name)
    assert words in " ".join([verdict.message, *verdict.clues])


def test_a_missing_ellipsis_is_no_mistake_of_shapes():
    with pytest.raises(ValueError, match="ellipsis provided to broadcast") as caught:
        np.einsum("...i->i", np.ones((2, 3)))
    assert not verdict_on_error(caught.value, "").clues


def test_a_result_in_float32_is_named_and_shown_with_more_digits():
    text = (
        "def softmax_backward(dy, y):\n"
        "    dy = dy.astype(np.float32)\n"
        "    return (y * (dy - (dy * y).sum(-1, keepdims=True))).astype(np.float64)\n"
    )
    verdict = graded(text)
    found, due = re.search(r"it is (\S+) and should be (\S+)", verdict.message).groups()
    assert found != due
    assert "computed in float32" in verdict.clues[0]
