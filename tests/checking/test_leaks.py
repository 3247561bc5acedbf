"""The movement of outputs when a token changes, and the check that masked tokens do not move any output."""

import numpy as np
import pytest
from refused import refused
from tiny import tiny_model

from npformer import MultiHeadAttention, assert_no_leak
from npformer.checking.leaks import movement
from npformer.functional.masks import causal_mask, local_mask, padding_mask

IDS = np.array([4, 5, 6, 7, 8, 3])
PADDED = np.array([4, 5, 6, 7, 0, 0])
FULL = np.ones((6, 6), bool)
CAUSAL, PADDING = causal_mask(6, IDS), padding_mask(PADDED[None])  # (T, S) and (1, 1, 1, S)


@pytest.fixture(params=[np.float32, np.float64])
def layer(request):
    return MultiHeadAttention(8, 2, rng=np.random.default_rng(0), dtype=request.param)


@pytest.fixture
def x(rng, layer):
    return rng.standard_normal((1, 6, 8)).astype(layer.query.weight.value.dtype)


def attend(layer, mask):
    return lambda x: layer.forward(x, mask=mask)


def leak(words):
    """Return the context in which an output must move that may not, as the words say."""
    return pytest.raises(AssertionError, match=words)


# Correct masks: no output moves by a single bit.


def test_correct_masks_do_not_leak(layer, x):
    assert_no_leak(attend(layer, CAUSAL), x)
    assert_no_leak(attend(layer, CAUSAL), x, CAUSAL)
    assert_no_leak(lambda x: layer.forward(x[None], mask=CAUSAL)[0][0], x[0])  # without a batch axis
    assert_no_leak(attend(layer, PADDING), x, PADDING, own=True)
    assert_no_leak(lambda memory: layer.forward(x, memory, mask=PADDING), x, PADDING)


def test_outputs_move_exactly_where_the_mask_allows(layer, x):
    for mask in (CAUSAL, local_mask(6, 1, x), CAUSAL & local_mask(6, 2, x), FULL):
        moved = movement(attend(layer, mask), x)
        assert np.array_equal(moved > 0, mask)
        assert moved.dtype == np.float64


def test_cross_attention_of_another_length(layer, x):
    memory, mask = x[:, :4], np.array([True, True, False, False])
    assert_no_leak(lambda memory: layer.forward(x, memory, mask=mask), memory, np.tile(mask, (6, 1)))
    with leak("output 0 moves when token 2 changes"):
        assert_no_leak(lambda memory: layer.forward(x, memory), memory, mask)


@pytest.mark.parametrize("ids", [IDS, IDS[None], IDS.tolist()], ids=["(T,)", "(1, T)", "list"])
def test_a_whole_model_is_causal_in_ids(ids):
    model = tiny_model()

    def forward(target_in):
        return model.forward(IDS[None], np.atleast_2d(target_in))[0].reshape(6, -1)

    assert_no_leak(forward, ids)


# Wrong masks are found.


@pytest.mark.parametrize("wrong", [np.tril(FULL, 1), np.tril(FULL, 3), CAUSAL.T])
def test_a_mask_that_is_not_causal(layer, x, wrong):
    with leak("^output 0 moves when token 1 changes.*, and the mask forbids it"):
        assert_no_leak(attend(layer, wrong), x)


def test_the_message_names_the_first_pair(layer, x):
    mask = CAUSAL.copy()
    mask[2, 4] = True
    with leak("^output 2 moves when token 4 changes, and the mask forbids it$"):
        assert_no_leak(attend(layer, mask), x)
    mask[4, 5] = mask[2, 5] = True
    with leak(r"^output 2 moves when token 4 .* \(3 such pairs\)$"):
        assert_no_leak(attend(layer, mask), x)


# The output at the token that changes.


def test_leaving_out_the_token_itself_does_not_hide_other_leaks(layer, x):
    mask = np.tril(FULL, -1)  # strictly before
    mask[0, 0] = True
    with leak("output 1 moves when token 1 changes"):
        assert_no_leak(attend(layer, CAUSAL), x, mask)
    assert_no_leak(attend(layer, CAUSAL), x, mask, own=True)
    with leak(r"output 4 moves when token 4 changes.*own=True allows"):
        assert_no_leak(attend(layer, PADDING), x, PADDING)
    with leak("output 0 moves when token 4 changes"):
        assert_no_leak(attend(layer, None), x, PADDING, own=True)


# Properties of the measurement itself.


def test_changed_ids_stay_inside_the_vocabulary_of_the_input():
    inputs = []

    def forward(ids):
        inputs.append(ids.tolist())
        return ids[:, None]

    assert_no_leak(forward, IDS)
    assert {i for ids in inputs for i in ids} == set(IDS.tolist())
    assert len(inputs) == 2 + len(IDS)


def test_a_new_nan_is_a_movement_and_an_unchanged_nan_is_not(x):
    def forward(x):
        y = np.zeros((6, 2))
        y[0] = np.nan
        if x[4, 0] == 7:
            y[1] = np.nan
        return y

    def seven(x, s):
        x[s] = 7
        return x

    with leak("output 1 moves when token 4 changes"):
        assert_no_leak(forward, x[0], change=seven)


@pytest.mark.parametrize(
    ("x", "settings", "words"),
    [
        (IDS, {"mask": np.ones((6, 6))}, "mask has dtype float64: make it bool"),
        (IDS, {"mask": np.ones((5, 6), bool)}, r"mask has shape \(5, 6\).*broadcast to \(6, 6\)"),
        (IDS, {"mask": np.ones((2, 1, 6, 6), bool)}, "mask has shape"),
        (np.ones((2, 6), int), {}, "one sentence is tested at a time"),
        (np.ones((2, 6, 8)), {}, "one sentence is tested at a time"),
        (np.ones((0, 8)), {}, "one sentence is tested at a time"),
        ([], {}, "one sentence is tested at a time"),
        (["je", "suis"], {}, "one sentence is tested at a time"),
        ([[1, 2], [3]], {}, "rows of different lengths"),
        (np.full(6, 4), {}, "all ids of the sentence are 4"),
    ],
)
def test_invalid_arguments_are_refused(x, settings, words):
    with refused(words):
        assert_no_leak(lambda x: np.asarray(x).reshape(len(x), -1), x, **settings)


def test_invalid_forward_functions_are_refused(x):
    drop = np.random.default_rng(0)
    with refused("turn dropout off"):
        assert_no_leak(lambda x: x * (drop.random(x.shape) > 0.5), x)
    with refused("the causal mask is square: give a mask"):
        assert_no_leak(lambda x: x[:, :4], x)
    with refused("own=True pairs each output with its own token"):
        assert_no_leak(lambda x: x[:, :4], x, np.ones((4, 6), bool), own=True)
    with refused("a row for each output"):
        assert_no_leak(lambda x: x.sum(), x[0])
    with refused("must not depend on the tokens"):
        assert_no_leak(lambda ids: ids[ids > 3][:, None], IDS)
