"""npformer exercise as a learner uses it: start, wrong, hint, right; and solution files that misbehave."""

import json
import re

import pytest
from commands import refused, said
from processor_time import processor_time

from npformer.cli import tasks as cli_tasks
from npformer.cli.main import main
from npformer.learn.bugs import BUGS
from npformer.learn.console import TextConsole
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks.process import check_here

SOFTMAX = EXERCISES.find("softmax-backward")
RIGHT = "    return y * (dy - (dy * y).sum(-1, keepdims=True))\n"


@pytest.fixture
def file(tmp_path, monkeypatch, capsys):
    """Run `npformer exercise start` in a temporary folder and return the path of the file."""
    monkeypatch.chdir(tmp_path)
    assert "npformer exercise check" in said(capsys, "exercise start softmax-backward")
    return tmp_path / "exercises" / "softmax-backward.py"


def append(file, text):
    file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")


def state(capsys, name):
    """Return what the list says about an exercise."""
    lines = said(capsys, "exercise list").splitlines()
    return next(line for line in lines if f" {name} " in line).split()[-1]


def test_from_start_to_solved(file, capsys):
    assert state(capsys, "softmax-backward") == "started"
    assert "returns nothing" in said(capsys, "exercise check", status=1)
    stub = file.read_text(encoding="utf-8")
    append(file, "    return y * dy\n")
    out = said(capsys, "exercise check --png difference.png", status=1)
    assert "sum(dy · y) is not subtracted from dy: the term is left out" in " ".join(out.split())
    assert "+ too large" in out
    assert (file.parents[1] / "difference.png").read_bytes().startswith(b"\x89PNG")
    assert "Hint 1 of 3" in said(capsys, "exercise hint")
    assert "Hint 2 of 3" in said(capsys, "exercise hint softmax-backward")
    file.write_text(f"{stub}    print('dy is', dy.shape)\n{RIGHT}", encoding="utf-8")
    with processor_time() as used:
        out = said(capsys, "exercise check")
    assert used.seconds < 3
    assert "is solved: 14 checks" in out
    assert "dy is (4, 5)" in out
    assert state(capsys, "softmax-backward") == "solved"


CHINESE = [
    ("exercise list 5", 0, "缩放点积注意力，前向"),
    ("exercise hint", 0, "第 1 条提示，共 3 条：x_j 影响这一行的每一个 y_i"),
    ("exercise check", 1, "没有从 dy 中减去 sum(dy · y)：漏掉了这一项（在你的文件第 18 行，返回结果）"),
    ("bugs start 1", 0, "一个网络有两个这样的层，用普通的梯度下降训练"),
    ("bugs check", 1, "代码没有改动：请找出错误，改好，再检查一次"),
    ("build", 0, "12 个部件中有 0 个是你写的。"),
    ("lessons --route main", 0, "主线（24 课，11.0 小时）"),
    ("class export nbgrader course", 0, "course/source/exercises/exercises.ipynb"),
]


