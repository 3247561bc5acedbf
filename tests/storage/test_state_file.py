"""State files: several processes that change one at the same time lose nothing."""

import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from npformer.learn.tasks.folder import NOTE, Folder
from npformer.storage.state_file import StateFile

NUMBERS = range(60)


def test_no_change_is_lost(tmp_path):
    file = StateFile(tmp_path / "state.json", lambda content: content)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: file.update(lambda content: content | {str(n): n}), NUMBERS))
    assert file.read() == {str(n): n for n in NUMBERS}
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("name", [NOTE, "note-elsewhere"])
def test_a_note_that_is_a_link_to_a_file_outside_stays_as_it_is(tmp_path, name):
    outside, folder = tmp_path / name, tmp_path / "exercises"
    outside.write_text('{"solved": []}')
    folder.mkdir()
    (folder / NOTE).symlink_to(outside)
    learner = Folder(folder)
    learner.set_solved(SimpleNamespace(stem="task"), True)
    assert "is a link to" in learner.remark
    assert outside.read_text() == '{"solved": []}'
