"""npformer build: assemble a Transformer from your solved exercises, train it and translate with it."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from rich.table import Table

from npformer.cli.options import COUNT, SECONDS, Rule, needs
from npformer.cli.output import console, note
from npformer.cli.tasks import PRINTED_LINES, say
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
    parser.add_argument(
        "sentence", nargs="?", help=f"an English sentence to translate; it was trained on up to {WORDS} words"
    )
    parser.add_argument("--train", action="store_true", help="train the Transformer and save it")
    parser.add_argument(
        "--dir",
        default=EXERCISES.folder,
        metavar="FOLDER",
        help="the folder of your exercises, in which it is saved too",
    )
    parser.add_argument(
        "--steps",
        type=COUNT,
        default=STEPS,
        help="with --train: the number of training steps",
    )
    parser.add_argument(
        "--seconds",
        type=SECONDS,
        default=LIMIT,
        help="the time limit of your code in a round of training or a translation",
    )


def run(arguments: Namespace) -> int:
    """Show the parts, train or translate. Return 0, or 1 if a part of the learner is wrong."""
    folder = Folder(find_folder(arguments.dir))
    if folder.path.exists() and not folder.path.is_dir():
        raise UserError(f"{printable(folder.path)} is a file: give the folder of your exercises with --dir")
    parts = own_parts(folder)
    if arguments.train and not parts:
        raise UserError(
            "no part is yours yet, so there is nothing to train: "
            f"{_with_folder('npformer build', arguments)} lists the exercises"
        )
    try:
        if arguments.sentence is None or arguments.train:
            status = show_parts(arguments, folder, parts)
            if status == 0 and arguments.train:
                train(arguments, folder, parts)
            if status or arguments.sentence is None:
                return status
        translate_sentence(arguments, folder, parts)
    except LearnersError as error:
        say(f"Your Transformer was stopped: {sentence(str(error))}")
        say("To check your files one by one, run " + _with_folder("npformer exercise check --all", arguments))
        return 1
    finally:
        if folder.remark:
            note(folder.remark)
    return 0


def sentence(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends with a question mark."""
    return text if text.endswith("?") else text + "."


def _with_folder(command: str, arguments: Namespace) -> str:
    """Return a command with the option --dir if the folder is not the default."""
    where = "" if arguments.dir == EXERCISES.folder else f" --dir {shell_word(arguments.dir)}"
    return command + where


# ---------------------------------------------------------------------------------------------------------
# The parts


def show_parts(arguments: Namespace, folder: Folder, parts: Sequence[Part]) -> int:
    """Print whose each part is, and compare the learner's with the package's. Return 0, or 1 if one is wrong.

    Args:
        arguments: The arguments of the command.
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.
    """
    out = console()
    out.print(styled(("The parts of your Transformer", "bold"), "\n"))
    out.print(_table(arguments, folder))
    limit = min(arguments.seconds, COMPARISON)
    findings = compare_parts(folder, parts, limit) if parts else []
    for finding in findings:
        show_finding(arguments, finding)
    wrong = [finding.part for finding in findings]
    right = [part for part in parts if part.name not in wrong]
    say("\n" + progress([part.name for part in right], len(right)))
    if findings:
        _show_milestones(right)
        return 1
    if parts:
        say(
            "Output, loss, every gradient, Adam and greedy search agree with the package's Transformer: with "
            + ("your part." if len(parts) == 1 else "each of your parts, and with all of them together.")
        )
    _show_milestones(right)
    _show_next(arguments, folder, parts)
    return 0


def _table(arguments: Namespace, folder: Folder) -> Table:
    """Return the table of all parts: whose each one is, and the command of its next exercise."""
    table = plain_table("part", "whose", "to make it yours", wrapped=("to make it yours",))
    for part in PARTS:
        exercise = next_exercise(folder, part)
        if exercise is None:
            table.add_row(part.name, styled(("yours", "green")), "")
            continue
        solved = sum(folder.state(each) == "solved" for each in part.exercises)
        action = "start" if folder.state(exercise) == "not started" else "check"
        command = _with_folder(f"npformer exercise {action} {exercise.name}", arguments)
        progress = f" ({solved} of {len(part.names)} solved)" if solved else ""
        table.add_row(part.name, styled(("the package's", "dim")), command + progress)
    return table


def show_finding(arguments: Namespace, finding: Finding) -> None:
    """Print which part is wrong, what differs, and what the grader says about its exercises.

    Args:
        arguments: The arguments of the command.
        finding: The wrong part.
    """
    name = finding.part if finding.part == TOGETHER else f"your {finding.part}"
    text = f"\nWith {'them' if finding.part == TOGETHER else 'it'}, the Transformer is not the package's: "
    console().print(styled(("\nWrong: " + name, "bold red"), "." + text + sentence(finding.verdict.message)))
    printed = (finding.graded or finding.verdict).printed
    if printed:
        say("Your code printed:")
        say("\n".join("  " + line for line in printed.splitlines()[:PRINTED_LINES]))
    if finding.exercise is None or finding.graded is None:
        say("The grader finds no mistake in its exercises: compare what the Transformer passes to them.")
        return
    say(f"The exercise {finding.exercise.name} is not correct any more:")
    for clue in (finding.graded.message, *finding.graded.clues):
        say(f"- {clue}")
    hint = _with_folder(f"npformer exercise hint {finding.exercise.name}", arguments)
    say(f"For a hint, run {hint}")
    say(f"Until it is correct, the package's own {finding.part} takes its place.")


