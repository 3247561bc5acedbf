"""The folder of a site, and what may be in it."""

import pytest

from npformer.errors import UserError
from npformer.learn.site import folder
from npformer.learn.site.folder import LIST, check_folder, replace_content

FILES = {"index.html": b"1", "lessons/05_1.html": b"2", "lessons/05_1/a.png": b"3"}


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LIST
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
        return replace_content(out, made)

    return write_site


def test_a_new_folder_and_an_earlier_site_are_written(tmp_path, write):
    out = tmp_path / "a" / "site"
    assert sum(write(out, FILES).values()) == 3
    assert content(out) == FILES
    write(out, {"index.html": b"4", "lessons": b"5"})  # a file in place of a folder
    assert content(out) == {"index.html": b"4", "lessons": b"5"}


def test_other_files_are_never_overwritten(tmp_path, write):
    out = tmp_path / "site"
    write(out, FILES)
    (out / "CNAME").write_text("example.org")
    with pytest.raises(UserError, match="has CNAME, which is no file of a site of npformer: give another"):
        write(out, FILES)
    with pytest.raises(UserError, match=r"cannot be written \(it is a file\)"):
        check_folder(out / "CNAME")
    assert content(out) == FILES | {"CNAME": b"example.org"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": ["../a"]}', '{"files": [[]]}'])
def test_a_damaged_list_removes_nothing(text, tmp_path):
    (tmp_path / LIST).write_text(text)
    (tmp_path / "a").write_text("mine")
    with pytest.raises(UserError, match="give another folder"):
        check_folder(tmp_path)
    assert (tmp_path / "a").exists()


def test_after_an_interruption_the_site_can_be_written_again(tmp_path, write, monkeypatch):
    out = tmp_path / "site"
    write(out, FILES)

    def fail(made, out, dirs_exist_ok):
        (out / "new.html").write_bytes(b"ha")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder.shutil, "copytree", fail)
    new = {"index.html": b"new 1", "new.html": b"half"}
    with pytest.raises(UserError, match=r"No space left on device\): give another folder"):
        write(out, new)
    monkeypatch.undo()
    write(out, new)
    assert content(out) == new


@pytest.mark.parametrize("link", ["lessons", "index.html", LIST])
def test_links_lead_nowhere(tmp_path, link, write):
    outside, out = tmp_path / "outside", tmp_path / "site"
    write(outside, FILES)
    out.mkdir()
    (out / link).symlink_to(outside / link)
    before = content(outside)
    with pytest.raises(UserError, match="give another folder"):
        write(out, {"index.html": b"new"})
    assert content(outside) == before
