"""Associative recall: the rows of both tasks, and the gradient with each kind of attention."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.learn.experiments.recall import ALL_RULES, ALL_TASKS, Recall, draw_rows


@pytest.mark.parametrize("task", ALL_TASKS)
def test_the_answer_is_the_last_value_of_the_key(task):
    rows = draw_rows(task, np.random.default_rng(2), 5, 12)
    for keys, values, questions, answers in zip(*rows, strict=True):
        last = dict(zip(keys, values, strict=True))  # a later pair replaces an earlier one
        assert [last[key] for key in questions] == answers.tolist()
        assert len(last) == (8 if task == "keys again" else 12)
        assert len(set(questions)) == len(questions) == (12 if task == "new keys" else 8)
        assert task != "last keys" or set(questions) == set(keys[4:])


@pytest.mark.parametrize("rule", ALL_RULES)
def test_the_gradient(rule):
    """The derivative of the loss along a random direction is the product with the gradient."""
    rng = np.random.default_rng(3)
    rows, model = draw_rows("keys again", rng, 2, 10), Recall(rule, rng=rng, dtype=np.float64)
    v, sides = rng.choice([-1.0, 1.0], model.values.size), []
    logits, cache = model.forward(rows)
    model.backward(cross_entropy_backward(1.0, cross_entropy(logits, rows.answers)[1]), cache)
    for sign in (1, -1):
        model.values += sign * 1e-6 * v
        sides.append(cross_entropy(model.forward(rows)[0], rows.answers)[0])
        model.values -= sign * 1e-6 * v
    assert_allclose(model.grads @ v, (sides[0] - sides[1]) / 2e-6, rtol=1e-5)
