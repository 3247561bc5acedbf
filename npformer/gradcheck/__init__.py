"""Gradient checking: complex step, adjoints, bisection to the wrong entry, and a diagnosis."""

from npformer.gradcheck.check import gradcheck
from npformer.gradcheck.report import Report, Row

__all__ = ["Report", "Row", "gradcheck"]
