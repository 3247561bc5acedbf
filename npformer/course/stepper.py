"""A lesson in the terminal: prose, code, Enter, what came of it; back, look, try, leave."""

import difflib
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from npformer.course.cells import Cell, Step
from npformer.course.describe import bound_names, describe, in_full, own
from npformer.course.execute import Outcome, Runner
from npformer.course.inline import escape_sequence, protocol
from npformer.course.library import Lesson
from npformer.course.places import Place, save_place
from npformer.course.render import WIDTH, code, lines_of, prose, unbroken
from npformer.course.screen import Folded, Screen

HELP = """\
Enter      run the code that is shown; read on
b          back one step: everything before it is run anew, so variables are as they were
g NUMBER   go to a step, back or forward: g 1 is the top
l          look at this step once more
s NAME     show a variable; of a cache every array by name, shape and numbers; s alone lists all
!LINE      a line of Python in the lesson's place, as !q.shape or !x = x * 2
q          quit; the place is kept (so do Ctrl-C and Ctrl-D)
?          this"""
WORDS = {"": "on", "n": "on", "b": "back", "l": "again", "q": "quit", "quit": "quit", "exit": "quit"}


class Stepper:
    """One walk through a lesson.

    stops: wait for Enter; otherwise run from top to bottom. folder: where figures are saved. done: whether
    its end was reached at an earlier time. next: what is said at its end.
    """

    def __init__(
        self, lesson: Lesson, out: Console, folder: Path, *, stops: bool, done: bool = False, next: str = ""
    ):
        self.lesson = lesson
        self.runner = Runner(lesson)
        self.out = out
        self.folder = folder
        self.done = done
        self.next = next
        self.screen = Screen(out, self._answer, stops=stops)
        self.step = 0
        self.failed = False  # to keep the place
        self.drew = False  # a figure, on this walk

    def walk(self, step: int) -> int:
        """Go on from a step to the end, or to where the reader leaves. Returns 1 where it failed alone."""
        steps = self.lesson.steps
        self._greet()
        self._go(step)
        while self.step < len(steps):
            command = self._show(steps[self.step])
            if command == "quit":
                self._leave()
                return 0
            if command != "on":
                self._go(self._target(command))
                continue
            if not self._run(steps[self.step]) and not self.screen.stops:
                return 1
            self.step += 1
            self._keep()
        self._end()
        return 0

    def _greet(self) -> None:
        """What a reader has to know before the first step."""
        if not self.screen.stops:
            return
        self._say("[dim]Enter runs the code that is shown and reads on; ? and Enter: what else there is.[/]")
        if self.out.width < WIDTH:
            self._say(
                f"[dim]Lessons are laid out for {WIDTH} columns, and this terminal has {self.out.width}: "
                "long lines of code are broken.[/]"
            )

    def _target(self, command: str) -> int:
        """The step that a command leads to, from 0 up."""
        if command == "back":
            return self.step - 1
        return self.step if command == "again" else int(command)

    def _show(self, step: Step) -> str:
        """Print a step's prose and code, and ask. Returns "on" or a command."""
        # the rule goes with what follows it: alone at the end of a screen it would say nothing
        rule = lines_of(self.out, Rule(self._where.strip("[]"), style="dim", align="left"))
        for cell in step.prose:
            command = self.screen.put([*rule, *lines_of(self.out, prose(cell.text)), ""], self._where)
            if command != "on":
                return command
            rule = []
        if step.code is None:
            return self.screen.ask(f"{self._where} Enter: the end · b back · q quit · ? help ▸ ")
        command = self.screen.keep([*rule, *lines_of(self.out, code(step.code.text)), ""], self._where)
        if command != "on":
            return command
        return self.screen.ask(f"{self._where} Enter: run · b back · s NAME · !LINE · q quit · ? help ▸ ")

    def _run(self, step: Step) -> bool:
        """Run a step's code and show what came of it. Returns whether it went well."""
        if step.code is None:
            return True
        printed = Folded(self.out.file, self.out.width if self.screen.stops else sys.maxsize)
        outcome = self.runner.run(step.code, on=printed)
        printed.end()
        self.screen.used += printed.lines
        self._show_outcome(step.code, outcome)
        self.screen.write([""])
        return not outcome.error

    def _show_outcome(self, cell: Cell, outcome: Outcome) -> None:
        """What a cell defined and drew, and its error; what it printed is there already."""
        if outcome.defined:
            self._say(f"[dim]→ {_in_line(outcome.defined)}[/]")
        elif not (outcome.printed or outcome.pictures or outcome.error):
            self._say(f"[dim]→ {'every assert holds' if 'assert' in cell.text else 'done'}[/]")
        for picture in outcome.pictures:
            path = picture.save(self.folder)
            how = protocol(os.environ) if sys.stdout.isatty() else ""
            if how:
                print(escape_sequence(picture.png(), how), end="", file=self.out.file)
                self.screen.used += 24  # about: only the terminal knows
            self._say(f"[bold]figure[/] {escape(str(path))}\n{escape(picture.caption)}".rstrip())
            if self.screen.stops and not (how or self.drew):
                self._say("[dim](A picture, saved where you work: open it with any viewer.)[/]")
            self.drew = True
        if outcome.error:
            self._say(f"[bold red]This cell failed:[/] {escape(outcome.error)}")
            if self.screen.stops:
                self._say("The lesson goes on without it: later cells may miss what it would have defined.")

    def _say(self, text: str) -> None:
        self.screen.write(lines_of(self.out, text))

    @property
    def _where(self) -> str:
        return f"[{self.step + 1}/{len(self.lesson.steps)}]"

    def _go(self, step: int) -> None:
        """Make the namespace what it is before a step."""
        step = min(max(step, 0), len(self.lesson.steps) - 1)
        cells = sum(1 for earlier in self.lesson.steps[:step] if earlier.code is not None)
        if cells:
            which = "cell" if cells == 1 else f"{cells} cells"
            self._say(f"[dim]Running the {which} before this step anew.[/]")
        error = self.runner.replay(step)
        self.step = step
        self._keep()
        if error:
            self._say(f"[bold red]One of them failed:[/] {escape(error)}")

    def _keep(self) -> None:
        """Keep the place; where that fails, say so once."""
        if not self.screen.stops:
            return
        steps = len(self.lesson.steps)
        why = save_place(self.lesson.name, Place(self.step % steps, steps, self.done or self.step == steps))
        if why and not self.failed:
            self.failed = True
            self._say(f"[dim]{escape(why)}[/]")

    def _leave(self) -> None:
        where, number = f"step {self.step + 1} of {len(self.lesson.steps)}", self.lesson.number
        if self.failed:
            again = f"[bold]npformer lesson {number}[/], and there g {self.step + 1}"
            self._say(f"Left at {where}, which is not kept: {again}, goes on.")
        else:
            self._say(f"Left at {where}. [bold]npformer lesson {number}[/] goes on there.")

    def _end(self) -> None:
        if self.screen.stops:
            self._say(f"[bold]The end of lesson {self.lesson.number}.[/]\n{escape(self.next)}".rstrip())

    def _answer(self, line: str) -> str:
        """What a line that was typed means: "on", a command, or "" where it has been dealt with here."""
        name, _, rest = line.partition(" ")
        name, rest = name.lower(), rest.strip()
        if line.startswith("!"):
            text = self.runner.evaluate(line[1:].strip() or "'as !x.shape: a line of Python after the !'")
            if text:
                self._say(escape(text.rstrip("\n")))
        elif line.lower() in WORDS:
            return WORDS[line.lower()]
        elif name == "s":
            self._say(escape(self._variable(rest)))
        elif name == "g" and rest.isdecimal():
            return str(max(int(rest) - 1, 0))
        elif name in ("?", "h", "help"):
            self._say(escape(HELP))
        else:
            self._say(escape(self._no_command(name, line)))
        return ""

    def _no_command(self, name: str, line: str) -> str:
        """What to do in place of a line that is no command."""
        if name == "g":
            return f"g wants the number of a step, from 1 to {len(self.lesson.steps)}, as g 1"
        if name == "npformer":
            return (
                "That is for the shell: q leaves the lesson and keeps the place, or take a second terminal."
            )
        return f"{line!r} is no command: ? lists them; !{line} runs it as Python."

    def _variable(self, name: str) -> str:
        """What `s NAME` shows; a dotted name, as cache.weights, is followed."""
        names = own(self.runner.namespace)
        if not name:
            all_names = [unbroken(describe(n, v)) for n, v in names.items()]
            return "   ".join(all_names) or "Nothing is defined yet: Enter runs the code."
        first, *rest = name.split(".")
        if first not in names:
            shown = self.lesson.steps[self.step].code
            if shown is not None and first in bound_names(shown.text):
                return f"{first} is what the code on the screen defines: press Enter first"
            close = difflib.get_close_matches(first, names, n=3, cutoff=0.4)
            there = f"there is {', '.join(close)}" if close else "s alone lists all names"
            return f"{first} is not defined at this step: {there}"
        value = names[first]
        for part in rest:
            if not hasattr(value, part):
                has = ", ".join(getattr(value, "_fields", ())) or "no parts with names"
                return f"{first} has no {part}: it has {has}"
            value = getattr(value, part)
        return in_full(name, value)


def _in_line(phrases: list[str]) -> str:
    """Phrases side by side, for rich; none is broken at the end of a line."""
    return escape("   ".join(map(unbroken, phrases)))
