"""npformer figures as a person uses it."""

import json
import sys

import pytest
from commands import said

from npformer.cli.main import main
from npformer.learn.figures import all_entries


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_explains_its_letters_and_is_also_json(capsys):
    assert "FW is tensors of a forward pass" in " ".join(said(capsys, "figures --list").split())
    rows = json.loads(said(capsys, "figures --list --json"))
    assert [row["id"] for row in rows] == [entry.id for entry in all_entries()]
    for row in rows:
        assert set(row) == {"format", "id", "title", "file", "source", "data", "function"}
        assert row["file"] == f"figures/{row['id']}.png"
        module, _, name = row["function"].rpartition(".")
        assert callable(getattr(sys.modules[module], name))


def test_some_figures(capsys, inside):
    assert main(["figures", "F06", "f41", "F6", "--out", "some/pictures", "--svg"]) == 0
    names = {path.name for path in (inside / "some/pictures").iterdir()}
    assert names == {"F06.png", "F06.svg", "F41.png", "F41.svg"}  # no page, since not all figures were drawn
    assert "wrote 4 files to some/pictures" in capsys.readouterr().out
    assert not (inside / "runs").exists()  # no figure needed a model


def test_figures_of_a_run(capsys, inside, studio):
    assert studio.checkpoint
    assert main(["figures", "F29", "--model", str(studio.folder)]) == 0
    assert (inside / "figures/F29.png").exists()
    assert not (inside / "runs").exists()


def test_a_wrong_run_is_refused_before_anything_is_drawn(capsys, inside):
    assert main(["figures", "--model", "nothing"]) == 2
    assert "there is no checkpoint nothing/last.safetensors" in capsys.readouterr().err
    assert list(inside.iterdir()) == []


def test_all_figures_make_the_page(capsys, inside, studio, monkeypatch):
    monkeypatch.setattr("npformer.learn.figures.Studio", lambda **_: studio)
    entries = [entry for entry in all_entries() if entry.id == "F06"]
    monkeypatch.setattr("npformer.learn.figures.all_entries", lambda: entries)
    assert main(["figures"]) == 0
    page = (inside / "figures/README.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == 1
