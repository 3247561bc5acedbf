"""The index and the glossary: every link works, nothing is missing, and the pages are up to date."""

import re

import pytest
from course import LESSONS
from paths import ROOT

from npformer.cli import glossary as glossary_command
from npformer.cli import index as index_command
from npformer.cli import lessons as lessons_command
from npformer.cli.main import main
from npformer.learn.course.glossary import all_terms, find_terms
from npformer.learn.course.length import minutes_of
from npformer.learn.course.passages import PAPER, SOURCES, all_passages, find_passages
from npformer.learn.course.routes import routes_of
from npformer.learn.site.lesson_links import PUBLISHED, document_of

FOLDER = ROOT / "lessons"
PAGES = {
    "INDEX.md": index_command.as_page,
    "GLOSSARY.md": glossary_command.as_page,
    "README.md": lessons_command.as_page,
}
COMMANDS = {"INDEX.md": "index", "GLOSSARY.md": "glossary", "README.md": "lessons"}


@pytest.fixture(scope="module")
def entries():
    """Return all passages and all terms."""
    return all_passages(), all_terms()


def test_every_location_is_the_right_line_and_every_lesson_is_led_to(entries):
    all_entries = [entry for part in entries for entry in part]
    found = [place for entry in all_entries for place in (*entry.lessons, *entry.code)]
    assert len(found) > 200
    for place in found:
        line = place.path.read_text(encoding="utf-8").splitlines()[place.line - 1]
        if place.name.startswith("lesson "):
            assert line.startswith("# #"), place
            assert place.name.split(", ", 1)[1] in line, place
        else:
            assert re.match(rf"(def|class) {place.name}\b", line), place
    led_to = {place.path.name for entry in all_entries for place in entry.lessons}
    assert {lesson.path.name for lesson in LESSONS} <= led_to


def test_the_index_has_every_section_of_the_paper(entries):
    sections = " ".join(entry.place for entry in entries[0] if entry.source == PAPER)
    for section in ("3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "5.1", "5.3", "5.4", "6.1", "6.2"):
        assert section in sections
    for equation in ("(1)", "(2)", "(3)"):
        assert equation in sections
    assert len(SOURCES) == 5  # the paper and four documents


def test_every_passage_has_a_lesson_and_code_and_no_term_occurs_twice(entries):
    passages, terms = entries
    assert [entry.text for entry in passages if not (entry.lessons and entry.code)] == []
    names = [term.name.lower() for term in terms]
    assert len(set(names)) == len(names) > 50


@pytest.mark.parametrize("name", PAGES)
def test_the_page_in_lessons_is_up_to_date_and_every_link_of_a_page_works(
    name, tmp_path, monkeypatch, capsys
):
    """If this fails, lines have moved: run npformer index --write lessons/INDEX.md, and the others."""
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](FOLDER)
    monkeypatch.chdir(tmp_path)
    assert main([COMMANDS[name], "--write"]) == 0
    assert capsys.readouterr().out == f"wrote {name}\n"
    links = re.findall(r"\]\(([^)#]+)#L(\d+)\)", (tmp_path / name).read_text(encoding="utf-8"))
    assert len(links) >= (len(LESSONS) if name == "README.md" else 80)
    for path, line in links:
        assert int(line) <= len((tmp_path / path).read_text(encoding="utf-8").splitlines())


def test_the_page_of_the_course_has_every_lesson_with_its_minutes_and_goals():
    page = lessons_command.as_page(FOLDER)
    for lesson in LESSONS:
        link = f"[{lesson.number} {lesson.title}]({lesson.path.name}#L1) | "
        link += f"[read]({PUBLISHED}/{document_of(lesson)}.html) | {minutes_of(lesson)} | "
        link += ", ".join(route.name for route in routes_of(lesson)) + " | "
        assert link + "; ".join(lesson.goals) in page.replace("\\|", "|")
        assert len(lesson.goals) > 1
    assert "| afterwards you can |" in page
    assert "\n`model: ids → embedding → [POSITIONS] → encoder" in page


def test_searching(capsys):
    assert [entry.place for entry in find_passages("(2)")] == ["3.3, (2)"]
    assert "functional/softmax.py" in find_passages("logits")[0].code[0].address
    assert find_terms("掩码")[0].chinese == "因果掩码"
    assert main(["index", "3.2.1, (1)"]) == 0
    out = capsys.readouterr().out
    assert "softmax(QKᵀ/√dₖ)V" in out
    assert re.search(r"npformer/functional/attention.py:\d+", out)
    assert re.search(r"lessons/05_\w+.py:\d+", out)
    assert main(["glossary", "mask"]) == 0
    assert capsys.readouterr().out.startswith("mask 掩码")


def test_the_glossary_in_chinese(capsys):
    assert main(["glossary", "梯度检验", "--language", "zh"]) == 0
    out = "".join(capsys.readouterr().out.split())
    assert out.startswith("梯度检验gradientcheck把反向传播得到的梯度g与前向传播的数值导数比较")
    assert "第0.2课，结果对吗？" in out
