"""Fixtures of the tests of the stand-in for CuPy."""

import numpy as np
import pytest
import strict_cupy


@pytest.fixture
def cupy(monkeypatch):
    return strict_cupy.install(monkeypatch)


@pytest.fixture
def x(cupy):
    return cupy.asarray(np.arange(6.0).reshape(2, 3))
