"""What is stored for the site."""

import pytest

from npformer.learn.site import store
from npformer.storage.places import user_folder

FILES = {"lessons/05_1.md": b"text", "lessons/05_1/a.svg": b"\x00"}


def test_what_was_made_is_read_again_for_the_same_content_only(tmp_path, monkeypatch):
    pytest.importorskip("joblib")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return FILES

    assert store.stored("a", make) == store.stored("a", make) == FILES
    assert len(made) == 1
    assert store.stored("b", make) == FILES
    assert len(made) == 2
    monkeypatch.setattr(store, "_package", lambda: "another package")
    store.stored("a", make)
    assert len(made) == 3
    for entry in tmp_path.rglob("output.pkl*"):
        entry.write_bytes(entry.read_bytes()[:40])
    assert store.stored("a", make) == FILES
    assert len(made) == 4


def test_without_a_folder_the_site_is_made_all_the_same(tmp_path, monkeypatch):
    pytest.importorskip("joblib")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert store.stored("a", lambda: FILES) == FILES


def test_a_relative_path_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_folder("XDG_CACHE_HOME", "~/.cache").is_absolute()
