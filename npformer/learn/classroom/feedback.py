"""The page of a student: what is right, what is wrong and where, as one HTML file without other files."""

import hashlib
import html
import re
from collections.abc import Sequence

from npformer.escaping import printable
from npformer.language import INTERFACE, language_tag, later, phrase, say
from npformer.learn.classroom.assess import MISSING, SOLVED, UNREADABLE, UNTOUCHED, WRONG, Result
from npformer.learn.classroom.grade_class import StudentsWork
from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.exercises import EXERCISES

SHOWN_LINES = 400  # of a solution
WORDS = {
    SOLVED: later("Solved"),
    WRONG: later("Not correct yet"),
    UNTOUCHED: later("Not begun"),
    UNREADABLE: later("Cannot be read"),
    MISSING: later("Not submitted"),
}
STYLE = """\
:root { color-scheme: light dark; --text: #1c1c1c; --soft: #595959; --page: #fff; --box: #f4f4f1;
  --line: #c9c9c4; --right: #1a6330; --wrong: #9c1f1f; }
@media (prefers-color-scheme: dark) { :root { --text: #ececec; --soft: #b4b4b4; --page: #17181a;
  --box: #232528; --line: #4a4d52; --right: #7fd49a; --wrong: #ff9d94; } }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { text-align: left; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
td.points, th.points { text-align: right; white-space: nowrap; padding-right: 0; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 4px; padding: .8rem;
  overflow-x: auto; font: .875rem/1.4 ui-monospace, Menlo, Consolas, monospace; }
a { color: inherit; }
.solved { color: var(--right); font-weight: 600; }
.wrong { color: var(--wrong); font-weight: 600; }
.soft { color: var(--soft); }
summary { cursor: pointer; padding: .3rem 0; }
pre:focus-visible, summary:focus-visible, a:focus-visible { outline: 3px solid #4a7dde; outline-offset: 2px; }
"""


def page_name(student: str) -> str:
    """Return the name of a student's page: plain letters only, and another name for each student.

    No student has the page of the class, a name that Windows refuses, or one that ends like a digest.
    """
    taken = r"class|con|prn|aux|nul|(com|lpt)\d|.*-[0-9a-f]{16}"
    if re.fullmatch(r"[a-z0-9_-]{1,60}", student) and not re.fullmatch(taken, student):
        return f"{student}.html"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", student).strip("-")[:40] or "student"
    digest = hashlib.sha256(student.encode(errors="surrogateescape")).hexdigest()[:16]
    return f"{plain}-{digest}.html"


def feedback_page(work: StudentsWork, exercises: Sequence[str]) -> str:
    """Return the page of a student.

    Args:
        work: The solutions and results of the student.
        exercises: The names of the exercises. Those without a result are left out.
    """
    results = [work.results[name] for name in exercises if name in work.results]
    possible = sum(result.possible for result in results)
    solved = sum(result.status == SOLVED for result in results)
    rows = "".join(
        f'<tr><td><a href="#{result.exercise}">{title_of(result.exercise)}</a></td>'
        f"<td>{_state(result)}</td>{_points(result)}</tr>\n"
        for result in results
    )
    title = say("Feedback for {student}", student=work.student)
    points = say("{points:g} of {possible:g} points", points=work.points, possible=possible)
    share = say(", solved exercises: {solved} of {count}.", solved=solved, count=len(results))
    body = (
        f"<h1>{escaped(title)}</h1>\n"
        f"<p><strong>{points}</strong>{share}</p>\n"
        f"<table>\n<caption>{say('Your exercises')}</caption>\n"
        f'<thead><tr><th scope="col">{say("Exercise")}</th><th scope="col">{say("Result")}</th>'
        f'<th scope="col" class="points">{say("Points")}</th></tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n"
    )
    body += "".join(_section(result, work.texts.get(result.exercise, "")) for result in results)
    return page(title, body)


def page(title: str, body: str) -> str:
    """Return an HTML page.

    Args:
        title: The title, as text.
        body: The content, as HTML.
    """
    return (
        f'<!doctype html>\n<html lang="{language_tag()}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _section(result: Result, text: str) -> str:
    """Return the section of one exercise."""
    exercise = EXERCISES.find(result.exercise)
    number, title = exercise.chapter, title_of_chapter(exercise.chapter)
    chapter = say("Chapter {number}: {title}", number=number, title=title)
    state = say("{state}: {message}.", state=_state(result), message=escaped(result.message))
    parts = [
        f'<h2 id="{exercise.name}">{title_of(exercise.name)}</h2>',
        f'<p class="soft"><code>{exercise.name}</code> · {escaped(chapter)}</p>',
        f"<p>{state}</p>".replace("..</p>", ".</p>"),
    ]
    if result.clues:
        parts.append("<ul>\n" + "".join(f"<li>{escaped(clue)}</li>\n" for clue in result.clues) + "</ul>")
    if result.picture:
        box = _box(result.picture, say("Wrong entries: {name}", name=exercise.name))
        parts += [f"<p>{say('Each sign is one entry of the result:')}</p>", box]
    if result.printed:
        box = _box(result.printed, say("Output of your code: {name}", name=exercise.name))
        parts += [f"<p>{say('Your code printed:')}</p>", box]
    if result.status != SOLVED:
        parts.append(_folded(say("A hint"), f"<p>{escaped(exercise.hints[0])}</p>"))
        parts.append(f"<p>{say('To read about it:')} <code>npformer lesson {number}</code></p>")
    if text:
        box = _box(_numbered(text), say("Your solution: {name}", name=exercise.name))
        parts.append(_folded(say("Your solution"), box))
    return f'<section aria-labelledby="{exercise.name}">\n' + "\n".join(parts) + "\n</section>\n"


def title_of(exercise: str) -> str:
    """Return the title of an exercise as a heading, for HTML."""
    title = EXERCISES.find(exercise).title
    return escaped(title[0].upper() + title[1:])


def _state(result: Result) -> str:
    """Return the status in words."""
    kind = "solved" if result.status == SOLVED else "wrong"
    return f'<span class="{kind}">{phrase(WORDS[result.status], INTERFACE)}</span>'


def _points(result: Result) -> str:
    return f'<td class="points">{points_of(result.points, result.possible)}</td>'


def points_of(points: float, possible: float) -> str:
    """Return a number of points out of the possible ones, as text."""
    return say("{points:g} of {possible:g}", points=points, possible=possible)


def _box(text: str, label: str) -> str:
    """Return text with its lines as they are. One can scroll it with the keyboard."""
    return (
        f'<pre tabindex="0" role="region" aria-label="{escaped(label)}">{escaped(text, keep=chr(10))}</pre>'
    )


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escaped(title)}</summary>\n{body}\n</details>"


def _numbered(text: str) -> str:
    """Return the lines of a solution with their numbers, which messages name."""
    lines = text.splitlines()
    shown = [f"{number:>3}  {line}" for number, line in enumerate(lines[:SHOWN_LINES], 1)]
    if len(lines) > SHOWN_LINES:
        shown.append(say("… and {count} more", count=len(lines) - SHOWN_LINES))
    return "\n".join(shown)


def escaped(text: str, keep: str = "") -> str:
    """Return text for HTML, also for an attribute, without control characters."""
    return html.escape(printable(text.expandtabs(4), keep=keep))
