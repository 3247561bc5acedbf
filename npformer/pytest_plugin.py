"""The pytest plugin of npformer: the fixture `gradcheck` and the function `assert_gradients`.

pytest loads this module wherever npformer is installed, so it imports nothing but pytest until a test
uses it.

    def test_my_layer(gradcheck):
        gradcheck(MyLayer(8), np.random.default_rng(0).standard_normal((2, 8)))
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from npformer.checking.report import Report


def assert_gradients(thing: Any, *inputs: Any, **options: Any) -> "Report":
    """Check the gradients of a layer, and fail the test with the report if one of them is incorrect.

    Args:
        thing: A layer, or anything else that npformer.gradcheck takes.
        inputs: The arguments of its forward pass.
        options: Keyword arguments of npformer.gradcheck.

    Returns:
        The report.
    """
    __tracebackhide__ = True
    from npformer.checking import gradcheck
    from npformer.errors import UserError

    try:
        report = gradcheck(thing, *inputs, **options)
    except UserError as error:
        message = str(error)
    else:
        message = "" if report.ok else str(report)
    if message:
        pytest.fail(message, pytrace=False)
    return report


@pytest.fixture(name="gradcheck", scope="session")
def gradcheck_fixture() -> "Callable[..., Report]":
    """Return assert_gradients, which fails the test with the report if a gradient is incorrect."""
    return assert_gradients
