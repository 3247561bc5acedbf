"""The first page of the site."""

from collections.abc import Mapping, Sequence
from html import escape

from npformer.learn.course.lesson import Lesson
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.contents_pages import EXERCISE_LIST
from npformer.learn.site.guide_pages import READ_FIRST, START
from npformer.learn.site.lesson_links import CONTENTS, REPOSITORY, page_of
from npformer.learn.site.page import Page

# what a section offers, after the link with its name
OFFERS = {
    "Explorer": "A small translator that computes in your browser: every number, forward and backward.",
    "Bug zoo": "Programs that look correct and contain a bug that occurred in real projects. Find it.",
    "Gallery": "The figures of the papers and documents, drawn from real tensors.",
    "Guides": "Train on your own text, check a layer of your own, load other people's models.",
    "Reference": "Every public function and class, with formulas and shapes.",
    "Glossary": "The terms of the course, with definitions, formulas and shapes.",
}


def start_page(sections: Mapping[str, str], lessons: Sequence[Lesson], *, has_read_first: bool) -> Page:
    """Return the first page of the site.

    Args:
        sections: The path of the first page of each section of the site.
        lessons: The lessons of the site.
        has_read_first: Whether the site has the page that says who reads what first.
    """
    first = lessons[0]
    guide = (
        f'<a href="{READ_FIRST}">What to read first</a>: for five kinds of reader.' if has_read_first else ""
    )
    offers = [
        _offer(CONTENTS, "The course", f"{len(lessons)} lessons, with the map of the architecture."),
        _offer(EXERCISE_LIST, "Exercises", f"{len(list(EXERCISES))} functions to write, with hints."),
        *(_offer(sections[name], name, text) for name, text in OFFERS.items() if name in sections),
    ]
    body = f"""<h1>npformer</h1>
<p class="lead">The Transformer of <i>Attention Is All You Need</i> and its family in NumPy. Every backward
pass is written by hand, and every gradient is checked.</p>
<p><a class="button" href="{page_of(first)}">Begin with lesson {first.number}: {escape(first.title)}</a></p>
<p>{guide}</p>
<ul class="offers">
{"".join(offers)}</ul>
<h2 id="run-it-yourself">Run it yourself</h2>
<p>npformer needs Python 3.11 or later. It needs neither a GPU nor another framework. Run:</p>
<pre class="output">git clone {REPOSITORY}
cd npformer
python -m pip install .
npformer tour</pre>
<p>The tour trains a small translator, translates new sentences, checks every gradient and draws attention.
It takes about four minutes on two CPU cores.</p>"""
    return Page(START, "npformer", "Start", body, {}, ("home", "install", "start"))


def _offer(path: str, name: str, text: str) -> str:
    """Return the entry of a part of the site."""
    return f'<li><a href="{path}">{name}</a><span>{escape(text)}</span></li>\n'
