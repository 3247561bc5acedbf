"""Puts lessons/*.py into the package when it is built; in a checkout they stand beside it.

Everything else is in pyproject.toml.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLessons(build_py):
    """build_py, and lessons/ as npformer/course/lessons/."""

    def run(self):
        """An editable install reads the checkout's own lessons and needs no copy."""
        super().run()
        if self.editable_mode:
            return
        for lesson in sorted(Path("lessons").glob("[0-9][0-9]_*.py")):
            target = Path(self.build_lib, "npformer", "course", "lessons", lesson.name)
            self.mkpath(str(target.parent))
            self.copy_file(str(lesson), str(target))


setup(cmdclass={"build_py": BuildWithLessons})
