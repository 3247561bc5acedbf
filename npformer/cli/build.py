"""npformer build: assemble a Transformer from your solved exercises, train it and translate with it."""

import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from npformer.cli.options import COUNT, SECONDS, Rule, add, needs
from npformer.cli.output import console, note
from npformer.cli.tasks import print_output, print_text
from npformer.errors import UserError
from npformer.escaping import printable, shell_word
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
from npformer.learn.tasks import Folder, find_folder

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
        where = self.arguments.dir
        return text if where == EXERCISES.folder else f"{text} --dir {shell_word(where)}"

    # The parts

    def show_parts(self) -> int:
        """Print whose each part is, and compare them with the package's. Return 1 if one is wrong."""
        out = console()
        out.print(styled(("The parts of your Transformer", "bold"), "\n"))
        out.print(self._table())
        limit = min(self.arguments.seconds, COMPARISON)
        findings = compare_parts(self.folder, self.parts, limit) if self.parts else []
        for finding in findings:
            self._show_finding(finding)
        wrong = [finding.part for finding in findings]
        right = [part.name for part in self.parts if part.name not in wrong]
        print_text("\n" + progress(right, len(right)))
        if self.parts and not findings:
            each = "your part" if len(right) == 1 else "each of your parts, and with all of them together"
            what = "Output, loss, every gradient, Adam and greedy search"
            print_text(f"{what} agree with the package's Transformer: with {each}.")
        reached = [(text, names) for names, text in MILESTONES if set(right).issuperset(names)]
        if reached:
            print_text("\nWhat works so far by your parts:")
        for text, names in reached:
            print_text(f"  ✓ {text} ({listed(list(names))})")
        if findings:
            return 1
        self._show_next()
        return 0

    def _table(self) -> Table:
        """Return the table of all parts: whose each one is, and the command of its next exercise."""
        table = plain_table("part", "whose", "to make it yours", wrapped=("to make it yours",))
        for part in PARTS:
            exercise = next_exercise(self.folder, part)
            if exercise is None:
                table.add_row(part.name, styled(("yours", "green")), "")
                continue
            solved = sum(self.folder.state(each) == "solved" for each in part.exercises)
            action = "start" if self.folder.state(exercise) == "not started" else "check"
            command = self.command(f"npformer exercise {action} {exercise.name}")
            progress = f" ({solved} of {len(part.names)} solved)" if solved else ""
            table.add_row(part.name, styled(("the package's", "dim")), command + progress)
        return table

    def _show_finding(self, finding: Finding) -> None:
        """Print which part is wrong, what differs, and what the grader says about its exercises."""
        name, it = ("your " + finding.part, "it") if finding.part != TOGETHER else (finding.part, "them")
        text = f".\nWith {it}, the Transformer is not the package's: {sentence(finding.verdict.message)}"
        console().print(styled(("\nWrong: " + name, "bold red"), text))
        print_output(finding.graded or finding.verdict)
        if finding.exercise is None or finding.graded is None:
            print_text(
                "The grader finds no mistake in its exercises: compare what the Transformer passes to them."
            )
            return
        print_text(f"The exercise {finding.exercise.name} is not correct any more:")
        for clue in (finding.graded.message, *finding.graded.clues):
            print_text(f"- {clue}")
        print_text("For a hint, run " + self.command(f"npformer exercise hint {finding.exercise.name}"))
        print_text(f"Until it is correct, the package's own {finding.part} takes its place.")

    def _show_next(self) -> None:
        """Print which parts are the package's own, and the next commands."""
        others, always = (
            self._others(),
            "The linear maps, the activation and the order of the layers are always",
        )
        whose = f"The package's own: {listed(others)}." if others else "All parts are yours."
        print_text(f"\n{whose} {always} the package's.")
        if not self.parts:
            exercise = next_exercise(self.folder, PARTS[0])
            name = PARTS[0].names[0] if exercise is None else exercise.name
            print_text("To begin, run " + self.command(f"npformer exercise start {name}"))
        elif not self.arguments.train and self.file.exists():
            print_text("To translate with it, run " + self.command(f'npformer build "{SAMPLE}"'))
        elif not self.arguments.train:
            print_text("To train it, which takes two minutes, run " + self.command("npformer build --train"))

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
            print_text(f"\nTraining in {steps:,} steps, on English-French sentences of up to {WORDS} words.")
            print_text(
                "Ctrl-C stops it. It is saved after each line below, and the same command goes on from there."
            )
            saved = begin_training(self.folder, self.parts, steps)
        elif saved.finished:
            print_text(f"It is trained already. To train it again, remove {printable(self.file)}")
            return
        else:
            print_text(f"\nGoing on with the training after step {saved.step:,}:")
        start = time.perf_counter()
        for each in train_rounds(self.folder, saved, self.arguments.seconds):
            seconds = time.perf_counter() - start
            print_text(
                f"  step {each.step:5,}  loss {each.loss:6.3f}  {seconds:4.0f} s  {SAMPLE} → {each.sample}"
            )
        pairs = held_out_pairs(HELD_OUT)
        found = self._translate(saved, [pair.english for pair in pairs])
        right = sum(one == pair.french for one, pair in zip(found, pairs, strict=True))
        text = f": {right} of {len(pairs)} sentences that it has not seen are exactly right."
        console().print(styled(("Your Transformer translates", "bold"), text))
        print_text(f"{len(self.parts)} of {len(PARTS)} parts are yours. Wrote {printable(self.file)}")
        print_text("To translate a sentence of yours, run " + self.command(f'npformer build "{SAMPLE}"'))

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
            note(f"the model does not know {shown}: it was not in the training")
        (translation,) = self._translate(saved, [text])
        if not translation:
            found = "the first token that greedy search finds"
            note(f"the translation is empty: {found} is the end of the sentence")
        console().print(styled((translation, "cyan")))
        if not saved.finished:
            made = f"{saved.step:,} of {saved.steps:,} steps"
            note(f"its training has made {made}: npformer build --train goes on")
        if others := self._others():
            note(f"the package's own parts: {listed(others)}")


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
        print_text(f"Your Transformer was stopped: {sentence(str(error))}")
        print_text("To check your files one by one, run " + build.command("npformer exercise check --all"))
        return 1
    finally:
        if folder.remark:
            note(folder.remark)
    return 0


def sentence(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends with a question mark."""
    return text if text.endswith("?") else text + "."
