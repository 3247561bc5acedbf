"""npformer masks: the mask lab. Apply masks to a sentence, draw scores and weights, and test for leaks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from npformer.checking.leaks import describe_leaks
from npformer.cli.limits import require_labels
from npformer.cli.load_model import add_model_arguments, load_kind
from npformer.cli.mask_bench import MISTAKES, MaskLab, Seen, TokenSequence
from npformer.cli.options import INDEX, SEED, add, excludes, needs, only_if
from npformer.cli.output import console, note, print_line
from npformer.cli.pictures import note_missing_fonts
from npformer.data import END, START, Codec, TextCodec
from npformer.errors import UserError
from npformer.learn.course.terminal_pictures import print_pictures
from npformer.models.registry import require_transformer
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.pretrained import Translator
from npformer.storage.atomic import make_folder

if TYPE_CHECKING:
    from npformer.plots import Figure

EXAMPLE = "je suis étudiant"

RULES = (
    excludes("--cross", "--window --causal", "these count positions within one sentence"),
    needs("--last", "--model"),
    excludes("--model", "--seed", "a trained model has its weights"),
    only_if(
        "--mistake",
        lambda arguments: arguments.mistake != "shifted" or arguments.causal,
        "with --causal, whose mask it changes",
        "give that as well, or choose another one",
    ),
    only_if(
        "--mistake",
        lambda arguments: arguments.mistake == "shifted" or arguments.pad > 0,
        "with --pad, whose mask it changes",
        "give --pad 1 or more as well, or choose another one",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[sentence]", f"the words of the queries (default: {EXAMPLE!r})", metavar="SENTENCE")
    add(parser, "--pad N", "add N padding keys at the end", INDEX, default=0)
    add(parser, "--causal", "a word attends to itself and the words before it")
    add(parser, "--window N", "a word attends to N positions on either side", INDEX)
    add(parser, "--cross SENTENCE", "the words of the keys: attention between two sentences")
    add_model_arguments(parser, default="untrained weights")
    add(parser, "--layer", "the layer", INDEX, default=0)
    add(parser, "--head", "the head", INDEX, default=0)
    add(parser, "--seed", "the seed of untrained weights", SEED, default=0)
    add(parser, "--mistake", "; ".join(f"{name}: {what}" for name, what in MISTAKES.items()), MISTAKES)
    add(parser, "--out FOLDER", "the folder to write to", default="masks")


def run(arguments: Namespace) -> int:
    """Draw the masks and test for leaks. Return 0, or 1 if the mask leaks."""
    if arguments.sentence is None:
        show_example(arguments)
    check(arguments)
    seen = MaskLab(*open_model(arguments), arguments).attend()
    pictures = draw(seen, Path(arguments.out))
    note_missing_fonts([*seen.queries, *seen.keys])
    for _, path in pictures:
        print_line(f"wrote {path}")
    print_pictures(console(), pictures)
    if seen.hidden:
        print_line(f"hidden: {', '.join(map(repr, seen.hidden))}, which some query should see")
    if len(seen.leaks):
        print_line(f"leak: {describe_leaks(seen.leaks)}")
        return 1
    print_line("no leak: no output moves, not by a single bit, with a token that the mask forbids")
    return 0


def show_example(arguments: Namespace) -> None:
    """Set the example sentence of the source documents and two masks if none was given."""
    arguments.sentence = EXAMPLE
    masked = bool(arguments.given & {"pad", "causal", "window", "cross"})
    if not masked:
        arguments.pad, arguments.causal = 2, True
    note(
        f'no sentence was given, so this is an example: "{EXAMPLE}"' + ("" if masked else " --pad 2 --causal")
    )


def check(arguments: Namespace) -> None:
    """Raise UserError for a sentence that is empty or has no room in a picture."""
    for name, given in (("sentence", arguments.sentence), ("sentence of --cross", arguments.cross)):
        if given is not None and not given.split():
            raise UserError(f"the {name} is empty: write at least one word")
    cross = arguments.cross is not None
    keys = len((arguments.cross if cross else arguments.sentence).split()) + arguments.pad
    queries = len(arguments.sentence.split()) if cross else keys
    require_labels(queries, keys, "give fewer words, or a smaller --pad")


def open_model(arguments: Namespace) -> tuple[Transformer, TokenSequence, TokenSequence]:
    """Return the model, trained or not, with the words of the queries and the padded words of the keys."""
    trained, cross = arguments.model is not None, arguments.cross is not None
    source: Codec
    target: Codec
    if trained:
        loaded = load_kind(Translator, arguments)
        require_transformer(loaded.model.config, "the mask lab needs")
        assert isinstance(loaded.model, Transformer)
        model, (source, target) = loaded.model, loaded.codec
    else:
        texts = [arguments.sentence, arguments.cross or ""]
        source = target = TextCodec.from_lines(texts, lowercase=False)
        model = untrained(len(source.vocabulary), arguments)
    end = ("</S>", END) if trained else None  # a trained model has read every source with its end
    if not cross and not arguments.causal:
        queries = read(source, arguments.sentence, after=end)
    else:
        queries = read(target, arguments.sentence, before=("<S>", START) if trained else None)
    keys = (read(source, arguments.cross, after=end) if cross else queries).padded(arguments.pad)
    for side in (queries, keys):
        if len(side.tokens) > model.config.max_length:
            raise UserError(
                f"that makes {len(side.tokens)} words, and the model's limit is {model.config.max_length}: "
                "give fewer"
            )
    return model, queries if cross else keys, keys


def untrained(vocab_size: int, arguments: Namespace) -> Transformer:
    """Return a small model with random weights."""
    longest = max(len(text or "") for text in (arguments.sentence, arguments.cross)) + arguments.pad
    config = TransformerConfig(
        source_vocab=vocab_size,
        target_vocab=vocab_size,
        d_model=16,
        d_ff=32,
        n_heads=2,
        n_layers=2,
        max_length=longest,
        tied="all",
        dropout=0.0,
    )
    return Transformer(config, rng=np.random.default_rng(arguments.seed))


def read(
    codec: Codec, text: str, *, before: tuple[str, int] | None = None, after: tuple[str, int] | None = None
) -> TokenSequence:
    """Return the words and ids of a sentence, with a pair (word, id) before or after them.

    Args:
        codec: The codec of the sentence.
        text: The sentence.
        before: A pair to put before the others, or None.
        after: A pair to put after the others, or None.
    """
    words, ids = codec.words(text), codec.encode(text, strict=True)
    for word in codec.vocabulary.unknown(words):
        note(f"the model does not know {word!r} and reads <UNK> instead")
    pairs = [
        *([before] if before else []),
        *zip(words, ids, strict=True),
        *([after] if after else []),
    ]
    return TokenSequence([word for word, _ in pairs], np.array([[i for _, i in pairs]]))


def draw(seen: Seen, folder: Path) -> "list[tuple[Figure, Path]]":
    """Write the pictures and return them with their paths.

    Raises:
        UserError: If the words do not fit into a picture, or if the folder cannot be written.
    """
    from npformer import plots  # matplotlib takes a second to load
    from npformer.plots.masks import MOST_NUMBERED, leak_map, mask_panels
    from npformer.plots.style import drawable, literal

    queries, keys, numbers = (
        drawable(seen.queries),
        drawable(seen.keys),
        max(seen.scores.shape) <= MOST_NUMBERED,
    )
    where = literal(seen.where)
    masks = seen.masks or {"no mask": np.ones(seen.mask.shape, bool)}
    figures = {
        "masks": mask_panels(masks, queries, keys),
        "scores": plots.score_map(
            seen.scores, queries, keys, numbers=numbers, title=f"Before any mask ({where})"
        ),
        "softmax": plots.softmax_panels(
            seen.scores,
            seen.weights,
            queries,
            keys,
            mask=seen.mask,
            numbers=numbers,
            title=f"Under the mask ({where})",
        ),
        "leaks": leak_map(seen.moved, seen.allowed, queries, keys),
    }
    make_folder(folder, advice="give another --out")
    return [(figure, plots.save(figure, folder / f"{name}.png")) for name, figure in figures.items()]
