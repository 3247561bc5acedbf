"""Workers: a batch split over threads gives the gradients of the whole batch, and always the same bits."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npformer import Transformer, TransformerConfig, UserError
from npformer.data.loader import Batch, make_batch, split_batch
from npformer.data.sentences import SentenceBatch
from npformer.training.nan_checks import NotFiniteError
from npformer.training.optimizer import Adam
from npformer.training.step import dropout_rngs, loss_and_gradients, make_step
from npformer.training.workers import WorkerError, Workers, workers_and_threads


def make_model(dtype=np.float64, **changes):
    settings = {"d_model": 8, "d_ff": 12, "n_heads": 2, "n_layers": 2, "max_length": 16} | changes
    config = TransformerConfig(source_vocab=20, target_vocab=20, **settings)
    return Transformer(config, rng=np.random.default_rng(0), dtype=dtype)


@pytest.mark.parametrize("wrong", [0, "2", 1.5])
def test_a_number_of_workers_or_threads_is_a_whole_one(wrong):
    with pytest.raises(UserError, match=f"workers is {wrong!r}: it must be a whole number, 1 or more"):
        Workers(make_model(), wrong)
    for name in ("workers", "threads"):
        with pytest.raises(UserError, match=f"{name} is {wrong!r}: it must be a whole number, 1 or more"):
            workers_and_threads(None, **({"workers": None, "threads": None} | {name: wrong}))


def make_batches(*sizes):
    rng = np.random.default_rng(7)

    def sentence():
        return rng.integers(4, 20, rng.integers(1, 9)).tolist()

    return [make_batch([(sentence(), sentence()) for _ in range(size)]) for size in sizes]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_gradients_of_several_workers_are_those_of_one(count):
    batches, model = make_batches(5, 2, 1), make_model()
    expected = loss_and_gradients(model, batches)
    grads = model.grads.copy()
    workers = Workers(model, count)
    found = loss_and_gradients(model, batches, workers=workers)
    assert found[1] == expected[1]
    assert found[0] == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(model.grads, grads, rtol=1e-9, atol=1e-14)
    workers.close()


def steps(count, n=3):
    """Return the values after n steps with dropout and several workers, and the results of the steps."""
    model = make_model(np.float32, dropout=0.2)
    adam, batches, results = Adam(model), make_batches(6, 3), []
    workers = None if count is None else Workers(model, count)
    for step in range(1, n + 1):
        rngs = dropout_rngs(0, step, 2)
        results.append(make_step(model, adam, batches, rngs, 1e-2, 1.0, workers))
    if workers:
        workers.close()
    return model.values, results


def test_one_worker_does_not_split_the_batch():
    (batch,), model = make_batches(5), make_model()
    wider = Batch(*(np.pad(array, ((0, 0), (0, 2))) for array in batch))
    rng = np.random.default_rng(3)
    ((own, ((part, generator),)),) = Workers(model).split([wider], [rng])
    assert own is model
    assert part is wider
    assert generator is rng


def test_each_worker_draws_its_own_dropout():
    model = make_model(dropout=0.5)
    masks = []
    forward = Transformer.forward
    workers = Workers(model, 2)

    def spy(self, *args, **settings):
        logits, cache = forward(self, *args, **settings)
        masks.append(cache.source.dropout_mask)
        return logits, cache

    for replica in workers.models:
        replica.forward = spy.__get__(replica)
    same = [([5, 6, 7], [5, 6, 7])] * 4
    loss_and_gradients(model, [make_batch(same)], dropout_rngs(0, 1, 1), workers)
    assert masks[0].kept.shape == masks[1].kept.shape
    assert (masks[0].kept != masks[1].kept).any()
    workers.close()


def test_an_error_is_raised_after_all_workers_have_ended():
    workers, ended = Workers(make_model(), 2), []

    def work(number):
        if number == 0:
            raise MemoryError("Unable to allocate 9 GiB")
        ended.append(number)

    with pytest.raises(WorkerError, match="worker 0 stopped: MemoryError: Unable to allocate 9 GiB"):
        workers.run(work, range(2))
    assert ended == [1]
    workers.close()


def test_a_loss_that_is_not_finite_names_its_tensor():
    model = make_model()
    model.source.tokens.weight.value[5] = np.nan
    workers = Workers(model, 2)
    with pytest.raises(NotFiniteError, match=r"source\.tokens\.weight"), np.errstate(invalid="ignore"):
        loss_and_gradients(model, [make_batch([([5, 6], [7]), ([5], [8])])], workers=workers)
    workers.close()


@settings(max_examples=60)
@given(
    lengths=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9),
    count=st.integers(1, 5),
)
def test_split_batches_contain_every_sentence_once(lengths, count):
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


def test_batches_of_sentences_are_split_as_well():
    batch = SentenceBatch(*(np.array([[5, 6, 7, 3], [5, 3, 0, 0], [8, 9, 3, 0]]),) * 2)
    pieces = split_batch(batch, 2)
    assert [type(piece) for piece in pieces] == [type(batch)] * 2
    assert sum(piece.tokens for piece in pieces) == batch.tokens


def test_they_work_at_the_same_time():
    # the timeout only guards against waiting forever
    workers, meeting = Workers(make_model(), 3), threading.Barrier(3, timeout=120)
    assert sorted(workers.run(lambda thing: (meeting.wait(), thing)[1], range(3))) == [0, 1, 2]
    workers.close()
