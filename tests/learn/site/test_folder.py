"""The folder of a site, and what may be in it."""

import pytest

from npformer.errors import UserError
from npformer.learn.site import folder
from npformer.learn.site.folder import MARK, PROJECT, check_folder, write_folder

FILES = {MARK: PROJECT, "index.html": b"1", "lessons/05_1.html": b"2", "lessons/05_1/a.png": b"3"}


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def write(tmp_path):
    """Return a function that writes files as a site into a folder."""

    def write_site(out, files):
        check_folder(out)
        made = tmp_path / f"made {len(list(tmp_path.iterdir()))}"
        for path, data in files.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(data)
        write_folder(out, made)

    return write_site


def test_a_new_folder_and_an_earlier_site_are_written(tmp_path, write):
    out = tmp_path / "a" / "site"
    write(out, FILES)
    assert content(out) == FILES
    (out / "CNAME").write_text("example.org")
    write(out, {MARK: PROJECT, "index.html": b"4"})
    assert content(out) == FILES | {"index.html": b"4", "CNAME": b"example.org"}


@pytest.mark.parametrize("mark", [None, "", "# Project: another\n"])
def test_a_folder_without_a_site_is_never_written(tmp_path, mark):
    out = tmp_path / "site"
    out.mkdir()
    (out / "a").write_text("mine")
    if mark is not None:
        (out / MARK).write_text(mark)
    with pytest.raises(UserError, match="has a, which is no file of a site of npformer: give another folder"):
        check_folder(out)
    with pytest.raises(UserError, match="a cannot be written"):
        check_folder(out / "a")


def test_after_an_interruption_the_site_can_be_written_again(tmp_path, write, monkeypatch):
    out = tmp_path / "site"

    def fail(made, out, dirs_exist_ok):
        (out / "index.html").write_bytes(b"ha")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder.shutil, "copytree", fail)
    with pytest.raises(UserError, match=r"No space left on device\): give another folder"):
        write(out, FILES)
    monkeypatch.undo()
    write(out, FILES)
    assert content(out) == FILES


@pytest.mark.parametrize("link", ["lessons", "index.html", MARK])
def test_links_lead_nowhere(tmp_path, link, write):
    outside, out = tmp_path / "outside", tmp_path / "site"
    write(outside, FILES)
    write(out, {MARK: PROJECT, "a": b"1"})
    (out / link).unlink(missing_ok=True)
    (out / link).symlink_to(outside / link)
    with pytest.raises(UserError, match="give another folder"):
        write(out, {MARK: PROJECT, "index.html": b"new"})
    assert content(outside) == FILES
