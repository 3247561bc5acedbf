"""Workers: a batch shared out among threads gives the gradients of one, and the same bits every time."""

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npformer import Transformer, TransformerConfig, UserError
from npformer.data.batches import Batch, make_batch, split_batch
from npformer.data.sentences import next_words
from npformer.optim import Adam
from npformer.training.finite import NotFiniteError
from npformer.training.step import dropout_rngs, loss_and_gradients, make_step
from npformer.training.workers import WorkerError, Workers


def a_model(dtype=np.float64, **changes):
    settings = {"d_model": 8, "d_ff": 12, "n_heads": 2, "n_layers": 2, "max_length": 16} | changes
    config = TransformerConfig(source_vocab=20, target_vocab=20, **settings)
    return Transformer(config, rng=np.random.default_rng(0), dtype=dtype)


def some_batches(*sizes):
    rng = np.random.default_rng(7)

    def sentence():
        return rng.integers(4, 20, rng.integers(1, 9)).tolist()

    return [make_batch([(sentence(), sentence()) for _ in range(size)]) for size in sizes]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_gradients_of_several_are_those_of_one(count):
    batches, model = some_batches(5, 2, 1), a_model()
    expected = loss_and_gradients(model, batches)
    grads = model.grads.copy()
    workers = Workers(model, count)
    found = workers.loss_and_gradients(batches)
    assert found[1] == expected[1]
    assert found[0] == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(model.grads, grads, rtol=1e-9, atol=1e-14)
    workers.close()


def steps(workers_of, count, n=3):
    """The values after n steps with dropout, and what the steps returned."""
    model = a_model(np.float32, dropout=0.2)
    adam, batches, told = Adam(model), some_batches(6, 3), []
    workers = workers_of(model, count)
    for step in range(1, n + 1):
        told.append(workers.make_step(adam, batches, dropout_rngs(0, step, 2), 1e-2, 1.0))
    workers.close()
    return model.values, told


class One:
    """make_step itself, called like Workers."""

    def __init__(self, model, _):
        self.model = model

    def make_step(self, *args):
        return make_step(self.model, *args)

    def close(self):
        """Nothing to end."""


def test_one_worker_is_the_plain_step_to_the_bit():
    (values, told), (expected, expected_told) = steps(Workers, 1), steps(One, 1)
    np.testing.assert_array_equal(values, expected)
    assert told == expected_told


@pytest.mark.parametrize("count", [2, 3])
def test_the_same_seed_gives_the_same_bits(count):
    (values, told), (again, told_again) = steps(Workers, count), steps(Workers, count)
    np.testing.assert_array_equal(values, again)
    assert told == told_again


def test_workers_draw_dropout_of_their_own():
    model = a_model(dropout=0.5)
    seen = []
    forward = Transformer.forward
    workers = Workers(model, 2)

    def spy(self, *args, **settings):
        logits, cache = forward(self, *args, **settings)
        seen.append(cache.source.keep)
        return logits, cache

    for twin in workers.models:
        twin.forward = spy.__get__(twin)
    same = [([5, 6, 7], [5, 6, 7])] * 4
    workers.loss_and_gradients([make_batch(same)], dropout_rngs(0, 1, 1))
    assert seen[0].kept.shape == seen[1].kept.shape
    assert (seen[0].kept != seen[1].kept).any()
    workers.close()


def test_they_work_at_the_same_time():
    workers, meeting = Workers(a_model(), 3), threading.Barrier(3, timeout=20)
    assert sorted(workers.run(lambda thing: (meeting.wait(), thing)[1], range(3))) == [0, 1, 2]
    workers.close()


def test_an_error_is_raised_once_all_have_ended():
    workers, ended = Workers(a_model(), 2), []

    def work(number):
        if number == 0:
            raise MemoryError("Unable to allocate 9 GiB")
        ended.append(number)

    with pytest.raises(WorkerError, match="worker 0 stopped: MemoryError: Unable to allocate 9 GiB"):
        workers.run(work, range(2))
    assert ended == [1]
    workers.close()


def test_a_loss_that_is_not_finite_names_its_tensor():
    model = a_model()
    model.source.words.weight.value[5] = np.nan
    workers = Workers(model, 2)
    with pytest.raises(NotFiniteError, match=r"source\.words\.weight"), np.errstate(invalid="ignore"):
        workers.loss_and_gradients([make_batch([([5, 6], [7]), ([5], [8])])])
    workers.close()


def test_workers_are_counted_from_one():
    with pytest.raises(UserError, match="workers is 0"):
        Workers(a_model(), 0)


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    lengths=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9),
    count=st.integers(1, 5),
)
def test_split_batches_hold_every_sentence_once(lengths, count):
    batch = make_batch([([5] * source, [6] * target) for source, target in lengths])
    pieces = split_batch(batch, count)
    assert len(pieces) == min(count, len(lengths)) or 0 < len(pieces) < count
    assert sum(piece.tokens for piece in pieces) == batch.tokens
    rows = [
        [row[row != 0].tolist() for piece in pieces for row in getattr(piece, name)] for name in Batch._fields
    ]
    for found, array in zip(rows, batch, strict=True):
        assert found == [row[row != 0].tolist() for row in array]
    for piece in pieces:
        assert piece.target_in.shape == piece.target_out.shape
        for width in {array.shape[1] for array in piece}:  # no column is padding in all arrays of its width
            assert any((array[:, -1] != 0).any() for array in piece if array.shape[1] == width)


def test_pieces_are_about_as_many_words():
    pieces = split_batch(some_batches(64)[0], 4)
    words = [int((piece.source != 0).sum()) for piece in pieces]
    assert len(words) == 4
    assert max(words) < 1.2 * min(words)


def test_batches_of_sentences_are_split_too():
    batch = next_words([[5, 6, 7], [5], [8, 9]])
    pieces = split_batch(batch, 2)
    assert [type(piece) for piece in pieces] == [type(batch)] * 2
    assert sum(piece.tokens for piece in pieces) == batch.tokens
