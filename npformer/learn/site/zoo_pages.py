"""The bug zoo: a page for each bug, with its symptom, its program and its hints, but without its solution."""

import html
import re
from collections.abc import Iterator

from npformer.learn.bugs import BUGS, Specimen
from npformer.learn.bugs.judge import fill
from npformer.learn.bugs.picture import draw
from npformer.learn.course.markup import code_html
from npformer.learn.site.images import figure_html
from npformer.learn.site.page import Page
from npformer.learn.site.styles import STYLES
from npformer.plots.composition import small_png

SECTION = "Bug zoo"
HEAD = """\
<h1>The bug zoo</h1>
<p>Each page shows a program that looks correct and mostly trains, but has one bug that occurred in real
projects. You see what goes wrong, you read the program, and you find the line. The hints are folded. The
solution is not on these pages: <code>npformer bugs check</code> tests your repair, and explains the bug once
your repair is correct.</p>
<p>To start with the first one, run:</p>
<pre class="code">npformer bugs start 1</pre>
<h2 id="bugs">All bugs</h2>
<ol class="zoo">
"""


def zoo_pages() -> Iterator[Page]:
    """Yield the page of all bugs, and then the page of each bug. Every program is trained twice."""
    rows = [
        f'<li><a href="{_file(bug)}">{html.escape(_sentence(bug))}</a> <code>{bug.name}</code></li>\n'
        for bug in BUGS
    ]
    body = f"{HEAD}{''.join(rows)}</ol>"
    yield Page("zoo/index.html", "The bug zoo", SECTION, body, STYLES, ("debugging", "debug", "exercise"))
    for bug in BUGS:
        yield bug_page(bug)


def bug_page(bug: Specimen) -> Page:
    """Return the page of a bug, whose program is trained with the bug and without it."""
    wrong, right = bug.train(bug.buggy()), bug.train(bug.repaired())
    image = f"zoo/{bug.number:02}.png"
    figure = draw(wrong, right, bug.axes, f"Bug {bug.number}: {bug.summary}")
    png = small_png(figure)
    numbers = f"{wrong.numbers()['last']:.3g} with the bug, and {right.numbers()['last']:.3g} without it"
    caption = f"The {bug.axes[1]} in the training. Its last value is {numbers}."
    parts = [
        f"<h1>Bug {bug.number}: {html.escape(bug.summary)}</h1>",
        '<h2 id="symptom">The symptom</h2>',
        f"<p>{html.escape(fill(bug.symptom, wrong, right))}</p>",
        figure_html(f"{bug.number:02}.png", png, caption),
        '<h2 id="program">The program</h2>',
        "<p>It has one bug. The modules that it imports are correct.</p>",
        code_html(bug.code()),
        *_task(bug),
        _neighbours(bug),
    ]
    title = f"Bug {bug.number}: {bug.summary}"
    return Page(f"zoo/{_file(bug)}", title, SECTION, "\n".join(parts), STYLES | {image: png}, (bug.name,))


def _task(bug: Specimen) -> Iterator[str]:
    """Yield how to start, and the hints."""
    yield '<h2 id="repair">Find it and repair it</h2>'
    yield "<p>This command writes the program into a file, which you edit:</p>"
    yield f'<pre class="code">npformer bugs start {bug.number}\nnpformer bugs check</pre>'
    yield '<h2 id="hints">Hints</h2>'
    for number, hint in enumerate(bug.hints, 1):
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(hint))
        yield f"<details><summary>Hint {number} of {len(bug.hints)}</summary>\n<p>{text}</p></details>"


def _neighbours(bug: Specimen) -> str:
    """Return links to the bugs before and after a bug."""
    bugs = list(BUGS)
    at = bugs.index(bug)
    near = (("Previous", "prev", bugs[at - 1 : at] if at else []), ("Next", "next", bugs[at + 1 : at + 2]))
    links = [
        f'<a rel="{rel}" href="{_file(other)}"><small>{word}</small> '
        f"Bug {other.number}: {html.escape(other.summary)}</a>"
        for word, rel, group in near
        for other in group
    ]
    return f'<nav class="neighbours" aria-label="Neighbouring bugs">{"".join(links)}</nav>'


def _file(bug: Specimen) -> str:
    return f"{bug.number:02}.html"


def _sentence(bug: Specimen) -> str:
    return bug.summary[0].upper() + bug.summary[1:]
