"""The commands and links with which lessons open the explorer: the page shows the step that they derive."""

import functools
import os
import re
import shlex

import pytest
from browser import open_page, visit
from word_translator import word_translator

import npformer
from npformer.cli.main import make_parser
from npformer.data.text_codecs import CharacterCodec
from npformer.explorer import explore
from npformer.explorer.page import make_page
from npformer.explorer.recorded import recorded_data
from npformer.explorer.step_lines import STEP_LINES
from npformer.learn.course.lesson import all_lessons

COMMAND = re.compile(r"(?:^|`)npformer (explore [^`\n]+)", re.MULTILINE)
LINK = re.compile(r"`(#[^`\s]+=[^`\s]+)`")
# the lessons about a whole model and its use, which derive no step of their own
OTHERS = {"00_1", "09_1", "10_3", "11_3", "15_1", "15_3", "24_1", "25"}
DERIVED = {"05_1", "05_2", "06_1", "07_2", "07_3", "08_1", "08_2", "08_3", "09_2", "12_2"}


def number_of(lesson):
    return re.match(r"\d+(_\d+)?", lesson.name)[0]


def prose_of(lesson):
    return "\n".join(cell.text for cell in lesson.cells if cell.kind == "prose")


NAMING = [lesson for lesson in all_lessons() if COMMAND.search(prose_of(lesson))]
LINKING = [lesson for lesson in NAMING if LINK.search(prose_of(lesson))]


def command_of(lesson):
    """Return the arguments of the command of a lesson."""
    (command,) = COMMAND.findall(prose_of(lesson))
    return make_parser("explore").parse(shlex.split(command)[1:])


def test_these_lessons_open_the_explorer_once():
    assert {number_of(lesson) for lesson in NAMING} == OTHERS | DERIVED
    assert {number_of(lesson) for lesson in NAMING} - {number_of(lesson) for lesson in LINKING} == {"00_1"}
    for lesson in NAMING:
        assert command_of(lesson).open, lesson.name
        assert len(LINK.findall(prose_of(lesson))) == (lesson in LINKING), lesson.name


@pytest.fixture(scope="module")
def page_of(loaded_gpt):
    """Return a function that makes the page of a command.

    Runs that a reader trains are untrained here, and but for the night a small model stands in for en-de.
    """

    @functools.cache
    def make(model, sentence=None):
        if model == "tour/run":
            return explore(word_translator(), "the dog is tired").html
        if model == "en-de" and not os.environ.get("NPFORMER_NIGHTLY"):
            like = npformer.pretrained.read_pretrained(model).model.config
            small = word_translator(norm=like.norm, final_norm=like.final_norm, n_layers=like.n_layers)
            return make_page(*recorded_data(small, "the dog is tired")).html
        if model == "en-de":
            return explore(npformer.load(model), sentence).html
        codec = CharacterCodec("".join(sorted(set(sentence))))
        loaded = loaded_gpt(codec, context=64)
        return explore(loaded, sentence).html

    return make


@pytest.mark.browser
@pytest.mark.parametrize("lesson", LINKING, ids=number_of)
def test_the_link_of_a_lesson_opens_its_step(lesson, chromium, page_of):
    (link,) = LINK.findall(prose_of(lesson))
    wanted = dict(part.split("=") for part in link[1:].split("&"))
    command = command_of(lesson)
    with open_page(chromium, page_of(command.model, *command.sentence)) as page:
        visit(page, link)
        view, direction = page.evaluate("[npformer.explorer.view, npformer.explorer.direction]")
        path, line = page.evaluate("(({ path, line }) => [path, line])(npformer.explorer.moment.step)")
        assert view == wanted.get("view", "steps")
        assert direction == wanted.get("direction", "forward")
        if "step" in wanted:
            assert path == wanted["step"]
        if number_of(lesson) in DERIVED:
            lines = STEP_LINES[line]
            derived_in = lines.lesson if direction == "forward" else lines.backward_lesson
            assert derived_in == f"{lesson.name}.py"
