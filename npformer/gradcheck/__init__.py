"""Gradient checking: complex step, adjoints, bisection to the wrong entry, and a diagnosis.

npformer.gradcheck(layer, x) checks: the package is called like the function that it is named after.
"""

import sys
from types import ModuleType

from npformer.gradcheck.check import gradcheck
from npformer.gradcheck.report import Report, Row

__all__ = ["Report", "Row", "gradcheck"]


class _CallablePackage(ModuleType):
    """A package and the one thing that one does with it, under one name."""

    def __call__(self, *arguments, **settings):
        """The same as npformer.gradcheck.gradcheck."""
        return gradcheck(*arguments, **settings)


sys.modules[__name__].__class__ = _CallablePackage
