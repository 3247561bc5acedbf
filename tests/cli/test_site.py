"""npformer site."""

import pytest
from commands import said

from npformer.cli.main import main
from npformer.learn.site import build


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Keep what the tests store out of the reader's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_part_of_the_site_whose_lessons_processes_run_in_parallel(tmp_path, monkeypatch, capsys):
    for name in build.NEEDED:
        pytest.importorskip(name)
    out = tmp_path / "pages"
    printed = said(capsys, "site", str(out), "--only", "0.2", "4.5")
    assert f"Open {out / 'index.html'} in a browser. The pages need no network." in printed
    assert (out / "lessons" / "04_5.html").exists()
    assert (out / "lessons" / "00_2.html").exists()
    assert not (out / "lessons" / "02.html").exists()
    assert not (out / "explorer.html").exists()  # without a model
    assert "explorer.html" not in (out / "index.html").read_text(encoding="utf-8")


def test_a_process_that_ends_is_reported(tmp_path, monkeypatch, capsys):
    pytest.importorskip("joblib")
    """The system may end a process, for lack of memory."""
    monkeypatch.setattr(build, "NEEDED", ())  # no page is made
    monkeypatch.setattr(build, "lesson_pages", _end)
    assert main(["site", str(tmp_path / "pages"), "--only", "4.5"]) == 2
    assert "the system ended a process that ran lessons" in capsys.readouterr().err


def _end(*arguments, **settings):
    import os

    os._exit(9)
