"""npformer translate: sentences in, one line of translation for each."""

import sys
from pathlib import Path

from npformer.backend import choose_backend
from npformer.decoding import Translator
from npformer.errors import UserError
from npformer.terminal import note
from npformer.training import load_checkpoint


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="what to translate (default: the lines of standard input)",
    )
    parser.add_argument("--run", help="the run to translate with (default: the one trained last)")
    parser.add_argument("--last", action="store_true", help="its last checkpoint, not its best")
    parser.add_argument("--beam", type=int, default=4, help="hypotheses kept; 1 is greedy search (4)")
    parser.add_argument("--length-penalty", type=float, default=0.6, help="exponent of the length norm (0.6)")
    parser.add_argument("--backend", choices=("numpy", "cupy", "auto"), default="auto", help="(auto)")


def run(arguments) -> int:
    """Returns 0."""
    translator = open_translator(arguments.run, last=arguments.last, backend=arguments.backend)
    settings = {"beam": arguments.beam, "length_penalty": arguments.length_penalty}
    if arguments.sentences:
        translate_lines(translator, arguments.sentences, settings)
    elif sys.stdin.isatty():
        converse(translator, settings)
    else:
        translate_lines(translator, read_standard_input(), settings)
    return 0


def converse(translator: Translator, settings: dict) -> None:
    """Translate what a person types, line by line; a mistake is told, and the next line is read."""
    note("type a sentence and press Enter; Ctrl-D ends")
    for number, line in enumerate(sys.stdin, 1):
        try:
            translate_lines(translator, [line.rstrip("\n")], settings, number)
        except UserError as error:
            note(str(error))


def translate_lines(translator: Translator, lines: list[str], settings: dict, first_line: int = 1) -> None:
    """Print a line for each line; words that the model does not know are told beside."""
    translations = translator.translate(lines, first_line=first_line, **settings)
    for number, line in enumerate(lines, first_line):
        unknown = translator.unknown_words(line)
        if unknown:
            words = ", ".join(repr(word) for word in unknown)
            note(f"line {number}: the model does not know {words} and reads <UNK> in place")
    for translation in translations:
        print(translation, flush=True)


def read_standard_input() -> list[str]:
    """All lines of standard input. Errors: UserError for bytes that are not UTF-8, with the line."""
    lines = []
    for number, raw in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
        try:
            lines.append(raw.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError:
            raise UserError(f"standard input, line {number}, is not valid UTF-8: convert it first") from None
    if lines and not lines[-1]:
        lines.pop()  # the end of the last line
    if not lines:
        raise UserError("standard input is empty: give sentences, one a line")
    return lines


def open_translator(run: str | None, *, last: bool = False, backend: str = "auto") -> Translator:
    """The translator of a run, or of the run trained last.

    Errors: UserError where there is no run, or its checkpoint is broken.
    """
    folder = Path(run) if run else newest_run()
    path = folder / ("last.safetensors" if last else "best.safetensors")
    if not folder.is_dir():
        raise UserError(f"there is no run {folder}: train one with npformer train --run {folder}")
    if not path.exists() and not last:
        path = folder / "last.safetensors"  # a run stopped before its first validation
    checkpoint = load_checkpoint(path)
    return Translator(checkpoint.model(choose_backend(backend)), checkpoint.source, checkpoint.target)


def newest_run() -> Path:
    """The run whose checkpoint was written last, among those below runs/ and tour/."""
    checkpoints = [*Path("runs").glob("*/last.safetensors"), *Path("tour").glob("*/last.safetensors")]
    if not checkpoints:
        raise UserError("there is no run below runs/ or tour/: train one with npformer train, or give --run")
    return max(checkpoints, key=lambda path: path.stat().st_mtime).parent