def test_in_chinese(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said(capsys, "exercise start softmax-backward --language zh")
    file = tmp_path / "exercises" / "softmax-backward.py"
    assert "不需要 N × N 的矩阵" in file.read_text(encoding="utf-8")
    append(file, "    return y * dy\n")
    for line, status, words in CHINESE:
        out = said(capsys, f"{line} --language zh", status=status)
        assert words.replace(" ", "") in "".join(out.split())
        assert "\x1f" not in out
    for path, words in (
        ("bugs/01_linear.py", "下面的代码有一个错误"),
        ("course/source/exercises/exercises.ipynb", "在每个标题下面的单元格里把函数补全"),
    ):
        assert words in (tmp_path / path).read_text(encoding="utf-8")


def test_start_does_not_overwrite_a_file(file, capsys):
    append(file, "# mine\n")
    assert "already exists" in refused(capsys, "exercise", "start", "softmax-backward")
    assert file.read_text(encoding="utf-8").endswith("# mine\n")


def test_solution_prints_the_code_of_the_package(capsys):
    out = said(capsys, "exercise solution residual-backward")
    assert "post_norm_backward is npformer's post_norm_backward" in out
    assert "dx, dh = layer.norm.backward(dy, cache.add_norm)" in out
    assert "pre_norm_backward is npformer's pre_norm_backward" in out
    assert "sublayer.py:" in out


def test_commands_for_another_folder_name_it(file, capsys):
    assert "Hint 1 of 3" in said(capsys, "exercise hint softmax-backward --dir mine")  # a new one
    assert "Hint 2 of 3" in said(capsys, "exercise hint softmax-backward --dir mine")
    assert "Next: npformer exercise start" in said(capsys, "exercise list 5 --dir mine")
    said(capsys, "exercise start softmax-backward --dir mine")
    told = "npformer exercise check softmax-backward --dir mine"
    assert f"To continue: {told}" in " ".join(said(capsys, "exercise list 5 --dir mine").split())
    for command in (told, f"npformer exercise check {file.parents[1] / 'mine' / file.name}"):
        out = " ".join(said(capsys, command.removeprefix("npformer "), status=1).split())
        assert re.search(r"npformer exercise hint softmax-backward --dir \S*mine", out)
    append(file.parents[1] / "mine" / file.name, RIGHT)
    assert "npformer exercise list 5 --dir mine" in " ".join(
        said(capsys, told.removeprefix("npformer ")).split()
    )


def test_check_of_all_and_of_a_path(file, capsys):
    said(capsys, "exercise start causal-mask")
    append(file, RIGHT)
    out = said(capsys, "exercise check --all", status=1)
    assert "softmax-backward is solved" in out
    assert "causal-mask: not correct yet" in out
    said(capsys, "exercise check", file)
    other = file.with_name("Softmax_Backward.py")
    other.write_text("x = 1\n", encoding="utf-8")
    assert "rename it to softmax-backward.py" in refused(capsys, "exercise", "check", other)
    to_begin = "npformer exercise start softmax --dir mine"
    assert to_begin in refused(capsys, "exercise", "check", "softmax", "--dir", "mine")


@pytest.mark.parametrize("note", ["{bad", '{"current": 3, "solved": 5, "hints": []}'])
def test_a_damaged_progress_file_does_no_harm_and_is_kept(file, capsys, note):
    path = file.parent / ".progress.json"
    path.write_text(note, encoding="utf-8")
    assert state(capsys, "softmax-backward") == "started"
    assert main(["exercise", "hint", "softmax-backward"]) == 0
    assert "was damaged: a copy of it is" in " ".join(capsys.readouterr().err.split())
    assert (file.parent / ".progress.json.damaged").read_text() == note
    append(file, RIGHT)
    said(capsys, "exercise check")
    assert json.loads(path.read_text(encoding="utf-8"))["solved"] == ["softmax-backward"]


# those that need a process of their own are in tests/learn/tasks/test_process.py
MISBEHAVING = {
    "raises": ("    raise ValueError('own words')\n", "line 18 raised ValueError: own words"),
    "syntax": ("    return (\n", "raised SyntaxError"),
    "exits": ("\nimport sys\nsys.exit(0)\n", "ended the program (SystemExit 0)"),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_files_that_misbehave(name, file):
    text, words = MISBEHAVING[name]
    append(file, text)
    before = file.read_bytes()
    verdict = check_here(EXERCISES, SOFTMAX, str(file))
    assert not verdict.solved
    assert words in verdict.message
    assert "\n" not in verdict.message
    assert file.read_bytes() == before


def test_files_with_other_contents(file):
    marked = b"\xef\xbb\xbf" + file.read_bytes() + RIGHT.encode()  # as Notepad writes it
    files = ((marked, "solved"), (b"", "empty"), (b"\xff\xfe\x00", "UTF-8"), (b"x = 3\n", "no function"))
    for data, words in files:
        file.write_bytes(data)
        assert words in check_here(EXERCISES, SOFTMAX, str(file)).message


def test_commands_find_the_folder_in_which_they_are_given(file, capsys, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert "returns nothing" in said(capsys, "exercise check", status=1)
    assert "Wrote softmax.py" in said(capsys, "exercise start softmax")
    assert state(capsys, "softmax") == "started"
    assert not (file.parent / "exercises").exists()
    monkeypatch.chdir(file.parents[1])
    assert state(capsys, "softmax") == "started"
    other = file.parents[1] / "other" / "exercises"  # without files of npformer, it is any folder
    other.mkdir(parents=True)
    monkeypatch.chdir(other)
    assert "Wrote exercises/softmax.py" in said(capsys, "exercise start softmax")


@pytest.mark.parametrize(("command", "tasks"), [("exercise", EXERCISES), ("bugs", BUGS)])
def test_the_list_fits_a_terminal(command, tasks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli_tasks, "console", lambda: TextConsole(width=80))
    lines = [line.rstrip() for line in said(capsys, f"{command} list").splitlines()]
    assert max(map(len, lines)) <= 80
    assert all(any(f" {each.name} " in line for line in lines) for each in tasks)
    assert not any("…" in line for line in lines)  # a title that is too long is broken at spaces
    assert sum("not started" in line for line in lines) == len(tasks)
