"""The kernels on the CPU against the plain pairs: blocks, long sentences, huge numbers."""

import numpy as np
import pytest
from kernel_comparison import CPU, as_tuple, dtypes, rng
from tiny import normal

import npformer.functional as F
from npformer import kernels
from npformer.errors import UserError
from npformer.functional.masks import causal_mask
from npformer.kernels import cpu, plain_pairs
from npformer.kernels.cpu.block_attention import BlockAttentionCache
from npformer.kernels.cpu.blocks import blocks
from npformer.kernels.cpu.dropout import draw_factors
from npformer.kernels.cpu.long_attention import long_attention
from npformer.kernels.shared import draw_dropout_mask


def cast(dtype, *arrays):
    """Return the arrays in the dtype of the kernel, and the same rounded numbers in float64."""
    short = [array.astype(dtype) for array in arrays]
    return short, [array.astype(np.float64) for array in short]


def run_attention(module, q, k, v, dy, mask, **settings):
    """Return the output, the weights and all gradients of one version."""
    y, cache = module.attention(q, k, v, mask, **settings)
    return y, cache.weights, *kernels.attention_backward(dy, cache)


def make_mask(kind, b, h, t, s):
    """Return no mask, a padding mask, a causal one, or a random one, which may mask a whole row."""
    if kind == "none":
        return None
    if kind == "keys":
        return (np.arange(s) <= rng(3).integers(0, s, (b, 1)))[:, None, None, :]
    if kind == "causal":
        return np.tril(np.ones((t, s), bool))
    return rng(4).random((b, h, t, s)) < 0.5


@dtypes
@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 2, 0, 4)], ids=["no sentence", "no query"])
def test_attention_without_queries(dtype, shape):
    q, k = np.ones(shape), np.ones((shape[0], 2, 3, 4))
    short, long = cast(dtype, q, k, k, q)
    CPU.agree(run_attention(cpu, *short, None), run_attention(F, *long, None), dtype)


@dtypes
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_attention_with_huge_scores(dtype, scale):
    q, k, v, dy = (normal(2, 2, 5, 3, seed=seed) for seed in range(4))
    short, long = cast(dtype, q * scale, k, v, dy)
    mask = np.tril(np.ones((5, 5), bool))
    mask[2] = False
    found, expected = run_attention(cpu, *short, mask), run_attention(F, *long, mask)
    assert all(np.isfinite(array).all() for array in found)
    if dtype is np.float64:  # in float32 the scores, which are near 1,000, have errors of 1e-4
        CPU.agree(found, expected, dtype, 1e-10)
    assert not found[1][:, :, 2].any()


@dtypes
@pytest.mark.parametrize("scores", [[0, 100], [0, -100], [100, 100], [-200, -200]])
def test_attention_with_scores_on_one_side_of_the_safe_range(dtype, scores):
    """exp(100) overflows in float32, and exp(-200) is 0 there."""
    q, k, v = np.ones((1, 1, 1, 1)), np.array(scores, float).reshape(1, 1, 2, 1), normal(1, 1, 2, 3)
    short, long = cast(dtype, q, k, v, normal(1, 1, 1, 3, seed=1))
    CPU.agree(
        run_attention(cpu, *short, None, scale=1), run_attention(F, *long, None, scale=1), dtype, least=100
    )


SEVERAL_BLOCKS = {  # the shape, the mask, and the rows and numbers in a row that blocks divide
    "of sentences": ((40, 4, 32, 2), "keys", (40, 4 * 32 * 32), 3),
    "of sentences, causal": ((40, 4, 32, 2), "causal", (40, 4 * 32 * 32), 3),
    "of long queries": ((2, 1, 300, 2), "keys", (300, 300), 2),
    "of sentences and queries": ((9, 4, 100, 2), "causal", (9, 4 * 64 * 100), 5),
}


@pytest.mark.parametrize(("shape", "kind", "divided", "count"), SEVERAL_BLOCKS.values(), ids=SEVERAL_BLOCKS)
def test_attention_over_several_blocks(shape, kind, divided, count):
    arrays = [normal(*shape, seed=seed) for seed in range(4)]
    assert len(list(blocks(*divided))) == count
    mask = make_mask(kind, *shape[:3], shape[2])
    CPU.agree(run_attention(cpu, *arrays, mask), run_attention(F, *arrays, mask), np.float64, 1e-11)


@pytest.mark.parametrize("length", [5, 70], ids=["short", "blocks"])
def test_huge_scores_of_other_queries_change_no_bit(length):
    q, k, v = (normal(2, 2, length, 3, seed=seed) for seed in range(3))
    mask, seen = make_mask("causal", 2, 2, length, length), length // 2
    y, _ = cpu.attention(q, k, v, mask)
    q[:, :, seen] *= 1000
    k[:, :, seen + 1] *= 1000
    moved, _ = cpu.attention(q, k, v, mask)
    np.testing.assert_array_equal(moved[:, :, :seen], y[:, :, :seen])


