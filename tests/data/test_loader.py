"""Padding, batches, the plan of an epoch, and the data loader."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npformer.data.loader import Batch, example_lengths, make_batch, pad, plan_batches, truncate
from npformer.data.vocabulary import END, PAD, START
from npformer.errors import UserError

id_lists = st.lists(st.integers(4, 50), max_size=9)
seeds = st.integers(0, 2**40)
length_pairs = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=80)
quick = settings(max_examples=300 if os.environ.get("NPFORMER_NIGHTLY") else 40)


def corpus_lengths(n=30_000, seed=0):
    """Return lengths (n, 2) distributed as those of image captions in two languages."""
    rng = np.random.default_rng(seed)
    source = np.clip(rng.gamma(11.0, 1.25, n).round().astype(int), 4, 40)
    target = np.clip((source * rng.normal(1.08, 0.14, n)).round().astype(int), 4, 45)
    return np.stack([source, target], axis=1)


def padding_share(lengths, plan):
    """Return the share of padding in the padded arrays, source and target."""
    padded = sum(lengths[batch].max(axis=0).sum() * len(batch) for batch in plan)
    return 1 - lengths.sum() / padded


# --- arrays ---


def test_pad():
    padded = pad([[5, 6, 7], [8], []])
    np.testing.assert_array_equal(padded, [[5, 6, 7], [8, PAD, PAD], [PAD, PAD, PAD]])
    assert padded.dtype == np.int64
    np.testing.assert_array_equal(pad([[5], [6, 7]], pad_id=-1), [[5, -1], [6, 7]])
    assert pad([]).shape == (0, 0)
    assert pad([[], []]).shape == (2, 0)


def test_truncate_keeps_end():
    assert truncate([5, 6, 7, END], 4) == [5, 6, 7, END]
    assert truncate([5, 6, 7, END], 3) == [5, 6, END]
    assert truncate([5, 6, 7, END], 1) == [END]
    assert truncate([5, 6, 7, 8], 3) == [5, 6, 7]
    assert truncate([], 3) == []
    with pytest.raises(UserError, match="max_length is 0"):
        truncate([5], 0)


def test_make_batch():
    batch = make_batch([([5, 6], [7]), ([8], [9, 10, 11])])
    np.testing.assert_array_equal(batch.source, [[5, 6, END], [8, END, PAD]])
    np.testing.assert_array_equal(batch.target_in, [[START, 7, PAD, PAD], [START, 9, 10, 11]])
    np.testing.assert_array_equal(batch.target_out, [[7, END, PAD, PAD], [9, 10, 11, END]])
    assert batch.tokens == 6
    assert make_batch([([5], [6, 7, 8]), ([5], [])]).tokens == 5
    assert isinstance(batch, Batch)
    assert {array.dtype for array in batch} == {np.dtype(np.int64)}


@quick
@given(examples=st.lists(st.tuples(id_lists, id_lists), min_size=1), max_length=st.none() | st.integers(1, 6))
def test_target_in_is_target_out_shifted_by_one(examples, max_length):
    source, target_in, target_out = make_batch(examples, max_length=max_length)
    assert (target_in[:, 0] == START).all()
    for before, after in zip(target_in, target_out, strict=True):
        real = int((after != PAD).sum())
        assert before[1:real].tolist() == after[: real - 1].tolist()
        assert after[real - 1] == END
        assert not before[real:].any()
    if max_length is None:
        sizes = np.stack([(source != PAD).sum(1), (target_out != PAD).sum(1)], axis=1)
        np.testing.assert_array_equal(sizes, example_lengths(examples))
    else:
        assert max(source.shape[1], target_out.shape[1]) <= max_length


# --- the plan ---


limits = st.builds(lambda n: {"batch_size": n}, st.integers(1, 20))
limits |= st.builds(lambda n: {"batch_tokens": n}, st.integers(1, 200))


@quick
@given(lengths=length_pairs, seed=seeds, epoch=st.integers(0, 99), limit=limits)
def test_every_example_once_within_the_limit(lengths, seed, epoch, limit):
    plan = plan_batches(lengths, seed=seed, epoch=epoch, **limit)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    sizes = [len(batch) for batch in plan]
    assert min(sizes) > 0
    if "batch_size" in limit:
        assert max(sizes) <= limit["batch_size"]
        assert max(sizes) - min(sizes) <= 1
        assert len(plan) == -(-len(lengths) // limit["batch_size"])
    else:
        padded = [np.max(np.array(lengths)[batch]) * len(batch) for batch in plan]
        assert all(n <= limit["batch_tokens"] or size == 1 for n, size in zip(padded, sizes, strict=True))


@pytest.mark.parametrize("limit", [{"batch_size": 64}, {"batch_tokens": 2048}])
def test_batches_have_little_padding(limit):
    lengths = corpus_lengths()
    share = padding_share(lengths, plan_batches(lengths, seed=0, epoch=0, **limit))
    anyhow = np.array_split(np.random.default_rng(0).permutation(len(lengths)), len(lengths) // 64)
    assert share < 0.06
    assert padding_share(lengths, anyhow) > 0.4


def test_a_plan_depends_only_on_seed_and_epoch():
    lengths = corpus_lengths(500)

    def plan(seed, epoch):
        return [batch.tolist() for batch in plan_batches(lengths, seed=seed, epoch=epoch, batch_size=16)]

    first = plan(3, 7)
    np.random.default_rng(0).random(9)
    assert plan(3, 7) == first
    assert plan(3, 8) != first
    assert plan(4, 7) != first
    assert plan(7, 3) != first


def test_the_order_and_the_batches_change_between_epochs():
    lengths = corpus_lengths(2000)
    one, two = (plan_batches(lengths, seed=0, epoch=epoch, batch_size=16) for epoch in (0, 1))
    assert len({frozenset(b.tolist()) for b in one} & {frozenset(b.tolist()) for b in two}) < len(one) / 20
    # batches of short sentences must not all come first: in about half of the steps the length increases
    mean_length = np.array([lengths[batch].mean() for batch in one])
    assert 0.3 < (np.diff(mean_length) > 0).mean() < 0.7
    assert abs(np.corrcoef(mean_length, np.arange(len(one)))[0, 1]) < 0.3


@pytest.mark.parametrize(
    ("lengths", "changed", "message"),
    [
        ([], {}, "no examples to make batches of"),
        (np.zeros((0, 2), int), {}, "no examples to make batches of"),
        ([1.5], {}, "whole numbers of shape"),
        ([3, -1], {}, "none of them negative"),
        ([[1, 2, 3]], {}, r"not int64 of shape \(1, 3\)"),
        ([3], {"batch_size": None}, "either batch_size .* or batch_tokens"),
        ([3], {"batch_tokens": 9}, "either batch_size .* or batch_tokens"),
        ([3], {"batch_size": 0}, "batch_size is 0"),
        ([3], {"batch_size": None, "batch_tokens": -2}, "batch_tokens is -2"),
        ([3], {"batch_size": "2"}, "batch_size is '2': it must be a whole number, 1 or more"),
        ([3], {"seed": -1}, "seed is -1"),
        ([3], {"seed": 1.5}, "seed is 1.5: it must be a whole number, 0 or more"),
        ([3], {"epoch": -1}, "epoch is -1"),
    ],
)
def test_invalid_settings(lengths, changed, message):
    with pytest.raises(UserError, match=message):
        plan_batches(lengths, **({"seed": 0, "epoch": 0, "batch_size": 4} | changed))
