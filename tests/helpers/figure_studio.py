"""A studio whose models are trained for a few steps, once for all tests of a test run."""

import os
from functools import cached_property

import pytest

try:
    import fcntl
except ImportError:  # Windows: each worker trains models of its own
    fcntl = None

STEPS = 120


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """Return a studio. Its models are small and trained just enough to end their sentences.

    The workers of a test run share its folder: one of them trains a model, and the others read it.
    """
    from npformer.learn.figures import Studio, trainings  # here, since most test runs need no matplotlib

    class SharedStudio(Studio):
        """A studio that trains while no other worker does, in one process."""

        trains = False

        def alone(self, name):
            """Return an attribute of Studio, for which models may have to be trained."""
            if self.trains or fcntl is None:
                return getattr(super(), name)
            with self.folder.with_name("lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
                fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
                patch.setattr(trainings, "cores", lambda: 1)
                patch.setattr(self, "trains", True)
                return getattr(super(), name)

        checkpoint = cached_property(lambda self: self.alone("checkpoint"))
        translators = cached_property(lambda self: self.alone("translators"))
        from_french = cached_property(lambda self: self.alone("from_french"))

    folder = tmp_path_factory.getbasetemp()
    if fcntl is not None and "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return SharedStudio(folder=folder / "studio", steps=STEPS)
