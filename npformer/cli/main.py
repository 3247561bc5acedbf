"""The command line: npformer COMMAND ...

Each command is a module of npformer.cli with `add_arguments(parser)` and `run(arguments)`, which returns
the exit status.
"""

import argparse
import errno
import importlib
import os
import sys
from types import ModuleType

from npformer import __version__
from npformer.cli.output import guard_streams, note
from npformer.errors import UserError

COMMANDS = {
    "tour": "train a small translator, check every gradient and draw attention maps: start here",
    "lesson": "step through a lesson of the course, or write it as a notebook or a page",
    "lessons": "list the lessons of the course, with their length and your progress",
    "train": "train a model on the built-in corpus, on two files of your own, or on a toy task",
    "data": "download a corpus to train on: Multi30k, captions in English, German and French",
    "curves": "draw the curves of a training run: loss, BLEU, learning rate and speed",
    "translate": "translate sentences with a trained model",
    "score": "translate a set of sentences and compute BLEU against references",
    "pretrained": "list the translators that ship, or export a run of yours as such a file",
    "attention": "draw the attention weights of a trained model for a sentence of yours",
    "figures": "draw the figures of the documents, all or some, from real tensors",
    "masks": "apply masks to a sentence of yours: scores, weights, and a test for leaks",
    "gradcheck": "check the gradients of every component, or of a layer of your own",
    "exercise": "write a backward pass, a mask or a search yourself, and have it graded",
    "bugs": "find and repair bugs that real projects shipped, in code that looks right",
    "family": "compare the members of the attention family, and check their gradients",
    "bench": "measure the speed and the memory of the training step, alone or beside PyTorch",
    "index": "find the lesson and the code of an equation of the paper or a passage of the documents",
    "glossary": "explain the terms of the course, each in a sentence",
}

# the new names of options of earlier versions, by command and old name
RENAMED = {("train", "--recipe"): "--preset", ("train", "--model"): "--architecture"} | {
    (command, old): "--model"
    for command in ("attention", "figures", "masks", "score", "translate")
    for old in ("--run", "--pretrained")
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 if a check failed, or 2 for a user's mistake."""
    argv = sys.argv[1:] if argv is None else argv
    return guard_streams(lambda: _run(argv))


def _run(argv: list[str]) -> int:
    """Run one command and return its exit status, with one sentence on standard error if it failed."""
    try:
        refuse_empty(argv)
        arguments, unknown = _parser(argv).parse_known_args(argv)
        if unknown:
            raise UserError(_unknown(unknown[0], arguments.command))
        if arguments.command is None:
            _parser([]).print_help()
            return 0
        status: int = _module(arguments.command).run(arguments)
        return status
    except UserError as error:
        note(str(error))
        return 2
    except OSError as error:  # nothing more is known of it here
        note(_refused(error))
        return 2
    except KeyboardInterrupt:
        note("stopped")
        return 130


def refuse_empty(argv: list[str]) -> None:
    """Raise UserError for an empty argument, which a command would take for one that was not given.

    An empty variable of the shell makes one, as in --model "$run".
    """
    if "" in argv:
        before = argv[: argv.index("")]
        where = f"the argument after {before[-1]}" if before else "the first argument"
        raise UserError(f"{where} is empty: give a name or a text, or leave it out")


def _refused(error: OSError) -> str:
    """Return the message for something that the system refused, such as a name that is too long."""
    try:
        os.getcwd()
    except OSError:
        return "the working folder does not exist any more: change to another one"
    why = error.strerror or str(error)
    if error.errno == errno.EMFILE:
        return f"the system allows no more open files ({why}): raise the limit, as with ulimit -n 256"
    where = "a file cannot be used" if error.filename is None else f"{error.filename} cannot be used"
    return f"{where} ({why}): check its name and its permissions, or give another one"


def _parser(argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser. Only the command that is asked for is imported, so that --help is quick."""
    parser = argparse.ArgumentParser(
        prog="npformer",
        description="The Transformer from scratch in NumPy: every backward pass by hand, and checked.",
        epilog="The course begins with npformer lesson 0. Each command takes --help.",
    )
    parser.add_argument("--version", action="version", version=f"npformer {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name in argv:
            _module(name).add_arguments(command)
            if command.epilog:  # its examples keep their lines
                command.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _unknown(argument: str, command: str | None) -> str:
    """Return the message for an argument that a command does not have."""
    name = f"npformer {command}" if command else "npformer"
    renamed = RENAMED.get((command or "", argument.partition("=")[0]))
    if renamed:
        return f"{name} has no argument {argument}: it is now called {renamed}"
    return f"{name} has no argument {argument}: {name} --help lists all arguments"


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"npformer.cli.{name}")


if __name__ == "__main__":
    sys.exit(main())