def _show_milestones(parts: Sequence[Part]) -> None:
    """Print what works by the learner's parts, and by which.

    Args:
        parts: The parts that are the learner's and right.
    """
    own = {part.name for part in parts}
    reached = [(text, names) for names, text in MILESTONES if own.issuperset(names)]
    if reached:
        say("\nWhat works so far by your parts:")
    for text, names in reached:
        say(f"  ✓ {text} ({listed(list(names))})")


def _show_next(arguments: Namespace, folder: Folder, parts: Sequence[Part]) -> None:
    """Print which parts are the package's own, and the next commands.

    Args:
        arguments: The arguments of the command.
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.
    """
    say("\n" + _whose(parts))
    if not parts:
        exercise = next_exercise(folder, PARTS[0])
        name = PARTS[0].names[0] if exercise is None else exercise.name
        say(f"To begin, run {_with_folder(f'npformer exercise start {name}', arguments)}")
        return
    if (folder.path / NAME).exists() and not arguments.train:
        command = f'npformer build "{SAMPLE}"'
        say(f"To translate with it, run {_with_folder(command, arguments)}")
    elif not arguments.train:
        say(f"To train it, which takes two minutes, run {_with_folder('npformer build --train', arguments)}")


def _whose(parts: Sequence[Part]) -> str:
    """Return a sentence that names the parts that are the package's own."""
    own = {part.name for part in parts}
    others = [part.name for part in PARTS if part.name not in own]
    always = "The linear maps, the activation and the order of the layers are always the package's."
    return f"The package's own: {listed(others)}. {always}" if others else f"All parts are yours. {always}"


# ---------------------------------------------------------------------------------------------------------
# Training and translating


def train(arguments: Namespace, folder: Folder, parts: Sequence[Part]) -> None:
    """Train the Transformer of these parts, or go on with its training.

    Args:
        arguments: The arguments of the command.
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.

    Raises:
        LearnersError: If the learner's code fails.
    """
    saved = find_saved(folder.path)
    same = saved is not None and saved.fingerprint == fingerprint_of(folder, parts)
    if saved is None or not same or saved.steps != arguments.steps:
        say(f"\nTraining in {arguments.steps:,} steps, on English-French sentences of up to {WORDS} words.")
        say("Ctrl-C stops it. It is saved after each line below, and the same command goes on from there.")
        saved = begin_training(folder, parts, arguments.steps)
    elif saved.finished:
        say(f"It is trained already. To train it again, remove {printable(folder.path / NAME)}")
        return
    else:
        say(f"\nGoing on with the training after step {saved.step:,}:")
    start = time.perf_counter()
    for each in train_rounds(folder, saved, arguments.seconds):
        seconds = time.perf_counter() - start
        say(f"  step {each.step:5,}  loss {each.loss:6.3f}  {seconds:4.0f} s  {SAMPLE} → {each.sample}")
    _show_accuracy(arguments, folder, parts, saved)


def _show_accuracy(
    arguments: Namespace, folder: Folder, parts: Sequence[Part], saved: SavedTransformer
) -> None:
    """Translate sentences that were not in training, and print how many are right.

    Args:
        arguments: The arguments of the command.
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.
        saved: The trained Transformer.
    """
    pairs = held_out_pairs(HELD_OUT)
    names = [part.name for part in parts]
    found = translate(folder, saved, names, [pair.english for pair in pairs], arguments.seconds)
    right = sum(one == pair.french for one, pair in zip(found, pairs, strict=True))
    console().print(
        styled(
            ("Your Transformer translates", "bold"),
            f": {right} of {len(pairs)} sentences that it has not seen are exactly right.",
        )
    )
    say(f"{len(parts)} of {len(PARTS)} parts are yours. Wrote {printable(folder.path / NAME)}")
    command = f'npformer build "{SAMPLE}"'
    say(f"To translate a sentence of yours, run {_with_folder(command, arguments)}")


def translate_sentence(arguments: Namespace, folder: Folder, parts: Sequence[Part]) -> None:
    """Translate the sentence of the command line.

    Args:
        arguments: The arguments of the command.
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.

    Raises:
        UserError: If there is no trained Transformer, or if the sentence is empty or too long.
        LearnersError: If the learner's code fails.
    """
    saved = find_saved(folder.path)
    if saved is None or not saved.tensors:
        train_command = _with_folder("npformer build --train", arguments)
        raise UserError(f"there is no trained Transformer in {arguments.dir}: {train_command} trains one")
    source, _ = saved.codecs
    words = source.words(arguments.sentence)
    if not words:
        raise UserError(f"the sentence {arguments.sentence[:40]!r} is empty: write at least one word")
    if len(words) > LONGEST:
        raise UserError(f"the sentence has {len(words)} words: give at most {LONGEST}")
    unknown = source.vocabulary.unknown(words)
    if unknown:
        note(f"the model does not know {listed([word[:40] for word in unknown])}: it was not in the training")
    names = [part.name for part in parts]
    (translation,) = translate(folder, saved, names, [arguments.sentence], arguments.seconds)
    if not translation:
        note("the translation is empty: the first token that greedy search finds is the end of the sentence")
    out = console()
    out.print(styled((translation, "cyan")))
    if not saved.finished:
        note(f"its training has made {saved.step:,} of {saved.steps:,} steps: npformer build --train goes on")
    others = [part.name for part in PARTS if part.name not in names]
    if others:
        note(f"the package's own parts: {listed(others)}")
