"""Every restriction of the stand-in for CuPy: what would fail or differ on a GPU fails or differs here."""

import copy
import importlib.util
import math
import sys

import numpy as np
import pytest
import strict_cupy

# --- the module and its arrays


def test_import_gives_the_stand_in_until_it_is_undone():
    before = sys.modules.get("cupy")
    with strict_cupy.installed() as module:
        import cupy
        from cupy.cuda import runtime
        from cupyx.scipy.special import erf

        assert cupy is module
        assert importlib.util.find_spec("cupy") is not None
        assert runtime.getDeviceCount() == 1
        assert erf(cupy.ones(1)).shape == (1,)
        assert not strict_cupy.real_cupy_available()
        with pytest.raises(ModuleNotFoundError):
            import cupy.fft
    assert sys.modules.get("cupy") is before


def test_a_device_array_is_not_a_numpy_array_and_names_cupy(cupy, x):
    assert isinstance(x, cupy.ndarray)
    assert not isinstance(x, (np.ndarray, np.generic))
    assert type(x).__module__.partition(".")[0] == "cupy"
    assert cupy.get_array_module(1.0, x) is cupy
    assert cupy.get_array_module(np.ones(2)) is np
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


@pytest.mark.skipif(not strict_cupy.real_cupy_available(), reason="needs CuPy and a GPU")
def test_every_name_exists_in_the_real_cupy():
    import cupy as real

    with strict_cupy.installed() as cupy:
        names = [name for name in vars(cupy) if not name.startswith("__")]
    assert [name for name in names if not hasattr(real, name)] == []


# --- no implicit transfers


@pytest.mark.parametrize(
    "call",
    [
        np.asarray, np.array, np.exp, np.sum, np.zeros_like, np.shape, np.iscomplexobj, np.isfinite,
        lambda x: np.add(1.0, x), lambda x: np.matmul(np.ones((2, 2)), x), lambda x: np.stack([x, x]),
        lambda x: np.where(np.ones((2, 3), bool), x, 0), lambda x: np.einsum("ij->j", x),
        lambda x: np.add.at(np.zeros(3), [0], x), lambda x: np.array([x, x]), lambda x: np.ones(3)[x],
        lambda x: np.copyto(np.ones((2, 3)), x), lambda x: np.ones((2, 3)).__setitem__(slice(None), x),
        lambda x: np.linalg.norm(x), lambda x: np.random.default_rng(0).permutation(x),
    ],
)  # fmt: skip
def test_numpy_refuses_device_arrays(x, call):
    with strict_cupy.counted_transfers() as crossed, pytest.raises((TypeError, IndexError)):
        call(x)
    assert crossed.to_host == 0


OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "<", "<=", ">", ">=", "==", "!=")
FORMS = ("x {} host", "host {} x", "x {} [1.0]")


@pytest.mark.parametrize("expression", [form.format(symbol) for symbol in OPERATORS for form in FORMS])
def test_operators_refuse_host_arrays_on_either_side(x, expression):
    with pytest.raises(TypeError):
        eval(expression, {"x": x, "host": np.ones((2, 3))})


@pytest.mark.parametrize("statement", ["x += host", "x *= host", "host += x", "host -= x", "x[0] = host[0]"])
def test_assignments_refuse_host_arrays(x, statement):
    with pytest.raises(TypeError):
        exec(statement, {"x": x, "host": np.ones((2, 3))})


@pytest.mark.parametrize(
    "expression",
    [
        "cupy.exp(host)", "cupy.sum(host)", "cupy.sum([1.0])", "cupy.maximum(x, host)", "cupy.exp([1.0])",
        "cupy.where(host > 0, x, 0.0)", "cupy.concatenate([x, host])", "cupy.matmul(x, host.T)",
        "cupy.exp(x, out=host)", "cupy.sum(x, axis=0, out=host[0])",
        "cupy.zeros_like(host)", "cupy.take(x, host.astype(int))", "x[host.astype(int)]", "x[host > 0]",
        "cupy.add.at(x, 0, host[0])", "cupy.split(x, np.array([1]))", "cupy.zeros(np.array([2, 3]))",
        "cupy.asarray([x[0], x[1]])", "cupy.array(['a'])", "cupy.asarray(np.array([None]))",
        "cupy.zeros(2, np.longdouble)", "x.reshape(np.array([3, 2]))", "x.sum(axis=cupy.asarray(0))",
        "range(cupy.asarray(3))", "[1, 2][cupy.asarray(0)]", "x[:cupy.asarray(1)]", "math.sqrt(x)",
    ],
)  # fmt: skip
def test_cupy_refuses_values_that_are_not_on_the_device(cupy, x, expression):
    with pytest.raises((TypeError, ValueError)):
        eval(expression, {"x": x, "cupy": cupy, "host": np.ones((2, 3)), "np": np, "math": math})


