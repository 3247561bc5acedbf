"""What is stored for the site."""

import time

from npformer.learn.site import store
from npformer.learn.site.store import forget_older_than, store_folder, stored

FILES = {"lessons/05_1.md": b"text", "lessons/05_1/a.svg": b"\x00"}


def test_what_was_made_is_read_again_for_the_same_content_only(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return FILES

    assert stored("a", make) == stored("a", make) == FILES
    assert len(made) == 1
    assert stored("b", make) == FILES
    assert len(made) == 2
    monkeypatch.setattr(store, "_package", lambda: "another package")
    stored("a", make)
    assert len(made) == 3


def test_a_damaged_entry_is_made_anew_and_an_unused_one_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stored("a", lambda: FILES)
    (entry,) = store_folder().iterdir()
    entry.write_bytes(entry.read_bytes()[:40])
    assert stored("a", lambda: FILES | {"b": b""}) == FILES | {"b": b""}
    forget_older_than(entry.stat().st_mtime)
    assert entry.exists()
    (store_folder() / "notes.txt").write_text("mine")
    forget_older_than(time.time() + 1)
    assert [path.name for path in store_folder().iterdir()] == ["notes.txt"]


def test_without_a_folder_the_site_is_made_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert stored("a", lambda: FILES) == FILES


def test_a_relative_path_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert store_folder().is_absolute()
