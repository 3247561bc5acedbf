"""The bug zoo: code that looks correct and usually trains, but has one bug that occurred in real projects."""

from collections.abc import Iterator
from pathlib import Path

from npformer.escaping import printable
from npformer.language import later, say
from npformer.learn.bugs.cases import ALL
from npformer.learn.bugs.judge import judge, observe
from npformer.learn.bugs.picture import draw, two_lines
from npformer.learn.bugs.specimen import Run, Specimen, Trial, fill
from npformer.learn.tasks.registry import TaskRegistry

__all__ = ["BUGS", "Run", "Specimen", "Trial"]


def _introduce(specimen: Specimen, file: Path) -> Iterator[str]:
    """Train the code with and without the bug, save a figure of both curves, and yield the text to print."""
    number, name, written = specimen.number, specimen.name, printable(file)
    yield say(
        "Wrote {file}: {name}, bug {number} of {count}.\n",
        file=written,
        name=name,
        number=number,
        count=len(BUGS),
    )
    bug, right = specimen.train(specimen.buggy()), specimen.train(specimen.repaired())
    yield fill(specimen.symptom, bug, right) + "\n"
    yield "\n".join(two_lines(bug, right, say("without"))) + "\n"
    from npformer import plots  # matplotlib takes a second to load

    figure = draw(bug, right, specimen.axes, f"Bug {number}, {name}: {specimen.summary}")
    saved = plots.save(figure, file.with_suffix(".png"))
    yield say("A figure of both curves: {path}", path=printable(saved))
    yield say("Your task: find the bug in {file} and repair it.", file=written)


BUGS = TaskRegistry[Specimen](
    "bug",
    command="npformer bugs",
    folder="bugs",
    source="npformer.learn.bugs:BUGS",
    columns=(later("bug"), later("name"), later("symptom")),
    observe=observe,
    judge=judge,
    introduce=_introduce,
    numbered=True,
)
for _specimen in ALL:
    BUGS.register(_specimen.name, _specimen)