@dtypes
@pytest.mark.parametrize("kind", ["none", "keys", "fewer keys", "causal", "rows"])
def test_long_attention_stores_no_weights(dtype, kind):
    n_keys = 250 if kind == "fewer keys" else 260
    arrays = (normal(2, 2, n, 3, seed=seed) for seed, n in enumerate((260, n_keys, n_keys, 260)))
    short, long = cast(dtype, *arrays)
    mask = make_mask(kind.removeprefix("fewer "), 2, 2, 260, n_keys)
    if kind == "rows":
        mask[1, :, 7] = False  # two fully masked queries
    found = run_attention(cpu, *short, mask)
    CPU.agree(found, run_attention(F, *long, mask), dtype, 1e-5 if dtype is np.float32 else 1e-11)
    y, cache = cpu.attention(*short[:3], mask)
    assert "weights" not in cache._fields
    np.testing.assert_allclose(cache.scores, F.attention(*long[:3], mask)[1].scores, rtol=1e-3, atol=1e-5)
    assert getattr(cache, "exponentials", None) is None
    assert sum(a.nbytes for a in cache if isinstance(a, np.ndarray) and a.dtype != bool) < 5 * y.nbytes


def make_shared_mask(kind, t):
    """Return no mask or one for all sentences and heads: causal, a window, a part of the keys, or random."""
    if kind == "none":
        return None
    if kind == "keys":
        return (np.arange(t) < t - 9)[None]
    if kind == "keys, one axis":
        return np.arange(t) < t - 9
    if kind == "rows":
        return np.asarray((rng(4).random((t, t)) < 0.5) & (np.arange(t) != 7)[:, None])
    if kind == "first rows":
        return np.broadcast_to((np.arange(t) < t - 64)[:, None], (t, t))
    return causal_mask(t, np.ones(1), window=11 if kind == "window" else None)


@dtypes
@pytest.mark.parametrize("scale", [1, 100], ids=["safe scores", "huge scores"])
@pytest.mark.parametrize("kind", ["none", "causal", "window", "keys", "keys, one axis", "rows", "first rows"])
@pytest.mark.parametrize("length", [70, 300], ids=["stored", "computed again"])
def test_block_attention(dtype, length, kind, scale):
    """The mask "rows" masks all keys of query 7, and "first rows" those of a whole block of queries."""
    q, k, v, dy = (normal(3, 2, length, 5, seed=seed) for seed in range(4))
    short, long = cast(dtype, q * scale, k, v, dy)
    mask = make_shared_mask(kind, length)
    found, expected = run_attention(cpu, *short, mask), run_attention(F, *long, mask)
    _, cache = cpu.attention(*short[:3], mask)
    assert isinstance(cache, BlockAttentionCache)
    assert (cache.exponentials is None) == (length == 300)
    # float32 rounds scores of 100 to 1e-5
    CPU.agree(found, expected, dtype, 1e-3 if scale > 1 and dtype is np.float32 else None)
    np.testing.assert_allclose(cache.scores, F.attention(*long[:3], mask)[1].scores, rtol=1e-3, atol=1e-4)


def test_block_attention_leaves_out_the_keys_that_no_query_attends_to():
    arrays = [normal(2, 3, 128, 4, seed=seed) for seed in range(3)]
    _, cache = cpu.attention(*arrays, make_shared_mask("causal", 128))
    assert [part.shape for part in cache.exponentials] == [(2, 3, 64, 128), (2, 3, 64, 64)]
    _, cache = cpu.attention(*arrays, make_shared_mask("window", 128)[None, None])
    assert [part.shape for part in cache.exponentials] == [(2, 3, 64, 74), (2, 3, 64, 64)]


KERNEL_CACHES = {
    "short": ("causal", 5),
    "blocks, stored": ("causal", 70),
    "blocks, computed again": ("causal", 300),
    "long": ("rows of each head", 130),
}


