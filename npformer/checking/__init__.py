"""Gradient checking: a backward pass is compared with derivatives of its forward pass.

A failed check names the first wrong entry and a probable cause.
"""

from npformer.checking.check import gradcheck
from npformer.checking.report import CheckRow, Report

__all__ = ["CheckRow", "Report", "gradcheck"]
