"""Every restriction of the stand-in's `fuse`: CuPy refuses it, is slow or computes something else."""

import numpy as np
import pytest


def test_writing_in_place_changes_the_argument(cupy, x):
    @cupy.fuse()
    def double(x, y):
        x += x
        y[...] = x * 1.0

    y = cupy.empty((2, 3))
    assert double(x, y) is None
    assert y.tolist() == x.tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize(
    "body",
    [
        "x if x > 0 else -x", "float(x)", "x * (1 - n)", "x * (n * n)", "x[0]", "x.sum(-1)", "x.shape",
        "len(x)", "cupy.sum(x, axis=-1, keepdims=True)",
        "cupy.mean(x, axis=-1)", "cupy.sum(row, axis=0)", "x @ x",
        "x - cupy.max(x, axis=1)", "cupy.sum(x, axis=1) * n", "cupy.sum(cupy.sum(x, axis=1), axis=0)",
        "x.__setitem__(0, 1.0)", "row.__iadd__(x)", "row * 2", "n", "[x]",
        "x * host", "x * other", "cupy.exp(x, out=x)", "cupy.zeros_like(x)", "(x, cupy.sum(x, axis=1))",
        "same.__iadd__(1)", "cupy.take(x, 0)", "host * x", "cupy.sum(n, axis=0)",
    ],
)  # fmt: skip
def test_invalid_fused_functions(cupy, x, body):
    names = {"cupy": cupy, "host": np.ones((2, 3)), "other": cupy.ones((2, 3))}
    function = cupy.fuse(eval(f"lambda x, row, n, same: {body}", names))
    with pytest.raises(TypeError):
        function(x, cupy.ones(3), 2.0, x[:, ::-1])


def test_no_sum_after_writing_and_no_arguments_but_arrays_and_numbers(cupy, x):
    with pytest.raises(TypeError, match="after writing"):
        cupy.fuse(lambda x: cupy.sum(x.__iadd__(1), axis=1))(x)
    for wrong in (np.ones(2), np.float32(1), [1.0], "1"):
        with pytest.raises(TypeError):
            cupy.fuse(lambda x, n: x)(x, wrong)