@pytest.mark.parametrize(("kind", "length"), KERNEL_CACHES.values(), ids=KERNEL_CACHES)
def test_the_cache_of_attention_shows_what_the_plain_one_shows(kind, length):
    """Figures read weights, scores and masks from it, here with a scale that is not the default."""
    q, k, v = (normal(1, 2, length, 3, seed=seed) for seed in range(3))
    mask = make_shared_mask(kind, length) if kind == "causal" else make_mask("rows", 1, 2, length, length)
    (_, cache), (_, plain) = (module.attention(q, k, v, mask, scale=0.3) for module in (cpu, F))
    np.testing.assert_allclose(cache.weights, plain.weights, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(cache.scores, plain.scores, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(cache.mask, plain.mask)


@pytest.mark.parametrize("length", [5, 70, 130])
def test_attention_without_dropout_draws_no_random_numbers(length):
    q, generator = normal(2, 1, length, 3), rng(5)
    cpu.attention(q, q, q, make_mask("keys", 2, 1, length, length), p=0.0, rng=generator)
    assert generator.random() == rng(5).random()


def test_dropout_of_long_attention_is_the_same_in_forward_and_backward():
    q, k, v, dy = (normal(1, 2, 130, 3, seed=seed) for seed in range(4))
    y, cache = cpu.attention(q, k, v, p=0.4, rng=rng(5))
    again, _ = cpu.attention(q, k, v, p=0.4, rng=rng(5))
    np.testing.assert_array_equal(y, again)
    plain, _ = cpu.attention(q, k, v)
    assert np.abs(y - plain).max() > 0.1
    # y is linear in v, so its gradient must be the adjoint of forward with the same dropout factors
    dq, _, dv = kernels.attention_backward(dy, cache)
    assert np.vdot(dv, v) == pytest.approx(np.vdot(dy, y), rel=1e-12)
    step = 1e-6 * normal(1, 2, 130, 3, seed=6)
    ahead, behind = (cpu.attention(q + s, k, v, p=0.4, rng=rng(5))[0] for s in (step, -step))
    assert np.vdot(dq, step) == pytest.approx(np.vdot(dy, ahead - behind) / 2, rel=1e-6)


def test_the_loss_in_a_vocabulary_of_one_token_is_0():
    loss, _ = cpu.cross_entropy(normal(2, 1), np.array([0, 9]), pad_id=9)
    assert loss == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", [cpu.cross_entropy, cpu.cross_entropy_in_place])
@pytest.mark.parametrize("wrong", [-1, 5])
def test_targets_outside_the_vocabulary_are_refused(loss, wrong):
    with pytest.raises(UserError, match=rf"target 1 .* is {wrong}, outside the 5 tokens"):
        loss(normal(3, 5), np.array([1, wrong, 2]))


def test_the_rows_of_a_token_are_added_in_their_order():
    """So every machine gets the same sums to the bit, although they are rounded."""
    ids, dy = rng().integers(0, 3, 5000), normal(5000, 2, seed=1).astype(np.float32)
    _, cache = F.embedding(ids, np.zeros((3, 2), np.float32))
    expected = [np.add.reduceat(dy[ids == token], [0])[0] for token in range(3)]
    np.testing.assert_array_equal(cpu.embedding_backward(dy, cache).evaluate(), expected)


class Counting(np.ndarray):
    """A subclass of ndarray."""


def test_the_first_array_decides_which_forward_pass_runs():
    def plain(*args, **settings):
        """Return the docstring of the chosen function."""
        return "plain", *settings

    def fast(*args, **settings):
        return "fast", *settings

    chosen = kernels.choice.choose(plain, fast, None, beside=1)
    real, single, ids = np.ones(2), np.ones(2, np.float32), np.arange(2)
    assert chosen(real, real, None, ids, p=0.5) == ("fast", "p")
    assert chosen(single, single) == ("fast",)
    assert chosen(real.astype(complex), real.astype(complex), scale=2) == ("plain", "scale")
    assert chosen(real.astype(np.float16), real.astype(np.float16)) == ("plain",)
    assert chosen(real.view(Counting), real) == ("plain",)
    # other dtypes beside it: NumPy's promotion decides
    assert chosen(single, real) == chosen(real, single) == chosen(real, real.astype(complex)) == ("plain",)
    with plain_pairs():
        assert chosen(real, real) == ("plain",)
    assert chosen(real, real) == ("fast",)
    assert chosen.__doc__ == plain.__doc__
    by_table = kernels.choice.choose(plain, fast, None, by=1)
    assert by_table(ids, real) == ("fast",)
    assert by_table(ids, real.astype(complex)) == ("plain",)


@pytest.mark.parametrize(
    ("kernel", "arrays"),
    [
        (kernels.linear, {"x": normal(2, 3), "weight": normal(3, 4), "bias": normal(4)}),
        (kernels.embedding, {"ids": np.array([1, 0]), "table": normal(3, 2)}),
        (kernels.cross_entropy, {"logits": normal(2, 3), "targets": np.array([1, 0])}),
        (kernels.attention, dict.fromkeys("qkv", normal(1, 1, 2, 3))),
    ],
)
def test_arrays_may_be_given_by_name(kernel, arrays):
    (y, cache), (expected, expected_cache) = kernel(**arrays), kernel(*arrays.values())
    np.testing.assert_array_equal(y, expected)
    assert type(cache) is type(expected_cache)
    with pytest.raises(TypeError, match=r"missing .* required positional argument"):
        kernel(next(iter(arrays.values())))


@pytest.mark.parametrize("weights", [np.float64, np.complex128])
def test_a_linear_map_of_two_dtypes_has_the_promoted_one(weights):
    x, weight, bias = normal(3, 4).astype(np.float32), normal(4, 5).astype(weights), normal(5)
    y, cache = kernels.linear(x, weight, bias)
    assert y.dtype == weights
    dx, dweight, dbias = kernels.linear_backward(np.ones_like(y), cache)
    assert {dx.dtype, dweight.dtype, dbias.dtype} == {np.dtype(weights)}


def test_the_factors_of_dropout_have_the_dtype_of_the_numbers():
    assert draw_factors(np.ones(9, np.float32), 0.5, rng(0)).dtype == np.float32


def test_a_relu_whose_dropout_keeps_half_of_the_numbers():
    """Each of them is multiplied by 2, and so is its gradient."""
    y, cache = cpu.relu_dropout(np.ones((4, 50)), 0.5, rng(0))
    assert set(np.unique(y)) == {0, 2}
    np.testing.assert_array_equal(cpu.relu_dropout_backward(np.ones((4, 50)), cache), y)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("name", ["linear", "relu_dropout", "dropout", "rms_norm"])
def test_a_kernel_takes_a_dy_of_another_precision(name, dtype):
    """Its own backward pass runs, since the cache is its own."""
    arrays = {"linear": [(4, 8)], "rms_norm": [(8,)]}.get(name, [])
    settings = {} if arrays else {"p": 0.4, "rng": rng(3)}
    args = [normal(*shape, seed=seed).astype(np.float32) for seed, shape in enumerate([(3, 4), *arrays])]
    if name == "rms_norm":
        args = [normal(3, 8).astype(np.float32), args[1]]
    y, cache = getattr(cpu, name)(*args, **settings)
    dy = normal(*y.shape, seed=4).astype(dtype)
    backward = getattr(cpu, f"{name}_backward")
    found, expected = as_tuple(backward(dy, cache)), as_tuple(backward(dy.astype(np.float32), cache))
    for one, other in zip(found, expected, strict=True):
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=2e-2 if dtype is np.float16 else 1e-5, atol=1e-3)


# short sentences, and those of block_attention and, with dropout, of long_attention
@pytest.mark.parametrize(("length", "p"), [(3, 0.0), (130, 0.0), (130, 0.5)])
@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (lambda n: np.ones((n, n)), "mask has dtype float64: make it bool"),
        (lambda n: np.ones((n, n + 1), bool), "mask has shape .* must broadcast"),
    ],
    ids=["floats", "one column too many"],
)
def test_a_wrong_mask_is_refused(length, p, mask, sentence):
    q = normal(1, 1, length, 2)
    with pytest.raises(UserError, match=sentence):
        cpu.attention(q, q, q, mask(length), p=p, rng=rng(0))


