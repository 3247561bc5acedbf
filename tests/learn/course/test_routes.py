"""The routes through the course: their lessons, their lengths, and what says that a lesson is on one."""

import re

import pytest
from course import LESSONS, each_lesson
from paths import ROOT

from npformer.cli.main import main
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import find_lesson
from npformer.learn.course.progress import LessonProgress, save_progress
from npformer.learn.course.routes import ENGINEERS, MAIN, ROUTES, next_on, place_on_routes, routes_of
from npformer.learn.site.course_pages import course_pages

each_route = pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.name)


@each_route
def test_each_number_of_a_route_is_a_lesson_in_the_order_of_the_course(route):
    assert [lesson.number for lesson in route.lessons] == route.numbers.split()


@pytest.mark.parametrize("lesson", MAIN.lessons, ids=lambda lesson: lesson.name)
def test_what_a_lesson_of_the_main_route_needs_is_on_the_main_route(lesson):
    needed = lesson.cells[0].text.split("You need")[1].split("**After")[0]
    named = set(re.findall(r"`(\d\d(?:_\d)?_\w+)`", needed))
    assert [other for other in LESSONS if other.name in named and other not in MAIN.lessons] == []


def test_the_length_of_the_routes():
    assert 20 <= len(MAIN.lessons) <= 24
    hours = {route.name: sum(map(minutes_of, route.lessons)) / 60 for route in ROUTES.values()}
    assert 9 <= hours["main"] <= 11
    assert 7.5 <= hours["engineers"] <= 8.5


@each_route
def test_pages_that_state_the_length_of_a_route_are_right(route):
    for name in ("README.md", "docs/start-here.md", "lessons/README.md"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert route.length in text, name


@each_lesson
def test_a_lesson_says_whether_it_is_on_a_route(lesson):
    line = place_on_routes(lesson)
    assert ("on the main route" in line and "not on" not in line) == (lesson in MAIN.lessons)
    assert ("on the route for engineers" in line) == (lesson in ENGINEERS.lessons)
    assert (line.startswith("You may skip") or "after the main" in line) == (not routes_of(lesson))


def test_the_next_lesson_of_a_route():
    assert next_on(MAIN, find_lesson("4.2")) == next_on(MAIN, find_lesson("4.3")) == find_lesson("4.4")
    assert next_on(MAIN, MAIN.lessons[-1]) is None
    assert next_on(ENGINEERS, find_lesson("0.0")) == ENGINEERS.lessons[0]


@each_route
def test_the_list_of_a_route_has_its_lessons_and_how_to_go_on(route, inside, capsys):
    first, second = route.lessons[:2]
    save_progress(first.name, LessonProgress(0, 5, True))
    assert main(["lessons", "--route", route.name]) == 0
    output = " ".join(capsys.readouterr().out.split())
    numbers = re.findall(r"(?<=[ \d])(\d+(?:\.\d)?) [A-Z]", output)
    assert set(route.numbers.split()) - {first.number} <= set(numbers)
    assert f"The {route.title} ({route.length}): {route.goal}." in output
    assert f"npformer lesson {second.number} continues the {route.title}." in output


def test_the_next_lesson_to_open_is_the_next_on_the_main_route(inside, capsys):
    save_progress(find_lesson("4.2").name, LessonProgress(0, 5, True))
    assert main(["lesson"]) == 0
    assert "4.4 · " in capsys.readouterr().out[:600]


def test_the_contents_of_the_site_have_the_routes():
    contents = course_pages(LESSONS)["lessons/index.md"].decode()
    for route in ROUTES.values():
        assert f"**The {route.title}** ({route.length})" in contents
