"""npformer figures as a person uses it."""

import functools
import json
import sys

import pytest
from commands import said

from npformer.cli.main import main
from npformer.learn.figures import Studio, all_entries
from npformer.training import Result


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_as_json(capsys):
    rows = json.loads(said(capsys, "figures --list --json"))
    assert [row["id"] for row in rows] == [entry.id for entry in all_entries()]
    for row in rows:
        assert set(row) == {"format", "id", "title", "file", "source", "data", "function"}
        assert row["file"] == f"figures/{row['id']}.png"
        module, _, name = row["function"].rpartition(".")
        assert callable(getattr(sys.modules[module], name))


def test_some_figures(capsys, inside):
    assert main(["figures", "F06", "f41", "--out", "some/pictures", "--svg"]) == 0
    names = {path.name for path in (inside / "some/pictures").iterdir()}
    assert names == {"F06.png", "F06.svg", "F41.png", "F41.svg"}  # no page, since not all figures were drawn
    assert "wrote 4 files to some/pictures" in capsys.readouterr().out
    assert not (inside / "runs").exists()  # no figure needed a model


def test_figures_of_a_run(capsys, inside, studio):
    assert studio.checkpoint
    assert main(["figures", "F29", "--model", str(studio.folder)]) == 0
    assert (inside / "figures/F29.png").exists()
    assert not (inside / "runs").exists()


@pytest.mark.nightly
def test_a_model_is_trained_once(capsys, inside, monkeypatch):
    """The training has its own progress bar; the second time, the saved model is used."""
    monkeypatch.setattr("npformer.learn.figures.Studio", functools.partial(Studio, steps=4))
    assert "training" in said(capsys, "figures F29 F52")
    assert (inside / "runs/figures/step-000004.safetensors").exists()
    assert "training" not in said(capsys, "figures F07")
    assert (inside / "figures/F07.gif").exists()


def test_all_figures_make_the_page(capsys, inside, studio, monkeypatch):
    monkeypatch.setattr("npformer.learn.figures.Studio", lambda **_: studio)
    entries = [entry for entry in all_entries() if entry.id == "F06"]
    monkeypatch.setattr("npformer.learn.figures.all_entries", lambda: entries)
    assert main(["figures"]) == 0
    page = (inside / "figures/README.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == 1


def test_training_in_a_folder_that_is_not_writable(capsys, inside):
    (inside / "runs").write_text("no folder")
    assert main(["figures", "F29"]) == 2
    assert "runs/figures cannot be written" in capsys.readouterr().err


def test_ctrl_c_while_training_draws_nothing(capsys, inside, monkeypatch):
    def stopped(*_, **__):
        return Result(1, 2, None, "stopped after step 1")

    monkeypatch.setattr("npformer.learn.course.trained.train", stopped)
    assert main(["figures", "F29"]) == 130
    assert not (inside / "figures/F29.png").exists()