def test_python_scalars_are_weak_and_numpy_scalars_strong(cupy):
    single = cupy.ones(3, cupy.float32)
    for weak in (2, 2.0, True):
        assert (single * weak).dtype == (weak * single).dtype == np.float32
    assert (single * np.float32(2)).dtype == np.float32
    assert (single * np.float64(2)).dtype == (np.float64(2) * single).dtype == np.float64
    assert (single * cupy.asarray(2.0)).dtype == np.float64  # 0-d arrays are strong as well
    assert (single * 1j).dtype == np.complex64
    with pytest.raises(TypeError):
        single += 1j
    with pytest.raises(TypeError):
        single == None  # noqa: B015, E711
    assert isinstance(np.float64(2) / single, cupy.ndarray)


# --- explicit transfers are counted


@pytest.mark.parametrize(
    "transfer",
    [float, int, complex, bool, str, repr, lambda v: v.item(), lambda v: v.get(), lambda v: v.tolist()],
)
def test_transfers_to_the_host_are_counted(cupy, transfer):
    value = cupy.asarray(np.float64(1.0))
    with strict_cupy.counted_transfers() as crossed:
        transfer(value)
    assert (crossed.to_host, crossed.to_device) == (1, 0)


def test_transfers_to_the_device_are_counted(cupy, x):
    with strict_cupy.counted_transfers() as crossed:
        cupy.asarray(np.ones(3)), cupy.array([1, 2]), x[[0, 1]]
        cupy.asarray(x), cupy.arange(3), x.copy(), copy.deepcopy(x), x.astype(np.float32), x[0] + 1.0
        assert cupy.asnumpy(x).sum() == 15
    assert (crossed.to_device, crossed.to_host) == (3, 1)


# --- functions and arguments that CuPy lacks


@pytest.mark.parametrize("name", ["errstate", "vecdot", "frompyfunc", "float128", "object_", "concat", "pow"])
def test_the_error_for_a_missing_name_names_it(cupy, name):
    with pytest.raises(AttributeError, match=f"'cupy' has no attribute '{name}'.*add it if the real CuPy"):
        getattr(cupy, name)
    with pytest.raises(AttributeError, match="CUDA source"):
        cupy.ElementwiseKernel  # noqa: B018


@pytest.mark.parametrize(
    "expression",
    [
        "cupy.exp(x, where=x > 0)", "cupy.exp(x, where=True)", "cupy.sum(x, where=x > 0)",
        "x.sum(where=x > 0)", "x.max(initial=0.0)",
        "cupy.add(x, x, order='C')", "cupy.take(x, 0, mode='wrap')",
        "x.astype(float, casting='no')",
        "cupy.clip(x, min=0.0)", "cupy.broadcast_to(x, (2, 3), subok=True)", "cupy.reshape(x, shape=(3, 2))",
        "cupy.add.reduceat(x, [0])", "cupy.maximum.reduce(x)", "x.mT", "x.repeat(x)", "cupy.matmul(x, 2.0)",
    ],
)  # fmt: skip
def test_arguments_that_cupy_lacks_are_refused(cupy, x, expression):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        eval(expression, {"x": x, "cupy": cupy})


# --- results are arrays


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "argmax", "argmin", "all", "any"])
def test_reductions_return_0d_arrays(cupy, x, name):
    for result in (getattr(x, name)(), getattr(cupy, name)(x)):
        assert isinstance(result, cupy.ndarray)
        assert result.shape == ()
        assert result.item() == getattr(np, name)(x.get())


# --- other functions


def test_erf_accepts_real_numbers_only(cupy):
    erf = sys.modules["cupyx.scipy.special"].erf
    assert erf(cupy.asarray([0.0, 0.5])).tolist() == [0.0, math.erf(0.5)]
    assert erf(cupy.ones(2, cupy.float32)).dtype == np.float32
    with pytest.raises(TypeError):
        erf(cupy.ones(2, cupy.complex128))


def test_random_numbers_differ_from_numpys(cupy):
    draw, again = (cupy.random.default_rng(3).random((2, 4), dtype=cupy.float32) for _ in range(2))
    np.testing.assert_array_equal(again.get(), draw.get(), strict=True)
    assert (draw.get() != np.random.default_rng(3).random((2, 4), dtype=np.float32)).all()
    assert not hasattr(cupy.random.default_rng(3), "normal")
