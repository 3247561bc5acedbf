"""npformer attention: where a trained model looks in a sentence."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from npformer.commands.trained import add_choice_arguments, chosen_translator
from npformer.decoding.forms import written
from npformer.errors import UserError
from npformer.models import attention_layers
from npformer.terminal import note

KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "encoder-decoder attention",
}
EPILOG = """\
Examples: npformer attention "the dog is tired"
          npformer attention --run runs/en-fr --kind cross --layer 1 --head 2 "the dog is tired" """


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("sentence", help="what the model reads")
    add_choice_arguments(parser, "look into")
    parser.add_argument("--kind", choices=tuple(KINDS), help="only this attention (all three)")
    parser.add_argument("--layer", type=int, help="the layer shown large and as lines, from 0 (the last)")
    parser.add_argument("--head", type=int, help="the head shown large (0); the lines are then its alone")
    parser.add_argument("--word", help="only the lines of this word, as a query")
    parser.add_argument("--out", default="attention", help="the folder to write to (attention)")


def run(arguments) -> int:
    """Returns 0."""
    translator, card = chosen_translator(arguments, "numpy")
    search: dict[str, Any] = {"beam": card.beam, "length_penalty": card.length_penalty} if card else {}
    from npformer.figures.gallery import make_folder  # matplotlib takes a second to load
    from npformer.figures.studio import look
    from npformer.plots import save

    seen = look(translator, arguments.sentence, **search)
    unknown = translator.unknown_words(arguments.sentence)
    if unknown:
        note(f"the model does not know {', '.join(map(repr, unknown))} and reads <UNK> in place")
    kinds = [kind for kind in KINDS if attention_layers(seen.cache, kind)]
    check_settings(seen, kinds, arguments)
    kinds = [arguments.kind] if arguments.kind else kinds
    if arguments.word is not None:
        asking = {kind: words_of(seen, kind)[0] for kind in kinds}
        kinds = [kind for kind in kinds if arguments.word in asking[kind]]
        if not kinds:
            words = ", ".join(dict.fromkeys(chain.from_iterable(asking.values())))
            raise UserError(f"{arguments.word!r} is no word that asks here: give --word one of {words}")
    figures: dict[str, Any] = {}
    for kind in kinds:
        figures |= pictures(seen, kind, arguments)
    folder = Path(arguments.out)
    make_folder(folder)
    codec = translator.target_codec
    print(f"{arguments.sentence} → {written(codec, codec.decode(seen.batch.target_out[0]))}")
    for name, figure in figures.items():
        print(f"wrote {save(figure, folder / f'{name}.png')}")
    return 0


def check_settings(seen, kinds: list[str], arguments) -> None:
    """Errors: UserError for an attention, a layer or a head that the model does not have."""
    if not kinds:
        raise UserError("this model has no attention: give a run of one that has")
    if arguments.kind and arguments.kind not in kinds:
        raise UserError(f"this model has no {KINDS[arguments.kind]}: it has {', '.join(kinds)}")
    layers = attention_layers(seen.cache, kinds[0])
    for name, value, count in (
        ("layer", arguments.layer, len(layers)),
        ("head", arguments.head, layers[0].shape[1]),
    ):
        if value is not None and not 0 <= value < count:
            raise UserError(f"--{name} is {value}: this model has {name}s 0 .. {count - 1}")


def words_of(seen, kind: str) -> tuple[list[str], list[str]]:
    """The words that ask, and those that are looked at. In "cross" a step is named by the word it writes."""
    queries = {"encoder": seen.source, "decoder": seen.target, "cross": seen.predicted}[kind]
    return queries, seen.target if kind == "decoder" else seen.source


def pictures(seen, kind: str, arguments) -> dict:
    """The grid of all layers and heads with one large, and the lines of one layer. By file name.

    Errors: UserError where the sentence is too long to be drawn.
    """
    from npformer import plots
    from npformer.masks import causal_mask

    queries, keys = words_of(seen, kind)
    weights = np.stack([layer[0] for layer in attention_layers(seen.cache, kind)])  # (L, H, T, S)
    layer = len(weights) - 1 if arguments.layer is None else arguments.layer
    head = arguments.head or 0
    heads = range(weights.shape[1]) if arguments.head is None else [head]
    query = None if arguments.word is None else queries.index(arguments.word)
    mask = causal_mask(len(queries), weights) if kind == "decoder" else None
    title = KINDS[kind][0].upper() + KINDS[kind][1:]
    of_layer = f"{title}, layer {layer}"
    one = f"{of_layer}, head {head}"
    try:
        chosen = weights[layer, list(heads)]
        shown = of_layer if len(heads) > 1 else one
        lines = plots.word_lines(chosen, queries, keys, heads=list(heads), query=query, title=shown)
        try:
            large = (
                (layer, head) if min(len(queries), len(keys)) > 2 else None
            )  # few words are large as it is
            grid = plots.attention_grid(weights, queries, keys, mask=mask, large=large, title=title)
        except UserError:  # too many words for all heads: the large one alone has room for more
            grid = plots.attention_map(weights[layer, head], queries, keys, mask=mask, title=one)
            note(f"too many words for a grid of the {KINDS[kind]}: only layer {layer}, head {head} is drawn")
    except UserError as error:
        longest = max(len(queries), len(keys))
        raise UserError(f"{longest} words are too many for a picture of the {KINDS[kind]}: {error}") from None
    return {f"{kind}_grid": grid, f"{kind}_lines": lines}
