"""The folder of a site, and what may be in it."""

import json
import os

import pytest

from npformer.errors import UserError
from npformer.learn.site.folder import LIST, SiteFolder
from npformer.storage import atomic

FILES = {"index.html": b"1", "lessons/05_1.html": b"2", "lessons/05_1/a.png": b"3"}


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LIST
    }


def test_a_new_folder_and_an_earlier_site_are_written(tmp_path):
    folder = SiteFolder(tmp_path / "a" / "site")
    folder.check()
    folder.write(FILES)
    assert content(folder.path) == FILES
    (folder.path / "CNAME").write_text("example.org")  # a file of the reader's own stays
    folder.check()
    folder.write({"index.html": b"4", "new.html": b"5"})
    assert content(folder.path) == {"index.html": b"4", "new.html": b"5", "CNAME": b"example.org"}


def test_other_files_are_never_overwritten(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(UserError, match="is not empty and not a site of npformer: give another folder"):
        SiteFolder(tmp_path).check()
    file = tmp_path / "index.html"
    with pytest.raises(UserError, match=r"cannot be written \(it is a file\)"):
        SiteFolder(file).check()
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": 3}', '{"files": ["../a"]}', '{"files": ["/a"]}', '{"files": [""]}']
)
def test_a_damaged_list_removes_nothing(text, tmp_path):
    (tmp_path / LIST).write_text(text)
    with pytest.raises(UserError, match="give another folder"):
        SiteFolder(tmp_path).check()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot be written"):
        SiteFolder(tmp_path / "site").check()


def test_a_full_disk_leaves_no_half_page_and_the_site_can_be_written_again(tmp_path, monkeypatch):
    folder = SiteFolder(tmp_path)
    folder.write(FILES)
    real, left = os.fsync, [2]

    def fsync(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    new = {"index.html": b"new 1", "lessons/05_1.html": b"new 2", "z.html": b"new 3"}
    with pytest.raises(UserError, match=r"No space left on device\): give another folder"):
        folder.write(new)
    monkeypatch.undo()
    assert content(tmp_path).items() <= {*FILES.items(), *new.items()}
    assert set(json.loads((tmp_path / LIST).read_text())["files"]) == {*FILES, *new}
    folder.check()
    folder.write(new)
    assert content(tmp_path) == new


@pytest.mark.parametrize("link", ["lessons", "index.html", LIST])
def test_links_that_lead_outside_are_refused(tmp_path, link):
    outside, site = tmp_path / "outside", SiteFolder(tmp_path / "site")
    site.path.mkdir()
    outside.mkdir()
    (outside / "05_1.html").write_text("mine")
    (outside / LIST).write_text('{"files": ["lessons/05_1.html"]}')
    (outside / "index.html").write_text("mine")
    (site.path / link).symlink_to(outside / ("" if link == "lessons" else link))
    if link != LIST:
        (site.path / LIST).write_text('{"files": ["lessons/05_1.html"]}')
    before = content(outside)
    for files in (FILES, {"index.html": b"new"}):
        with pytest.raises(UserError, match=r"outside"):
            site.write(files)
    assert content(outside) == before
