"""Functions of JAX: correct gradients pass, and each mistake is found in its row and named."""

from functools import partial

import pytest
from foreign_case import assert_diagnosed

import npformer
from npformer.checking.foreign import library_of_function

pytestmark = pytest.mark.jax
jax = pytest.importorskip("jax")

from foreign_jax_cases import CASES  # noqa: E402  it imports jax

NAMES = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case(case):
    assert_diagnosed(case)


def test_there_are_many_cases_and_no_name_occurs_twice():
    assert sum(bool(case.wrong) for case in CASES) >= 15
    assert sum(not case.wrong for case in CASES) >= 8
    assert len(set(NAMES)) == len(NAMES)


def test_jax_computes_in_its_own_precision_afterwards():
    assert not jax.config.jax_enable_x64
    seen = []

    def f(x):
        seen.append(x.dtype)
        return jax.numpy.exp(x)

    assert npformer.gradcheck(f, jax.numpy.ones(3)).ok
    assert {str(dtype) for dtype in seen} <= {"float64", "complex128"}
    assert not jax.config.jax_enable_x64


def test_a_kernel_in_bfloat16_beside_its_reference():
    def kernel(x):
        return jax.numpy.exp(x)

    x = jax.numpy.linspace(-1, 1, 8, dtype=jax.numpy.bfloat16)
    assert npformer.gradcheck(kernel, x, reference=jax.numpy.exp).ok
    report = npformer.gradcheck(lambda x: kernel(x) * 1.1, x, reference=jax.numpy.exp)
    assert not report.ok


def test_an_error_in_forward_is_said_in_one_sentence():
    with pytest.raises(npformer.UserError, match="raised TypeError in forward"):
        npformer.gradcheck(lambda x: x + "a", jax.numpy.ones(3))


def scaled(x, n=2):
    return jax.numpy.sin(x) * n


WRAPPED = {
    "jit": jax.jit(scaled),
    "vmap": jax.vmap(scaled),
    "checkpoint": jax.checkpoint(scaled),
    "partial": partial(scaled, n=3),
    "jit of partial": jax.jit(partial(scaled, n=3)),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_function_is_known_without_an_array_of_jax(name, rng):
    library = library_of_function(WRAPPED[name])
    assert library == "jax"
    assert npformer.gradcheck(WRAPPED[name], rng.standard_normal((2, 3)), library=library).ok
