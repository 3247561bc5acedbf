"""Functions of PyTorch: correct gradients pass, and each mistake is found in its row and named."""

import subprocess
import sys

import numpy as np
import pytest
from foreign_case import assert_diagnosed

import npformer

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from foreign_torch_cases import CASES  # noqa: E402  it imports torch

NAMES = [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case(case):
    assert_diagnosed(case)


def test_there_are_many_cases_and_no_name_occurs_twice():
    assert sum(bool(case.wrong) for case in CASES) >= 40
    assert sum(not case.wrong for case in CASES) >= 15
    assert len(set(NAMES)) == len(NAMES)


def test_a_module_stays_as_it_is():
    torch.manual_seed(11)  # here the rounding errors of the bias before the norm look like stairs
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    report = npformer.gradcheck(module, torch.randn(3, 4))
    assert report.ok, str(report)
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.grad is None for p in module.parameters())
    assert {row.tensor for row in report.rows} >= {"input", "0.weight", "0.bias", "1.weight", "1.bias"}


class Counting(torch.nn.Module):
    """A module that multiplies by the number of its calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x * float(self.calls)


def test_buffers_are_restored_before_each_forward_pass():
    report = npformer.gradcheck(Counting(), torch.randn(3))
    assert report.ok, str(report)


def test_the_generator_of_torch_is_given_back():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    report = npformer.gradcheck(torch.nn.Dropout(0.5), torch.randn(3, 4, generator=torch.Generator()))
    assert report.ok, str(report)
    assert torch.equal(before, torch.get_rng_state())


def test_a_function_with_a_state_is_refused():
    calls = []

    def forward(x):
        calls.append(x)
        return x * len(calls)

    with pytest.raises(npformer.UserError, match="two forward passes with the same input differ"):
        npformer.gradcheck(forward, torch.randn(3))


@pytest.mark.parametrize(
    ("thing", "inputs", "words"),
    [
        (torch.nn.Linear, (torch.randn(3, 4),), "Linear is a class: give a module"),
        (lambda x: x.numpy(), (torch.randn(3),), "raised RuntimeError in forward"),
        (lambda x, w: x * w, (torch.randn(3),), r"'w'\): give one input for each argument"),
        (lambda x: 3.0, (torch.randn(3),), "returned no tensor"),
        (lambda x: x, (torch.randn(3, dtype=torch.complex64),), "complex tensors are not supported"),
        (lambda x: x @ torch.ones(3), (torch.randn(3),), "or give reference="),
        (lambda x: x, (torch.tensor([1, 2]),), "nothing to check"),
    ],
)
def test_what_cannot_be_checked_is_said_in_one_sentence(thing, inputs, words):
    with pytest.raises(npformer.UserError, match=words):
        npformer.gradcheck(thing, *inputs)


def test_float32_in_forward_is_named():
    report = npformer.gradcheck(lambda x: x.float().exp(), torch.randn(3))
    assert "a part of it is computed in float32" in report.worst.diagnosis


def test_a_wrong_forward_pass_of_a_kernel_is_found():
    def kernel(x):
        return x.exp() + 1

    report = npformer.gradcheck(kernel, torch.randn(3).bfloat16(), reference=torch.exp)
    row = next(row for row in report.failures)
    assert (row.tensor, row.diagnosis) == ("y", "the output of kernel is not that of the reference")


def test_gradcheck_of_numpy_layers_imports_neither_library():
    code = (
        "import sys, numpy as np, npformer; layer = npformer.nn.LayerNorm(4); "
        "report = npformer.gradcheck(layer, np.eye(4)[:2]); "
        "print(report.ok, 'torch' in sys.modules, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


def test_a_reference_needs_a_foreign_function():
    with pytest.raises(npformer.UserError, match="reference= is for functions of PyTorch and JAX"):
        npformer.gradcheck(npformer.nn.LayerNorm(4), np.ones((2, 4)), reference=np.exp)
