"""The command line: npformer COMMAND ...

Each command is a module of npformer.commands with add_arguments(parser) and run(arguments) -> status.
"""

import argparse
import importlib
import os
import sys

from npformer import __version__
from npformer.errors import UserError

COMMANDS = {
    "tour": "train a small translator, check every gradient, draw what attention does: start here",
    "lesson": "step through a lesson of the course, or write it as a notebook or a page",
    "lessons": "list the lessons, with minutes and progress",
    "train": "train a model on the built-in corpus, on two files of your own, or on a toy task",
    "data": "fetch a corpus to train on: Multi30k, captions in English, German and French",
    "curves": "draw how a training run went: loss, BLEU, learning rate and speed over its minutes",
    "translate": "translate sentences with a trained model",
    "score": "translate a set of sentences and count BLEU against references",
    "pretrained": "list the translators that ship, or make such a file from a run of yours",
    "attention": "draw where a trained model looks in a sentence of yours",
    "figures": "draw the figures of the documents, all or some, from real tensors",
    "masks": "lay masks over your own words: before and after the softmax, and a test for leaks",
    "gradcheck": "check the gradients of every component, or of a layer of your own",
    "exercise": "write a backward pass, a mask or a search yourself, and have it graded",
    "bugs": "find and repair bugs that real projects shipped, in code that looks right",
    "family": "the attention family side by side, its gradients checked now; trained and compared",
    "bench": "measure the training step: beside PyTorch, beside its matrix products, and where its time goes",
    "index": "from an equation of the paper or a passage of the documents to lesson, file and line",
    "glossary": "the words of the course, each in a sentence",
}


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit status: 0, 1 where a check failed, 2 for a user's mistake."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        arguments = _parser(argv).parse_args(argv)
        if arguments.command is None:
            _parser([]).print_help()
            return 0
        return _module(arguments.command).run(arguments)
    except UserError as error:
        print(f"npformer: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("npformer: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `head` does: nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(argv: list[str]) -> argparse.ArgumentParser:
    """The parser; only the command that is asked for is imported, so that --help is quick."""
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
    return parser


def _module(name: str):
    return importlib.import_module(f"npformer.commands.{name}")


if __name__ == "__main__":
    sys.exit(main())
