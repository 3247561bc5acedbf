"""The command line: npformer COMMAND ...

Each command is a module of npformer.cli with `add_arguments(parser)` and `run(arguments)`, which returns its
exit status. It may have `RULES` that say which options go together, and an `EPILOG`, which ends its help.
"""

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from npformer.cli.help_text import HelpFormatter
from npformer.cli.options import Arguments, Parser
from npformer.cli.output import guard_streams, note
from npformer.cli.signals import stopped, was_stopped
from npformer.errors import UserError, nearest
from npformer.language import ENGLISH, language_for, speaking
from npformer.version import __version__

COMMANDS = {
    "tour": "train a small translator, check every gradient and draw attention maps: start here",
    "lesson": "step through a lesson of the course, or write it as a notebook or a page",
    "lessons": "list the lessons of the course, with their length and your progress",
    "train": "train a translator on pairs of sentences, a language model on one text, or one that fills gaps",
    "data": "download a corpus to train on: Multi30k, captions in English, German and French",
    "curves": "draw the curves of a training run: loss, BLEU, learning rate and speed",
    "translate": "translate sentences with a trained model",
    "generate": "continue a text with a trained language model, as it is written",
    "fill": "find the words for the gaps of a sentence with a trained masked language model",
    "score": "translate a set of sentences and compute BLEU against references",
    "pretrained": "list the translators that ship, or export a run of yours as such a file",
    "inspect": "show what a model is made of: configuration, layers, parameters and memory",
    "attention": "draw the attention weights of a trained model for a sentence of yours",
    "explore": "write a page to follow every number of a model, forward and backward, in a browser",
    "saliency": "show how much each token that a model reads contributes to a token that it predicts",
    "lens": "show what a model would predict after each of its layers, and what each part adds to a logit",
    "patch": "find the activation that carries the difference between two sentences",
    "figures": "draw the figures of the source documents and of the course, all or some, from real tensors",
    "masks": "apply masks to a sentence of yours: scores, weights, and a test for leaks",
    "gradcheck": "check the gradients of every component, of a layer of your own, or of a trained model",
    "site": "write the whole course, the explorer and the glossary as pages that work offline",
    "exercise": "solve exercises: write a backward pass, a mask or a search, and have it graded",
    "bugs": "find and repair bugs that occurred in real projects, in code that looks correct",
    "build": "assemble a Transformer from your solved exercises, train it and translate with it",
    "class": "for teachers: write assignments from the exercises, and grade the submissions of a class",
    "family": "compare the members of the attention family, and check their gradients",
    "experiment": "repeat an experiment of the course that trains many small GPTs",
    "bench": "measure the speed and the memory of the training step, alone or beside PyTorch",
    "index": "find the lesson and the code of an equation of the paper or a passage of the source documents",
    "glossary": "define the terms of the course, with formulas and shapes",
}

MODULES = {"class": "classroom"}  # of npformer.cli, where the name of a command is a word of Python


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 if a check failed, or 2 for a user's mistake."""
    argv = sys.argv[1:] if argv is None else argv
    return guard_streams(lambda: _run(argv))


def _run(argv: list[str]) -> int:
    """Run one command and return its exit status, with one sentence on standard error if it failed."""
    try:
        refuse_empty(argv)
        return _run_command(argv)
    except BaseException as error:
        if was_stopped() or isinstance(error, KeyboardInterrupt):
            return stopped()
        sentence = sentence_for(error)
        if sentence is None:
            raise
        note(sentence)
        return 2


def _run_command(argv: list[str]) -> int:
    """Read the command line and run its command, in the reader's language if the command has --language."""
    if not argv or argv[0].startswith("-"):
        return _run_without_command(argv)
    command, arguments = read_command_line(argv)
    language = language_for(arguments.language) if "language" in arguments else ENGLISH
    with speaking(language):
        status: int = command.run(arguments)
    return status


def refuse_empty(argv: Sequence[str]) -> None:
    """Raise UserError for an empty argument, which a command would take for one that was not given.

    An empty variable of the shell makes one, as in --model "$run".
    """
    if "" in argv:
        before = argv[: argv.index("")]
        where = f"the argument after {before[-1]}" if before else "the first argument"
        raise UserError(f"{where} is empty: give a name or a text, or leave it out")


def read_command_line(argv: Sequence[str]) -> tuple[ModuleType, Arguments]:
    """Return the module of a command and its arguments.

    Raises:
        UserError: If there is no such command, or if its arguments are impossible.
    """
    name, *others = argv
    if name not in COMMANDS:
        near = nearest(name, COMMANDS)
        hint = f"did you mean {near}?" if near else "npformer --help lists all commands"
        raise UserError(f"there is no command {name!r}: {hint}")
    command = load_command(name)
    return command, make_parser(name).parse(others)


def load_command(name: str) -> ModuleType:
    """Import the module of a command. Only that one is imported, so that the others cost no time."""
    return importlib.import_module(f"npformer.cli.{MODULES.get(name, name)}")


def make_parser(name: str) -> Parser:
    """Return the parser of a command, with its rules."""
    command, text = load_command(name), COMMANDS[name]
    parser = Parser(
        f"npformer {name}",
        rules=getattr(command, "RULES", ()),
        epilog=getattr(command, "EPILOG", None),
        description=text[0].upper() + text[1:] + ".",
    )
    command.add_arguments(parser)
    parser.name_defaults()
    parser.formatter_class = HelpFormatter
    return parser


def _run_without_command(argv: Sequence[str]) -> int:
    """Print the version, or all commands. Return 0."""
    parser = Parser(
        "npformer",
        description="The Transformer from scratch in NumPy: every backward pass by hand, and checked.",
        epilog="The course begins with npformer lesson 0. Each command takes --help.",
    )
    parser.add_argument("--version", action="version", version=f"npformer {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=False)
    for name, text in COMMANDS.items():
        commands.add_parser(name, prog=f"npformer {name}", help=text)
    parser.parse(argv)
    parser.print_help()
    return 0


def sentence_for(error: BaseException) -> str | None:
    """Return the sentence for an error that the user or the machine caused. None means a bug of npformer."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, MemoryError):
        what = f" ({error})" if str(error) else ""
        return f"there is not enough memory{what}: use a smaller model, fewer sentences or shorter ones"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply: write it with fewer brackets"
    if isinstance(error, UnicodeDecodeError):
        where = f"byte 0x{error.object[error.start]:02x} at place {error.start}"
        return f"a text is not valid {error.encoding} ({where}): convert it to UTF-8"
    if isinstance(error, UnicodeEncodeError):
        character = ascii(error.object[error.start])
        return f"the character {character} cannot be written as {error.encoding}: leave it out, or use UTF-8"
    return _refused(error) if isinstance(error, OSError) and error.strerror else None


def _refused(error: OSError) -> str:
    """Return the sentence for something that the system refused, such as a name that is too long."""
    try:
        os.getcwd()
    except OSError:
        return "the working folder does not exist any more: change to another one"
    if error.errno == errno.EMFILE:
        why = error.strerror
        return f"the system allows no more open files ({why}): raise the limit, as with ulimit -n 256"
    path = "a file" if error.filename is None else os.fsdecode(error.filename)
    return f"{path} cannot be read or written ({error.strerror}): check the place and its free space"
