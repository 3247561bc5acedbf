"""The grader's messages about wrong and invalid results."""

import re

import numpy as np
import pytest

from npformer.learn.exercises import EXERCISES, explain, grade, observe
from npformer.learn.tasks.compare import difference_of

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


def test_the_difference_of_a_vector_is_one_row():
    right, found = np.zeros(3), np.array([0.0, 2.0, 0.0])
    assert difference_of(right, found, found != right) == [[0, 2, 0]]


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


def test_a_mask_of_other_numbers_than_0_and_1_is_reported():
    text = "def causal_mask(length):\n    return np.triu(np.full((length, length), -np.inf), 1)"
    message = graded(text, "causal-mask").message
    assert "holds numbers other than 0 and 1 (float64): it must be True or False" in message


def test_functions_may_have_any_number_of_arguments():
    assert graded(f"def softmax_backward(*args):\n dy, y = args\n return {RIGHT}").solved


def test_two_mistakes_are_reported_one_after_the_other():
    """The first mistake is g instead of g², the second is the missing bias correction; the first is named."""
    verdict = graded(
        "def adam_step(adam, lr):\n"
        "    (b1, b2), g = adam.betas, adam.model.grads\n"
        "    adam.t += 1\n"
        "    adam.m = b1 * adam.m + (1 - b1) * g\n"
        "    adam.v = b2 * adam.v + (1 - b2) * g\n"
        "    adam.model.values -= lr * adam.m / (np.sqrt(adam.v) + adam.eps)\n",
        "adam-step",
    )
    assert "first v after step 1[0]" in verdict.message
    assert "the gradient is not squared in v" in " ".join(verdict.clues)


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


@pytest.mark.parametrize(("error", "is_checked"), [(1, False), (1e-8, True)])
def test_the_gradient_check_is_left_out_where_the_comparison_fails(error, is_checked):
    def softmax_backward(dy, y):
        return (1 + error) * y * (dy - (dy * y).sum(-1, keepdims=True))

    (first, *_) = observe(EXERCISES.find("softmax-backward"), {"softmax_backward": softmax_backward})
    assert (len(first["calls"]) > 1) == is_checked


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
