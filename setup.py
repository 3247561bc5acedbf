"""Build steps that pyproject.toml cannot express: the lessons inside the package, and the README for PyPI.

Everything else is in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ADDRESS = "https://github.com/npformer/npformer"  # the project's address, held here and in CITATION.cff
URLS = {
    "Homepage": ADDRESS,
    "Source": ADDRESS,
    "Start here": f"{ADDRESS}/blob/main/docs/start-here.md",
    "Course": f"{ADDRESS}/blob/main/lessons/README.md",
    "Site": "https://npformer.github.io/npformer",  # where .github/workflows/site.yml publishes it
    "Documentation": f"{ADDRESS}/tree/main/docs",
    "Changelog": f"{ADDRESS}/blob/main/CHANGELOG.md",
    "Citation": f"{ADDRESS}/blob/main/CITATION.cff",
    "Issues": f"{ADDRESS}/issues",
}


def with_absolute_links(markdown: str) -> str:
    """Return the README with absolute links and images, as PyPI needs them."""
    markdown = re.sub(r"!\[([^]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({ADDRESS}/raw/main/\2)", markdown)
    return re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:|#)([^)]+)\)", rf"[\1]({ADDRESS}/blob/main/\2)", markdown)


class BuildWithLessons(build_py):
    """build_py, and lessons/ as npformer/learn/course/lessons/."""

    def run(self) -> None:
        """Copy the lessons; an editable install reads the checkout's own and needs no copy."""
        super().run()
        if self.editable_mode:
            return
        for lesson in sorted(Path("lessons").glob("[0-9][0-9]_*.py")):
            target = Path(self.build_lib, "npformer", "learn", "course", "lessons", lesson.name)
            self.mkpath(str(target.parent))
            self.copy_file(str(lesson), str(target))


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": BuildWithLessons},
        project_urls=URLS,
        long_description=with_absolute_links(Path("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
    )
