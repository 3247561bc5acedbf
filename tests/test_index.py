"""The index and the glossary: no link is dead, nothing is missing, and the pages are true."""

import re
from pathlib import Path

import pytest

from npformer.cli import main
from npformer.commands import glossary as glossary_command
from npformer.commands import index as index_command
from npformer.course import passages
from npformer.course.glossary import all_terms, find_terms
from npformer.course.library import all_lessons
from npformer.course.passages import PAPER, SOURCES, all_passages, find_passages
from npformer.course.references import code_place, lesson_place
from npformer.errors import UserError

LESSONS = Path(__file__).parent.parent / "lessons"
PAGES = {"INDEX.md": index_command.as_page, "GLOSSARY.md": glossary_command.as_page}


def places():
    """Every place that the index or the glossary leads to."""
    return [place for entry in (*all_passages(), *all_terms()) for place in (*entry.lessons, *entry.code)]


def test_every_place_is_the_line_that_it_says():
    found = places()
    assert len(found) > 200
    for place in found:
        line = place.path.read_text(encoding="utf-8").splitlines()[place.line - 1]
        if place.name.startswith("lesson "):
            assert line.startswith("# #"), place
            assert place.name.split(", ", 1)[1] in line, place
        else:
            assert re.match(rf"(def|class) {place.name}\b", line), place


def test_every_lesson_is_in_the_index_or_makes_a_word_of_the_glossary():
    led_to = {place.path.name for entry in (*all_passages(), *all_terms()) for place in entry.lessons}
    assert {lesson.path.name for lesson in all_lessons()} <= led_to


def test_the_paper_is_there_section_by_section():
    sections = " ".join(entry.place for entry in all_passages() if entry.source == PAPER)
    for section in ("3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "5.1", "5.3", "5.4", "6.1", "6.2"):
        assert section in sections
    for equation in ("(1)", "(2)", "(3)"):
        assert equation in sections
    assert len(SOURCES) == 5  # the paper and four documents


def test_every_passage_has_a_lesson_and_code():
    assert [entry.text for entry in all_passages() if not (entry.lessons and entry.code)] == []


def test_no_word_comes_twice():
    names = [term.name.lower() for term in all_terms()]
    assert len(set(names)) == len(names) > 50


@pytest.mark.parametrize("name", PAGES)
def test_the_page_beside_the_lessons_is_what_the_command_writes(name, tmp_path):
    """Where this fails, code or lessons have moved: npformer index --write lessons/INDEX.md, and so on."""
    assert (LESSONS / name).read_text(encoding="utf-8") == PAGES[name](LESSONS)


@pytest.mark.parametrize("name", PAGES)
def test_no_link_of_a_page_is_dead(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = name.removesuffix(".md").lower()
    assert main([command, "--write"]) == 0
    assert capsys.readouterr().out == f"wrote {name}\n"
    links = re.findall(r"\]\(([^)#]+)#L(\d+)\)", (tmp_path / name).read_text(encoding="utf-8"))
    assert len(links) > 80
    for path, line in links:
        assert int(line) <= len((tmp_path / path).read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("find", "reference", "message"),
    [
        (lesson_place, "99", "lesson 99, and there is none"),
        (lesson_place, "5 Seven steps", "'Seven steps' in lesson 5, and no heading begins so"),
        (code_place, "functional/sofmax.softmax", "npformer/functional/sofmax.py, and there is no such file"),
        (code_place, "functional/softmax.sofmax", "sofmax in npformer/functional/softmax.py"),
    ],
)
def test_a_dead_link_is_named(find, reference, message):
    with pytest.raises(UserError, match=re.escape(message)):
        find(reference)


def test_a_dead_link_in_a_table_is_found(monkeypatch):
    monkeypatch.setattr(passages, "SOURCES", {"A paper": "1 | text | 5 Six | functional/norm.layer_nrom"})
    with pytest.raises(UserError, match="layer_nrom"):
        all_passages()


def test_searching():
    assert [entry.place for entry in find_passages("(2)")] == ["3.3, (2)"]
    assert "functional/softmax.py" in find_passages("logits")[0].code[0].address
    assert find_terms("softmax")[0].name == "softmax"
    assert find_terms("掩码")[0].chinese == "因果掩码"


def test_the_terminal(capsys):
    assert main(["index", "3.2.1, (1)"]) == 0
    out = capsys.readouterr().out
    assert "softmax(QKᵀ/√dₖ)V" in out
    assert re.search(r"npformer/functional/attention.py:\d+", out)
    assert re.search(r"lessons/05_scaled_dot_product_attention.py:\d+", out)
    assert main(["glossary", "mask"]) == 0
    assert capsys.readouterr().out.startswith("mask 掩码")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "nonsense"], "the index has no 'nonsense'"),
        (["index", ""], "the index has no ''"),
        (["glossary", "sofmax"], "do you mean softmax?"),
        (["glossary", "mask", "--write"], "give no word with it"),
        (["index", "--write", "no/such/folder/INDEX.md"], "cannot write no/such/folder/INDEX.md"),
    ],
)
def test_mistakes(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
