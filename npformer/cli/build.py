"""npformer build: assemble a Transformer from your solved exercises, train it and translate with it."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from npformer.cli.options import COUNT, SECONDS, Rule, add, add_language, needs
from npformer.cli.output import console, note
from npformer.cli.tasks import print_output, print_text
from npformer.errors import UserError
from npformer.escaping import printable
from npformer.language import GRADER, phrase, say
from npformer.learn.capstone.compare import TOGETHER, Finding, compare_parts
from npformer.learn.capstone.functions import LearnersError
from npformer.learn.capstone.parts import MILESTONES, PARTS, Part, listed, next_exercise, own_parts, progress
from npformer.learn.capstone.saved import NAME, SavedTransformer, find_saved, fingerprint_of
from npformer.learn.capstone.training import (
    LONGEST,
    SAMPLE,
    STEPS,
    WORDS,
    begin_training,
    held_out_pairs,
    train_rounds,
    translate,
)
from npformer.learn.capstone.training import SECONDS as LIMIT
from npformer.learn.console import plain_table, styled
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks import Folder, find_folder, option_for

COMPARISON = 30.0  # the limit in seconds on the comparison of all parts, which takes about two
HELD_OUT = 100  # sentences that are translated after the training

EPILOG = """\
npformer build                        shows which parts are yours, and holds them against the package's
npformer build --train                trains the Transformer of these parts, and goes on after an interruption
npformer build "the dog is tired"     translates with the trained Transformer"""

RULES: tuple[Rule, ...] = (needs("--steps", "--train"),)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[sentence]", f"an English sentence to translate; it was trained on up to {WORDS} words")
    add(parser, "--train", "train the Transformer and save it")
    add(
        parser,
        "--dir FOLDER",
        "the folder of your exercises, in which it is saved too",
        default=EXERCISES.folder,
    )
    add(parser, "--steps", "with --train: the number of training steps", COUNT, default=STEPS)
    add(
        parser,
        "--seconds",
        "the time limit of your code in a round of training or a translation",
        SECONDS,
        default=LIMIT,
    )
    add_language(parser)


@dataclass(frozen=True)
class Build:
    """The Transformer of a learner.

    Attributes:
        arguments: The arguments of the command.
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.
    """

    arguments: Namespace
    folder: Folder
    parts: list[Part]

    @property
    def file(self) -> Path:
        """The file of the trained Transformer."""
        return self.folder.path / NAME

    def command(self, text: str) -> str:
        """Return a command with the option --dir if the folder is not the default."""
        return text + option_for(self.folder.path, EXERCISES.folder)

    # The parts

    def show_parts(self) -> int:
        """Print whose each part is, and compare them with the package's. Return 1 if one is wrong."""
        out = console()
        out.print(styled((say("The parts of your Transformer"), "bold"), "\n"))
        out.print(self._table())
        limit = min(self.arguments.seconds, COMPARISON)
        findings = compare_parts(self.folder, self.parts, limit) if self.parts else []
        for finding in findings:
            self._show_finding(finding)
        wrong = [finding.part for finding in findings]
        right = [part.name for part in self.parts if part.name not in wrong]
        print_text("\n" + progress(right, len(right)))
        if self.parts and not findings:
            many = say("each of your parts, and with all of them together")
            print_text(
                say(
                    "Output, loss, every gradient, Adam and greedy search agree with the package's "
                    "Transformer: with {each}.",
                    each=say("your part") if len(right) == 1 else many,
                )
            )
        reached = [(text, names) for names, text in MILESTONES if set(right).issuperset(names)]
        if reached:
            print_text("\n" + say("What works so far by your parts:"))
        for text, names in reached:
            print_text(f"  ✓ {phrase(text, GRADER)} ({listed(_shown(names))})")
        if findings:
            return 1
        self._show_next()
        return 0

    def _table(self) -> Table:
        """Return the table of all parts: whose each one is, and the command of its next exercise."""
        last = say("to make it yours")
        table = plain_table(say("part"), say("whose"), last, wrapped=(last,))
        for part in PARTS:
            exercise = next_exercise(self.folder, part)
            if exercise is None:
                table.add_row(*_shown([part.name]), styled((say("yours"), "green")), "")
                continue
            solved = sum(self.folder.state(each) == "solved" for each in part.exercises)
            action = "start" if self.folder.state(exercise) == "not started" else "check"
            command = self.command(f"npformer exercise {action} {exercise.name}")
            more = say(" ({solved} of {count} solved)", solved=solved, count=len(part.names))
            whose = styled((say("the package's"), "dim"))
            table.add_row(*_shown([part.name]), whose, command + more * bool(solved))
        return table

    def _show_finding(self, finding: Finding) -> None:
        """Print which part is wrong, what differs, and what the grader says about its exercises."""
        part, what = phrase(finding.part, GRADER), sentence(finding.verdict.message)
        if finding.part == TOGETHER:
            wrong = say("Wrong: {part}", part=part)
            text = say(".\nWith them, the Transformer is not the package's: {what}", what=what)
        else:
            wrong = say("Wrong: your {part}", part=part)
            text = say(".\nWith it, the Transformer is not the package's: {what}", what=what)
        console().print(styled((f"\n{wrong}", "bold red"), text))
        print_output(finding.graded or finding.verdict)
        if finding.exercise is None or finding.graded is None:
            print_text(
                say(
                    "The grader finds no mistake in its exercises: compare what the Transformer passes to "
                    "them."
                )
            )
            return
        name = finding.exercise.name
        print_text(say("The exercise {name} is not correct any more:", name=name))
        for clue in (finding.graded.message, *finding.graded.clues):
            print_text(f"- {clue}")
        print_text(say("For a hint, run {command}", command=self.command(f"npformer exercise hint {name}")))
        print_text(say("Until it is correct, the package's own {part} takes its place.", part=part))

    def _show_next(self) -> None:
        """Print which parts are the package's own, and the next commands."""
        others = _shown(self._others())
        own = say("The package's own: {parts}.", parts=listed(others)) if others else ""
        always = say("The linear maps, the activation and the order of the layers are always the package's.")
        print_text("\n" + say("{whose} {always}", whose=own or say("All parts are yours."), always=always))
        if not self.parts:
            exercise = next_exercise(self.folder, PARTS[0])
            name = PARTS[0].names[0] if exercise is None else exercise.name
            command = self.command(f"npformer exercise start {name}")
            print_text(say("To begin, run {command}", command=command))
        elif not self.arguments.train and self.file.exists():
            command = self.command(f'npformer build "{SAMPLE}"')
            print_text(say("To translate with it, run {command}", command=command))
        elif not self.arguments.train:
            command = self.command("npformer build --train")
            print_text(say("To train it, which takes two minutes, run {command}", command=command))

    def _others(self) -> list[str]:
        """Return the names of the parts that are the package's own."""
        own = {part.name for part in self.parts}
        return [part.name for part in PARTS if part.name not in own]

    # Training and translating

    def train(self) -> None:
        """Train the Transformer of these parts, or go on with its training.

        Raises:
            LearnersError: If the learner's code fails.
        """
        saved, steps = find_saved(self.folder.path), self.arguments.steps
        same = saved is not None and saved.fingerprint == fingerprint_of(self.folder, self.parts)
        if saved is None or not same or saved.steps != steps:
            begin = say(
                "Training in {steps:,} steps, on English-French sentences of up to {words} words.",
                steps=steps,
                words=WORDS,
            )
            print_text(f"\n{begin}")
            print_text(
                say(
                    "Ctrl-C stops it. It is saved after each line below, and the same command goes on from "
                    "there."
                )
            )
            saved = begin_training(self.folder, self.parts, steps)
        elif saved.finished:
            file = printable(self.file)
            print_text(say("It is trained already. To train it again, remove {file}", file=file))
            return
        else:
            print_text("\n" + say("Going on with the training after step {step:,}:", step=saved.step))
        start = time.perf_counter()
        for each in train_rounds(self.folder, saved, self.arguments.seconds):
            seconds = time.perf_counter() - start
            numbers = say("  step {step:5,}  loss {loss:6.3f}", step=each.step, loss=each.loss)
            print_text(f"{numbers}  {seconds:4.0f} s  {SAMPLE} → {each.sample}")
        pairs = held_out_pairs(HELD_OUT)
        found = self._translate(saved, [pair.english for pair in pairs])
        right = sum(one == pair.french for one, pair in zip(found, pairs, strict=True))
        text = say(
            ": {right} of {count} sentences that it has not seen are exactly right.",
            right=right,
            count=len(pairs),
        )
        console().print(styled((say("Your Transformer translates"), "bold"), text))
        yours = progress([], len(self.parts))
        print_text(say("{yours} Wrote {file}", yours=yours, file=printable(self.file)))
        command = self.command(f'npformer build "{SAMPLE}"')
        print_text(say("To translate a sentence of yours, run {command}", command=command))

    def _translate(self, saved: SavedTransformer, sentences: list[str]) -> list[str]:
        """Return the translations of English sentences."""
        names = [part.name for part in self.parts]
        return translate(self.folder, saved, names, sentences, self.arguments.seconds)

    def translate_sentence(self, text: str) -> None:
        """Translate the sentence of the command line.

        Raises:
            UserError: If there is no trained Transformer, or if the sentence is empty or too long.
            LearnersError: If the learner's code fails.
        """
        saved = find_saved(self.folder.path)
        if saved is None or not saved.tensors:
            train_command = self.command("npformer build --train")
            raise UserError(
                f"there is no trained Transformer in {self.arguments.dir}: {train_command} trains one"
            )
        source, _ = saved.codecs
        words = source.words(text)
        if not words:
            raise UserError(f"the sentence {text[:40]!r} is empty: write at least one word")
        if len(words) > LONGEST:
            raise UserError(f"the sentence has {len(words)} words: give at most {LONGEST}")
        unknown = source.vocabulary.unknown(words)
        if unknown:
            shown = listed([word[:40] for word in unknown])
            note(say("the model does not know {words}: it was not in the training", words=shown))
        (translation,) = self._translate(saved, [text])
        if not translation:
            note(
                say(
                    "the translation is empty: the first token that greedy search finds is the end of the "
                    "sentence"
                )
            )
        console().print(styled((translation, "cyan")))
        if not saved.finished:
            note(
                say(
                    "its training has made {step:,} of {steps:,} steps: npformer build --train goes on",
                    step=saved.step,
                    steps=saved.steps,
                )
            )
        if others := self._others():
            note(say("the package's own parts: {parts}", parts=listed(_shown(others))))


