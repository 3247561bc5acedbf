"""The bug zoo: a page for each bug, with its symptom, its program and its hints, but without its solution."""

from npformer.learn.bugs import BUGS, Specimen
from npformer.learn.bugs.picture import draw
from npformer.learn.bugs.specimen import fill
from npformer.learn.site.lesson_pages import hints
from npformer.learn.site.markdown import Files, code, document, listed, picture, text

HEAD = """\
Each page shows a program that looks correct and mostly trains, but has one bug that occurred in real
projects. You see what goes wrong, you read the program, and you find the line. The hints are folded. The
solution is not on these pages: `npformer bugs check` tests your repair, and explains the bug once your repair
is correct.

To start with the first one, run:"""


def zoo_pages() -> Files:
    """Return the list of all bugs, and the page of each bug. Every program is trained twice."""
    files: Files = {}
    for bug in BUGS:
        files |= bug_page(bug)
    rows = [
        f"- [Bug {bug.number}](/zoo/{bug.number:02}.md) `{bug.name}`: {text(bug.summary)}" for bug in BUGS
    ]
    names = [f"/zoo/{bug.number:02}" for bug in BUGS]
    parts = [HEAD, code("npformer bugs start 1", "text"), "## All bugs", "\n".join(rows), listed(names)]
    return files | {"zoo/index.md": document("The bug zoo", parts, "debugging debug exercise")}


def bug_page(bug: Specimen) -> Files:
    """Return the page of a bug, whose program is trained with the bug and without it, and its picture."""
    wrong, right = bug.train(bug.buggy()), bug.train(bug.repaired())
    title = f"Bug {bug.number}: {bug.summary}"
    numbers = f"{wrong.numbers()['last']:.3g} with the bug, and {right.numbers()['last']:.3g} without it"
    caption = f"The {bug.axes[1]} in the training. Its last value is {numbers}."
    files: Files = {}
    parts = [
        f"## The symptom\n\n{text(fill(bug.symptom, wrong, right))}",
        picture(files, f"zoo/{bug.number:02}", draw(wrong, right, bug.axes, title), caption),
        "## The program\n\nIt has one bug. The modules that it imports are correct.",
        code(bug.code()),
        "## Find it and repair it\n\nThis command writes the program into a file, which you edit:",
        code(f"npformer bugs start {bug.number}\nnpformer bugs check", "text"),
        "## Hints",
        *hints(bug.hints),
    ]
    return files | {f"zoo/{bug.number:02}.md": document(text(title), parts, bug.name)}
