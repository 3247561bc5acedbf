"""A lesson as a Jupyter notebook: JSON in format 4.5, without outputs."""

import json
from typing import Any

from npformer.course.library import Lesson


def as_notebook(lesson: Lesson) -> str:
    """The text of the .ipynb: a cell for each cell, nothing run yet."""
    cells = []
    for index, cell in enumerate(lesson.cells):
        made: dict[str, Any] = {
            "cell_type": "markdown" if cell.kind == "prose" else "code",
            "id": f"cell-{index:03}",
            "metadata": {},
            "source": cell.text.splitlines(keepends=True),
        }
        if cell.kind == "code":
            made |= {"execution_count": None, "outputs": []}
        cells.append(made)
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
            "title": f"{lesson.number} · {lesson.title}",
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
