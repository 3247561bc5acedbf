"""A preprocessor for nbgrader: the cell that keeps students' code out of nbgrader's process comes first.

The exported `nbgrader_config.py` names it. Without it, cells that a student puts above this cell would run.
"""

from typing import Any

from npformer.learn.classroom.in_notebook import SETUP
from npformer.learn.classroom.nbgrader import SETUP_ID, code_cell


def put_setup_first(notebook: Any, resources: Any) -> tuple[Any, Any]:
    """Move the setup cell to the top, or put it there again if the student has removed or changed it.

    Args:
        notebook: The notebook of a student, which is changed.
        resources: What nbconvert passes on.
    """
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    if any(str(each).startswith("npformer-") for each in ids):
        others = [cell for cell, each in zip(notebook.cells, ids, strict=True) if each != SETUP_ID]
        setup = [cell for cell, each in zip(notebook.cells, ids, strict=True) if each == SETUP_ID]
        if not setup or setup[0].cell_type != "code" or setup[0].source != SETUP:
            setup = [type(notebook.metadata)(code_cell(SETUP_ID, SETUP, locked=True))]
            setup[0].metadata = type(notebook.metadata)(setup[0].metadata)
        notebook.cells = [setup[0], *others]
    return notebook, resources
