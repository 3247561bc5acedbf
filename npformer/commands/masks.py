"""npformer masks: the mask lab. Masks over your own words, scores before and after, and a test for leaks."""

from pathlib import Path

import numpy as np

from npformer.commands.mask_bench import MISTAKES, Seen, Words, look
from npformer.commands.trained import open_translator
from npformer.data import END, START, Codec, TextCodec
from npformer.errors import UserError
from npformer.leaks import describe_leaks
from npformer.models import require_transformer
from npformer.terminal import note
from npformer.transformer import Transformer, TransformerConfig

EXAMPLE = "je suis étudiant"


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "sentence", nargs="?", metavar="SENTENCE", help=f"the queries' words (an example: {EXAMPLE!r})"
    )
    parser.add_argument("--pad", type=int, default=0, metavar="N", help="N padding keys at the end (0)")
    parser.add_argument("--causal", action="store_true", help="a word looks at itself and those before it")
    parser.add_argument("--window", type=int, metavar="N", help="a word looks N positions to either side")
    parser.add_argument(
        "--cross", metavar="SENTENCE", help="the keys' words: attention between two sentences"
    )
    parser.add_argument("--run", help="a trained run to take the scores from (default: untrained weights)")
    parser.add_argument("--last", action="store_true", help="its last checkpoint, not its best")
    parser.add_argument("--layer", type=int, default=0, help="of which layer (0)")
    parser.add_argument("--head", type=int, default=0, help="of which head (0)")
    parser.add_argument("--seed", type=int, default=0, help="of untrained weights (0)")
    parser.add_argument(
        "--mistake", choices=MISTAKES, help="; ".join(f"{name}: {what}" for name, what in MISTAKES.items())
    )
    parser.add_argument("--out", default="masks", help="the folder to write to (masks)")


def run(arguments) -> int:
    """Returns 0, or 1 where the mask leaks."""
    if arguments.sentence is None:
        show_example(arguments)
    check(arguments)
    seen = look(*open_model(arguments), arguments)
    for path in draw(seen, Path(arguments.out)):
        print(f"wrote {path}")
    if seen.hidden:
        print(f"hidden: {', '.join(map(repr, seen.hidden))}, which some query should see")
    if len(seen.leaks):
        print(f"leak: {describe_leaks(seen.leaks)}")
        return 1
    print("no leak: no output moves, not by a single bit, with a token that the mask forbids")
    return 0


def show_example(arguments) -> None:
    """Without a sentence, the documents' one; without a mask too, padding and causal."""
    arguments.sentence = EXAMPLE
    masked = arguments.pad or arguments.causal or arguments.window is not None or arguments.cross is not None
    if not masked:
        arguments.pad, arguments.causal = 2, True
    note(
        f'no sentence was given, so this is an example: "{EXAMPLE}"' + ("" if masked else " --pad 2 --causal")
    )


def check(arguments) -> None:
    """Errors: UserError for masks that cannot be, or do not go together."""
    if arguments.pad < 0:
        raise UserError(f"--pad is {arguments.pad}: give the number of padding words, 0 or more")
    if arguments.window is not None and arguments.window < 0:
        raise UserError(f"--window is {arguments.window}: give the number of words to either side, 0 or more")
    for name, given in (("sentence", arguments.sentence), ("sentence of --cross", arguments.cross)):
        if given is not None and not given.split():
            raise UserError(f"the {name} is empty: write at least one word")
    for name, given in (("--window", arguments.window is not None), ("--causal", arguments.causal)):
        if given and arguments.cross is not None:
            raise UserError(
                f"{name} counts positions within one sentence, and --cross looks from one into another: "
                "give one of the two"
            )
    needed = {"shifted": ("--causal", arguments.causal)}
    option, given = needed.get(arguments.mistake, ("--pad", arguments.pad > 0))
    if arguments.mistake and not given:
        raise UserError(f"--mistake {arguments.mistake} changes the mask of {option}: give that too")


# The model, and the words with their ids.


def open_model(arguments) -> tuple[Transformer, Words, Words]:
    """The model of the run, or an untrained one; the queries' words, and the keys', padded."""
    trained, cross = arguments.run is not None, arguments.cross is not None
    if trained:
        translator = open_translator(arguments.run, last=arguments.last, backend="numpy")
        require_transformer(translator.model.config, "the mask lab looks into")
        model, source, target = translator.model, translator.source_codec, translator.target_codec
    else:
        texts = [arguments.sentence, arguments.cross or ""]
        source = target = TextCodec.from_lines(texts, lowercase=False)
        model = untrained(len(source.vocabulary), arguments)
    end = ("</S>", END) if trained else None  # a trained model has never read a source without it
    if not cross and not arguments.causal:
        queries = read(source, arguments.sentence, after=end)
    else:
        queries = read(target, arguments.sentence, before=("<S>", START) if trained else None)
    keys = (read(source, arguments.cross, after=end) if cross else queries).padded(arguments.pad)
    for words in (queries, keys):
        if len(words.words) > model.config.max_length:
            raise UserError(
                f"that makes {len(words.words)} words, and the model's limit is {model.config.max_length}: "
                "give fewer"
            )
    return model, queries if cross else keys, keys


def untrained(n_words: int, arguments) -> Transformer:
    """A small model with weights drawn from the seed."""
    longest = max(len(text or "") for text in (arguments.sentence, arguments.cross)) + arguments.pad
    config = TransformerConfig(
        source_vocab=n_words,
        target_vocab=n_words,
        d_model=16,
        d_ff=32,
        n_heads=2,
        n_layers=2,
        max_length=longest,
        tied="all",
        dropout=0.0,
    )
    return Transformer(config, rng=np.random.default_rng(arguments.seed))


def read(codec: Codec, text: str, *, before=None, after=None) -> Words:
    """The words and ids of a sentence, with a pair (word, id) before or after them."""
    words, ids = codec.words(text), codec.encode(text, strict=True)
    for word in codec.vocabulary.unknown(words):
        note(f"the model does not know {word!r} and reads <UNK> in place")
    pairs = [
        *([before] if before else []),
        *zip(words, ids, strict=True),
        *([after] if after else []),
    ]
    return Words([word for word, _ in pairs], np.array([[i for _, i in pairs]]))


def draw(seen: Seen, folder: Path) -> list[Path]:
    """Write the pictures. Errors: UserError where the words do not fit, or the folder cannot be written."""
    from npformer import plots  # matplotlib takes a second to load: only who draws should wait
    from npformer.plots.masks import MOST_NUMBERED, leak_map, mask_panels

    queries, keys, numbers = seen.queries, seen.keys, max(seen.scores.shape) <= MOST_NUMBERED
    masks = seen.masks or {"no mask": np.ones(seen.mask.shape, bool)}
    figures = {
        "masks": mask_panels(masks, queries, keys),
        "scores": plots.score_map(
            seen.scores, queries, keys, numbers=numbers, title=f"Before any mask ({seen.where})"
        ),
        "softmax": plots.softmax_panels(
            seen.scores,
            seen.weights,
            queries,
            keys,
            mask=seen.mask,
            numbers=numbers,
            title=f"Under the mask ({seen.where})",
        ),
        "leaks": leak_map(seen.moved, seen.allowed, queries, keys),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}): give another --out") from error
    return [plots.save(figure, folder / f"{name}.png") for name, figure in figures.items()]