@pytest.mark.parametrize(("p", "rng"), [(1.0, rng(0)), (-0.5, rng(0)), (0.5, None)])
def test_a_dropout_mask_needs_a_probability_and_a_generator(p, rng):
    q = np.zeros((1, 1, 2, 2))
    for draw in (lambda: draw_dropout_mask(q, p, rng), lambda: long_attention(q, q, q, None, 1.0, p, rng)):
        with pytest.raises(UserError, match=r"dropout probability|needs a generator"):
            draw()


def test_the_dropout_mask_of_a_long_attention_is_that_of_its_blocks():
    q, k, v = normal(2, 2, 70, 3), normal(2, 2, 90, 3, seed=1), normal(2, 2, 90, 3, seed=2)
    y, cache = long_attention(q, k, v, None, 0.5, 0.4, rng(0))
    np.testing.assert_allclose((cache.weights * cache.dropout_mask) @ v, y, rtol=1e-10, atol=1e-12)
    assert set(np.unique(cache.dropout_mask)) == {0, 1 / 0.6}


@pytest.mark.parametrize("length", [6, 70])
@pytest.mark.parametrize("border", [-60.0, 60.0])
def test_a_score_at_the_border_of_the_safe_range_is_treated_alike_beside_huge_ones(length, border):
    """The key with this score is the third, so the queries 2 to 4 attend to it, and query 5 moves."""
    q, k, v = np.ones((1, 1, length, 1)), normal(1, 1, length, 1), normal(1, 1, length, 3, seed=1)
    k[0, 0, 2] = border
    mask = make_shared_mask("causal", length)
    y, _ = cpu.attention(q, k, v, mask, scale=1.0)
    q[0, 0, 5] *= 1000
    moved, _ = cpu.attention(q, k, v, mask, scale=1.0)
    np.testing.assert_array_equal(moved[:, :, :5], y[:, :, :5])
