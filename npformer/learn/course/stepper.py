"""Step through a lesson in the terminal: read, run the code, go back, inspect variables, and try code."""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from npformer.errors import nearest
from npformer.escaping import printable
from npformer.language import say
from npformer.learn.console import styled
from npformer.learn.course.execute import Outcome, Runner, bound_names, describe, in_full, own
from npformer.learn.course.lesson import Cell, Lesson, Step
from npformer.learn.course.pictures import Picture, open_file
from npformer.learn.course.progress import LessonProgress, save_progress
from npformer.learn.course.prose import split_answers
from npformer.learn.course.terminal import (
    WIDTH,
    FoldedStream,
    Screen,
    code,
    lines_of,
    prose,
    unbroken,
)
from npformer.learn.course.terminal_pictures import PictureTerminal

COMMANDS = {"": "on", "n": "on", "b": "back", "l": "again", "q": "quit", "quit": "quit", "exit": "quit"}
ASSERTION = re.compile(r"^\s*assert(?=\s|_\w+\()", re.MULTILINE)  # a statement, and not an import of one


class Stepper:
    """Shows a lesson step by step.

    Args:
        lesson: The lesson.
        out: The console.
        folder: The folder in which figures are saved.
        stops: True to wait for Enter at each step; False to run from top to bottom.
        done: True if the reader reached the end before.
        command: The command that opens the lesson again.
        next: The text to print at the end.
    """

    def __init__(
        self,
        lesson: Lesson,
        out: Console,
        folder: Path,
        *,
        stops: bool,
        done: bool = False,
        command: str,
        next: str = "",
    ) -> None:
        self.lesson = lesson
        self.runner = Runner(lesson)
        self.out = out
        self.folder = folder
        self.done = done
        self.command = command
        self.next = next
        self.screen = Screen(out, self._answer, stops=stops)
        self.pictures = PictureTerminal(out)
        self.step = 0
        self.save_failed = False  # the progress could not be saved
        self.last_figure: Path | None = None  # the file that o opens
        self.folded: list[Cell] = []  # the cells whose code c shows

    def walk(self, step: int) -> int:
        """Show the lesson from a step on, until its end or until the reader quits.

        Returns:
            The exit status: 1 if a cell failed and `stops` is False, otherwise 0.
        """
        steps = self.lesson.steps
        self._greet()
        self._go(step)
        while self.step < len(steps):
            command = self._show(steps[self.step])
            if command == "on":
                command = self._run(steps[self.step])
            if command == "quit":
                self._leave()
                return 0
            if command == "failed" and not self.screen.stops:
                return 1
            if command not in ("on", "failed"):
                self._go(self._target(command))
                continue
            self.step += 1
            self._save_progress()
        self._end()
        return 0

    def _greet(self) -> None:
        """Print how to use the stepper."""
        if not self.screen.stops:
            return
        self._print(
            (
                say(
                    "Press Enter to run the code that is shown and go on. Type ? and Enter for all commands."
                ),
                "dim",
            )
        )
        if self.out.width < WIDTH:
            text = say(
                "Lessons are written for {most} columns, and this terminal has {width}: "
                "long lines of code are broken.",
                most=WIDTH,
                width=self.out.width,
            )
            self._print((text, "dim"))

    def _target(self, command: str) -> int:
        """Return the index of the step that a command leads to."""
        if command == "back":
            return self.step - 1
        return self.step if command == "again" else int(command)

    def _show(self, step: Step) -> str:
        """Print a step's prose and code, and ask how to go on. Return "on" or a command."""
        # the rule is printed with the text below it, so that it is never alone at the end of a screen
        rule = lines_of(self.out, Rule(self._where.strip("[]"), style="dim", align="left"))
        for part in [part for cell in step.prose for part in split_answers(cell.text)]:
            lines = lines_of(self.out, prose(part.text))
            if part.kind == "answer":
                command = self.screen.ask(
                    f"{self._where} {say('Enter: the answer · b back · q quit · ? help')} ▸ "
                )
                if command != "on":
                    return command
                lines = [*lines_of(self.out, styled((part.title, "bold"))), *lines]
            command = self.screen.put([*rule, *lines, ""], self._where)
            if command != "on":
                return command
            rule = []
        if step.code is None:
            return self.screen.ask(f"{self._where} {say('Enter: the end · b back · q quit · ? help')} ▸ ")
        if self._is_folded(step.code):
            shown = self._fold(step.code)
        else:
            shown = lines_of(self.out, code(step.code.text))
        command = self.screen.put_together([*rule, *shown, ""], self._where)
        if command != "on":
            return command
        return self.screen.ask(
            f"{self._where} {say('Enter: run · b back · s NAME · !LINE · q quit · ? help')} ▸ "
        )

    def _is_folded(self, cell: Cell) -> bool:
        """Return whether one line stands for a cell's code. Without a reader to ask, all code is shown."""
        return bool(cell.tags) and self.screen.stops

    def _fold(self, cell: Cell, result: str = "") -> list[str]:
        """Return the line that stands for a folded cell, and remember its code for the command c."""
        if cell not in self.folded:
            self.folded.append(cell)
        line = f"▷ {say('{what} (c shows the code)', what=cell.summary)}"
        return lines_of(self.out, styled((f"{line}{result}", "dim")))

    def _run(self, step: Step) -> str:
        """Run a step's code and show its outcome. Return "on", "failed", or the reader's command."""
        if step.code is None:
            return "on"
        self.folded = [step.code] if self._is_folded(step.code) else []
        printed = FoldedStream(self.out.file, self.out.width if self.screen.stops else sys.maxsize)
        outcome = self.runner.run(step.code, echo=printed)
        printed.end()
        self.screen.used += printed.lines
        command = self._show_outcome(step.code, outcome)
        for cell in step.folded:
            if outcome.error or command != "on":
                break
            outcome = self.runner.run(cell)
            command = self._show_folded(cell, outcome)
        if command != "on":
            return command
        if self.screen.free > 0 or not self.screen.stops:
            self.screen.write([""])
        return "failed" if outcome.error else "on"

    def _show_folded(self, cell: Cell, outcome: Outcome) -> str:
        """Print the line of a folded cell and its outcome. Return "on" or the reader's command."""
        if self._is_folded(cell):
            holds = cell.tags == ("check",) and not (outcome.printed or outcome.error)
            lines = self._fold(cell, f" → {say('all assertions hold')}" if holds else "")
        else:
            lines = ["", *lines_of(self.out, code(cell.text)), ""]
        text = io.StringIO()
        printed = FoldedStream(text, self.out.width if self.screen.stops else sys.maxsize)
        printed.write(outcome.printed)
        printed.end()
        command = self.screen.put_together([*lines, *text.getvalue().splitlines()], self._where)
        if command != "on":
            return command
        return self._show_outcome(cell, replace(outcome, defined=[]), silent=self._is_folded(cell))

    def _show_outcome(self, cell: Cell, outcome: Outcome, *, silent: bool = False) -> str:
        """Print the cell's definitions, figures and error. Its output has been printed already.

        Args:
            cell: The cell.
            outcome: Its outcome.
            silent: True to print nothing where there is nothing to show.

        Returns:
            "on", or the command that the reader gave before a figure.
        """
        if outcome.defined:
            self._print((f"→ {_in_line(outcome.defined)}", "dim"))
        elif not (silent or outcome.printed or outcome.pictures or outcome.error):
            result = say("all assertions hold") if ASSERTION.search(cell.text) else say("done")
            self._print((f"→ {result}", "dim"))
        for picture in outcome.pictures:
            command = self._show_picture(picture)
            if command != "on":
                return command
        if outcome.error:
            self._print((say("This cell failed:"), "bold red"), f" {outcome.error}")
            if self.screen.stops:
                self._print(
                    say(
                        "The lesson goes on, but later cells may need names that this cell "
                        "should have defined."
                    )
                )
        return "on"

    def _show_picture(self, picture: Picture) -> str:
        """Save a figure, and show it if the terminal can. Return "on" or the reader's command."""
        path = picture.save(self.folder)
        hint = f"  ({say('o opens it')})" if self.screen.stops and self.last_figure is None else ""
        self.last_figure = path
        text = f" {printable(path)}{hint}\n{picture.caption}".rstrip()
        caption = lines_of(self.out, styled((say("figure"), "bold"), text))
        shown = self.pictures.lines(picture.figure, path, below=len(caption))
        return self.screen.put_together([*shown, *caption], self._where)

    def _print(self, *parts: str | tuple[str, str]) -> None:
        """Print text, made of strings and of pairs (string, style)."""
        self.screen.write(lines_of(self.out, styled(*parts)))

    @property
    def _where(self) -> str:
        return f"[{self.step + 1}/{len(self.lesson.steps)}]"

    def _go(self, step: int) -> None:
        """Go to a step and run all code before it again."""
        step = min(max(step, 0), len(self.lesson.steps) - 1)
        cells = sum(len(earlier.cells) for earlier in self.lesson.steps[:step])
        if cells:
            self._print((say("The code before this step runs again."), "dim"))
        error = self.runner.replay(step)
        self.step, self.folded = step, []
        self._save_progress()
        if error:
            self._print((say("A cell of it failed:"), "bold red"), f" {error}")

    def _save_progress(self) -> None:
        """Save the progress. If that fails, say so once."""
        if not self.screen.stops:
            return
        steps = len(self.lesson.steps)
        saved = save_progress(
            self.lesson.name, LessonProgress(self.step % steps, steps, self.done or self.step == steps)
        )
        if saved.note and not self.save_failed:
            self.save_failed = not saved.done
            self._print((printable(saved.note), "dim"))

    def _leave(self) -> None:
        place = {"step": self.step + 1, "steps": len(self.lesson.steps)}
        self._print(say("You stopped at step {step} of {steps}.", **place))
        command = (self.command, "bold")
        if self.save_failed:
            lost = say("Your progress is not saved. To go on:")
            self._print(lost, " ", command, f", g {self.step + 1}")
        else:
            self._print(say("To go on from there:"), " ", command)

    def _end(self) -> None:
        if self.screen.stops:
            end = say("The end of lesson {number}.", number=self.lesson.number)
            self._print((end, "bold"), f"\n{self.next}".rstrip())

    def _answer(self, line: str) -> str:
        """Handle a line that the reader typed. Return "on", a command, or "" if nothing is left to do."""
        name, _, rest = line.partition(" ")
        name, rest = name.lower(), rest.strip()
        if line.startswith("!"):
            try:
                text = self.runner.evaluate(
                    line[1:].strip() or "'write a line of Python after the !, such as !x.shape'"
                )
            except SystemExit:  # of quit() or exit()
                return "quit"
            if text:
                self._print(text.rstrip("\n"))
        elif line.lower() in COMMANDS:
            return COMMANDS[line.lower()]
        elif line.lower() == "c":
            return self._unfold()
        elif line.lower() == "o":
            self._print(open_file(self.last_figure) if self.last_figure else say("No figure was drawn yet."))
        elif name == "s":
            self._print(self.runner.text_from(lambda: self._variable(rest)))  # a repr may raise
        elif name == "g" and rest.isdecimal() and len(rest) < 10:
            return str(max(int(rest) - 1, 0))
        elif name in ("?", "h", "help"):
            self._print(_help())
        else:
            self._print(self._no_command(name, line))
        return ""

    def _unfold(self) -> str:
        """Print the code of the folded cells. Return "", or a command that the reader gave between pages."""
        if not self.folded:
            self._print(say("There is no folded code (▷) on this screen."))
        for cell in self.folded:
            command = self.screen.put([*lines_of(self.out, code(cell.text)), ""], self._where)
            if command != "on":
                return command
        return ""

    def _no_command(self, name: str, line: str) -> str:
        """Return a message that says what to type instead of a line that is not a command."""
        if name == "g":
            steps = len(self.lesson.steps)
            return say("g needs the number of a step, from 1 to {steps}, as in g 1", steps=steps)
        if name == "npformer":
            return say(
                "This is a command for the shell. Type q to leave the lesson, or use a second terminal."
            )
        return say(
            "{shown} is not a command: type ? for all commands, or !{line} to run it as Python.",
            shown=repr(line),
            line=line,
        )

    def _variable(self, name: str) -> str:
        """Return the text that `s NAME` shows. The name may be dotted, such as cache.weights."""
        names = own(self.runner.namespace)
        if not name:
            all_names = [unbroken(describe(n, v)) for n, v in names.items()]
            return "   ".join(all_names) or say("Nothing is defined yet: press Enter to run the code.")
        first, *rest = name.split(".")
        if first not in self.runner.namespace:  # which also has what the lesson imported
            shown = self.lesson.steps[self.step].code
            if shown is not None and first in bound_names(shown.text):
                return say("{name} is defined by the code on the screen: press Enter first", name=first)
            near = nearest(first, names)
            if near:
                return say("{name} is not defined at this step: did you mean {near}?", name=first, near=near)
            return say("{name} is not defined at this step: s alone lists all names", name=first)
        value, path = self.runner.namespace[first], first
        for part in rest:
            if not hasattr(value, part):
                fields = ", ".join(getattr(value, "_fields", ())) or say("no named fields")
                return say("{name} has no {part}: it has {fields}", name=path, part=part, fields=fields)
            value, path = getattr(value, part), f"{path}.{part}"
        return in_full(name, value)


def _in_line(phrases: list[str]) -> str:
    """Return phrases side by side, none broken at the end of a line."""
    return "   ".join(map(unbroken, phrases))


def _help() -> str:
    """Return the commands of the stepper."""
    return say("""\
Enter      run the code that is shown and go on
b          go back one step; the code before it runs again, so variables get their earlier values
g NUMBER   go to a step, back or forward; g 1 is the first
l          show this step again
c          show the code of the checks and plots that are folded on this screen (▷)
o          open the last figure with the system's image viewer
s NAME     show a variable; of a cache, every array with its name, shape and numbers; s alone lists all
!LINE      run a line of Python with the lesson's variables, such as !q.shape or !x = x * 2
q          quit and save your progress (as Ctrl-C and Ctrl-D do)
?          show this help""")
