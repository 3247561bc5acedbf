"""Folders of submissions: what is found, and what cannot be read without harm to the others."""

import json
import os

import pytest
from classroom_solutions import RIGHT

from npformer.errors import UserError
from npformer.language import speaking
from npformer.learn.classroom.cells import code_cells, defines, solution_among
from npformer.learn.classroom.submissions import (
    MOST_BYTES,
    Unreadable,
    find_submissions,
    is_named,
    read_text,
    solution_of,
)
from npformer.learn.exercises import EXERCISES

NAME = "softmax-backward"
posix = pytest.mark.skipif(os.name != "posix", reason="links and pipes")


def notebook(*texts):
    cells = [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in texts]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# x"}, *cells], "nbformat": 4})


def submitted(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return {each.student: each for each in find_submissions(folder)}


def test_a_folder_a_file_or_a_notebook_for_each_student(tmp_path):
    found = submitted(
        tmp_path,
        {
            "ada/softmax-backward.py": RIGHT,
            "bob.py": RIGHT + "\ndef warmup(d_model): return 1\n",
            "cleo.ipynb": notebook("x = 1", "%matplotlib inline\n" + RIGHT, "y = 2"),
            "dora/week 1/Softmax_Backward (2).py": RIGHT,
            "emil/all my work.py": RIGHT,
            "fay/warmup.py": RIGHT,
            "gus.ipynb": notebook("x = 1"),
            "gus.py": RIGHT,
            ".hidden/softmax-backward.py": RIGHT,
            "__pycache__/x.py": RIGHT,
            "notes.txt": "x",
        },
    )
    assert list(found) == ["ada", "bob", "cleo", "dora", "emil", "fay", "gus"]
    for student in ("ada", "bob", "dora", "emil", "gus"):
        assert solution_of(found[student], NAME).startswith(RIGHT)
    assert solution_of(found["cleo"], NAME) == "\n" + RIGHT
    assert solution_of(found["fay"], NAME) is None  # a file that is named like another exercise
    assert solution_of(found["bob"], "warmup") is not None
    assert solution_of(found["ada"], "warmup") is None


SOLUTION = f"{NAME}.py"
UNREADABLE = {
    "huge": ({SOLUTION: b"#" * (MOST_BYTES + 1)}, "has more than 1 MB"),
    "binary": ({SOLUTION: b"\x7fELF\0\0"}, "holds null bytes"),
    "utf-16": ({SOLUTION: "x = 1".encode("utf-16")}, "is not UTF-8 text|holds null bytes"),
    "latin-1": ({SOLUTION: "# é".encode("latin-1")}, "is not UTF-8 text"),
    "no notebook": ({"all.ipynb": "{"}, "all.ipynb is not a notebook: submit"),
    "two": ({SOLUTION: RIGHT, f"old/{SOLUTION}": "x = 1"}, f"there are 2 files for {NAME}"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_cannot_be_read_is_one_sentence(kind, tmp_path):
    files, sentence = UNREADABLE[kind]
    of_ada = {f"ada/{name}": content for name, content in files.items()}
    found = submitted(tmp_path, of_ada | {f"bob/{SOLUTION}": RIGHT})
    with pytest.raises(Unreadable, match=sentence) as caught:
        solution_of(found["ada"], NAME)
    assert "\n" not in str(caught.value)
    assert solution_of(found["bob"], NAME) == RIGHT
    with speaking("zh_CN"), pytest.raises(Unreadable, match=r"[\u4e00-\u9fff]"):
        solution_of(found["ada"], NAME)


@posix
def test_links_and_pipes_are_not_opened(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text(RIGHT)
    folder = tmp_path / "class"
    for student in ("ada", "bob"):
        (folder / student).mkdir(parents=True)
    (folder / "ada" / "softmax-backward.py").symlink_to(secret)
    os.mkfifo(folder / "bob" / "softmax-backward.py")
    (folder / "cleo").symlink_to(tmp_path)
    (folder / "dora.py").symlink_to(secret)
    found = {each.student: each for each in find_submissions(folder)}
    assert list(found) == ["ada", "bob", "cleo", "dora"]
    for student in found:
        with pytest.raises(Unreadable, match="is not a regular file" if student == "bob" else "is a link"):
            solution_of(found[student], NAME)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"cells": [1]}', '{"cells": [{"source": "x"}]}', "[" * 9999]
)
def test_a_damaged_notebook_is_refused(text):
    with pytest.raises(UserError, match=r"the notebook.*submit the notebook as Jupyter saves it"):
        code_cells(text, "the notebook")


def test_the_last_cell_with_the_solution_counts():
    exercise = EXERCISES.find(NAME)
    assert solution_among([RIGHT + "# 1", RIGHT + "# 2", "x = 1"], exercise).endswith("# 2")
    assert solution_among(["x = 1"], exercise) is None
    assert defines("def softmax_backward(dy", ["softmax_backward"])  # the message will say what is missing
    assert defines("softmax_backward = 3", ["softmax_backward"])
    assert not defines("def softmax_backward_2(dy", ["softmax_backward"])


def test_a_text_with_other_ends_of_lines(tmp_path):
    file = tmp_path / "x.py"
    file.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\rc = 3\n")
    assert read_text(file) == "a = 1\nb = 2\nc = 3\n"
    assert is_named(tmp_path / "softmax_backward.py", NAME)
    assert not is_named(tmp_path / "softmax.py", NAME)