def run(arguments: Namespace) -> int:
    """Show the parts, train or translate. Return 0, or 1 if a part of the learner is wrong."""
    folder = Folder(find_folder(arguments.dir))
    if folder.path.exists() and not folder.path.is_dir():
        raise UserError(f"{printable(folder.path)} is a file: give the folder of your exercises with --dir")
    build = Build(arguments, folder, own_parts(folder))
    if arguments.train and not build.parts:
        raise UserError(
            "no part is yours yet, so there is nothing to train: "
            f"{build.command('npformer build')} lists the exercises"
        )
    try:
        if arguments.sentence is None or arguments.train:
            status = build.show_parts()
            if status == 0 and arguments.train:
                build.train()
            if status or arguments.sentence is None:
                return status
        build.translate_sentence(arguments.sentence)
    except LearnersError as error:
        print_text(say("Your Transformer was stopped: {why}", why=sentence(str(error))))
        command = build.command("npformer exercise check --all")
        print_text(say("To check your files one by one, run {command}", command=command))
        return 1
    finally:
        if folder.remark:
            note(folder.remark)
    return 0


def _shown(parts: Sequence[str]) -> list[str]:
    """Return the names of parts in the current language."""
    return [phrase(part, GRADER) for part in parts]


def sentence(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends with a question mark."""
    return text if text.endswith(("?", "？")) else say("{text}.", text=text)
