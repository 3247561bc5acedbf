"""npformer tour: the whole package in two minutes."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from npformer.backend import choose_backend
from npformer.checking.cases import all_cases
from npformer.cli.gradcheck import print_table
from npformer.cli.options import COUNT, SEED, Rule, add_backend_argument
from npformer.cli.output import console
from npformer.cli.progress import training_progress
from npformer.data.corpus import BuiltinCorpus, Pair, builtin_corpus
from npformer.data.loader import make_batch
from npformer.errors import UserError
from npformer.functional.masks import causal_mask, padding_mask
from npformer.generation import Translator
from npformer.generation.baselines import evaluate_baselines
from npformer.generation.evaluation import evaluate_families, parts_of, strongest_head
from npformer.generation.search import BEAM
from npformer.learn.console import styled
from npformer.learn.course.trained import tour_recipe
from npformer.pretrained import load
from npformer.pretrained.train_on_files import threads_for
from npformer.storage.atomic import make_folder, write_file
from npformer.storage.checkpoint import load_checkpoint
from npformer.storage.text import printable, shell_word
from npformer.training import train
from npformer.training.presets import find_preset

if TYPE_CHECKING:
    from npformer.plots import Figure

# one word decides what "it" stands for: the animal is tired, the street is wide
IT_SENTENCES = (
    "the animal didn't cross the street because it was too tired",
    "the animal didn't cross the street because it was too wide",
)
BANK_SENTENCES = (
    "i arrived at the bank after crossing the river",
    "i arrived at the bank after crossing the road to get some money",
)
RUN_FILES = ("last.safetensors", "best.safetensors", "log.jsonl")

PRESET = find_preset("small")
RULES: tuple[Rule, ...] = ()


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--out", default="tour", metavar="FOLDER", help="the folder to write to (default: tour)"
    )
    parser.add_argument(
        "--steps",
        type=COUNT,
        help="the number of training steps; fewer give worse translations "
        f"(default: {PRESET.training.steps})",
    )
    parser.add_argument(
        "--seed", type=SEED, default=0, help="the seed of weights, order and dropout (default: 0)"
    )
    add_backend_argument(parser)


def run(arguments: Namespace) -> int:
    """Train, translate, check and draw. Return 0, or 1 if a gradient is incorrect."""
    start = time.perf_counter()
    out, folder = console(), Path(arguments.out)
    backend = choose_backend(arguments.backend)
    out.print(
        styled(
            ("npformer tour", "bold"), ": train, translate, check, look, explore. Three minutes on two cores."
        )
    )

    _heading(out, "1. Train", "a Transformer on sentences from a grammar, English to French")
    translator = train_translator(out, folder / "run", arguments, backend)

    _heading(out, "2. Translate", "sentences that it has not seen in training")
    show_translations(out, translator)
    show_evaluation(out, translator)

    _heading(out, "3. Check", "every backward pass against its forward pass, by complex step")
    begin = time.perf_counter()
    reports = [case.check() for case in all_cases()]
    print_table(out, reports, time.perf_counter() - begin, grouped=True)

    _heading(out, "4. Look", "the attention weights")
    for path in draw_pictures(translator, folder):
        out.print(f"wrote {printable(path)}", soft_wrap=True)

    _heading(out, "5. Explore", "every number of the model, forward and backward")
    page = write_page(folder)
    out.print(f"wrote {printable(page)}: open it in a browser, it needs no network", soft_wrap=True)

    out.print(styled(("\nDone", "bold"), f" in {time.perf_counter() - start:.0f} s. What next:"))
    for command, what in next_steps(folder):
        out.print(f"  {command:60} {what}", soft_wrap=True)
    return 0 if all(report.ok for report in reports) else 1


def _heading(out: Console, title: str, text: str) -> None:
    out.print(styled((f"\n{title}", "bold"), f"  {text}"))


def train_translator(out: Console, folder: Path, arguments: Namespace, backend: str) -> Translator:
    """Train in this folder, replacing the files of an earlier tour.

    Args:
        out: The console.
        folder: The folder of the run.
        arguments: The arguments of the command, with steps and seed.
        backend: "numpy" or "cupy".

    Raises:
        UserError: If the folder cannot be written or a setting is out of range.
    """
    for name in RUN_FILES:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{folder} cannot be written ({error.strerror}): give another --out") from error
    dataset, model, training = tour_recipe(arguments.seed)
    if arguments.steps is not None:
        training = training.replace(steps=arguments.steps, warmup_steps=max(1, arguments.steps // 10))
    out.print(
        f"{len(dataset.train):,} pairs, {model.source_vocab} English and {model.target_vocab} French words, "
        f"d_model {model.d_model}, {model.n_heads} heads, {model.n_layers} + {model.n_layers} layers"
    )
    with training_progress(out) as report:
        threads = threads_for(model)
        result = train(folder, dataset, model, training, backend=backend, threads=threads, report=report)
    out.print(result.message)
    result.require_finished()
    return Translator.from_checkpoint(load_checkpoint(folder / "last.safetensors"), backend)


def show_translations(out: Console, translator: Translator) -> None:
    """Translate the ambiguous sentences of the documents, and a few held-out ones."""
    held_out = [pair.english for pair in builtin_corpus().test if pair.family == "plain"]
    sentences = [*IT_SENTENCES, *BANK_SENTENCES, *held_out[::150]]
    for sentence, translation in zip(sentences, translator.translate(sentences, beam=BEAM), strict=True):
        out.print(styled(f"  {sentence}\n    ", (translation, "cyan")))


_PART_TITLES = {"words": "new pairs of words", "frame": "new frames", None: "other"}


def show_evaluation(out: Console, translator: Translator) -> None:
    """Print the accuracy on each part of the test set, and what is reached without a model."""
    corpus = builtin_corpus()
    scores = evaluate_families(translator, corpus.test)
    parts = parts_of(corpus.test)
    table = _table("held-out sentences, greedy search", "number", "exact", "right word")
    table.add_column("what the strongest head attends to")
    for score in scores:
        table.add_row(
            f"{score.family}, {_PART_TITLES[score.held_out]}",
            str(score.sentences),
            f"{score.share:.1%}",
            _share(score.right_word, score.sentences),
            describe_head(translator, parts[score.family, score.held_out]),
        )
    total = sum(score.sentences for score in scores)
    table.add_row("all", str(total), f"{sum(score.exact for score in scores) / total:.1%}", "", "")
    out.print(table)
    show_baselines(out, corpus)


def show_baselines(out: Console, corpus: BuiltinCorpus) -> None:
    """Print how far held-out sentences are from training, and what memory and single words reach."""
    titles = ("words to change", "exact", "right word", "single word")
    table = _table("the same without a model: the nearest training sentence", *titles)
    for score in evaluate_baselines(corpus.test, corpus.train):
        distances = " ".join(f"{score.distance(share):.0f}" for share in (0.1, 0.5, 0.9))
        table.add_row(
            f"{score.family}, {_PART_TITLES[score.held_out]}",
            distances,
            _share(score.nearest_exact, score.sentences),
            _share(score.nearest_right_word, score.sentences),
            _share(score.single_word, score.sentences),
        )
    out.print(table)
    out.print(
        "words to change: at most so many in a tenth, half and nine tenths of the sentences; "
        "single word: the answer that goes with the most telling word of the sentence",
        style="dim",
    )


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _share(count: int | None, total: int) -> str:
    return "" if count is None else f"{count / total:.1%}"


def describe_head(translator: Translator, pairs: Sequence[Pair]) -> str:
    """Return the head that attends most to the word that decides *it* or *bank*, and how often it does."""
    if pairs[0].reference is None:
        return ""
    head = strongest_head(translator.model, translator, pairs)
    target = "what it stands for" if pairs[0].family == "it" else "the word that decides"
    return f"{target}: {head.share:.1%} ({head.where} layer {head.layer}, head {head.head})"


def draw_pictures(translator: Translator, folder: Path) -> list[Path]:
    """Draw attention maps of the documents' sentence and the masks of a padded sentence, as PNG."""
    from npformer import plots  # matplotlib takes a second to load

    make_folder(folder, advice="give another --out")
    figures = attention_maps(translator) | decoder_masks(translator)
    return [plots.save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def attention_maps(translator: Translator) -> "dict[str, Figure]":
    """Draw every layer and head of the three kinds of attention, from the cache of one forward pass."""
    from npformer import plots

    sentence = IT_SENTENCES[0]
    source, target = translator.source_codec, translator.target_codec
    translation = translator.translate([sentence])[0]
    batch = make_batch([(source.encode(sentence), target.encode(translation))])
    _, cache = translator.model.to("numpy").forward(batch.source, batch.target_in)
    english = [*source.words(sentence), "</S>"]
    french = ["<S>", *target.words(translation)]
    encoder = [layer.self_attention.attention.weights[0] for layer in cache.encoder.layers]  # each (H, S, S)
    decoder = [layer.self_attention.attention.weights[0] for layer in cache.decoder.layers]  # (H, T, T)
    cross = [layer.cross.attention.weights[0] for layer in cache.decoder.layers]  # (H, T, S)
    draw = plots.attention_grid
    return {
        "encoder_attention": draw(np.stack(encoder), english, english, title="Encoder self-attention"),
        "decoder_attention": draw(np.stack(decoder), french, french, title="Decoder self-attention"),
        "cross_attention": draw(np.stack(cross), french, english, title="Encoder-decoder attention"),
    }


def decoder_masks(translator: Translator) -> "dict[str, Figure]":
    """Draw the decoder's masks in a batch of "merci" and "je suis étudiant": the first one is padded."""
    from npformer import plots

    codec = translator.target_codec
    batch = make_batch([([4], codec.encode(text)) for text in ("merci", "je suis étudiant")])
    words = ["<S>", "merci", "<PAD>", "<PAD>"]
    length = batch.target_in.shape[1]
    causal = causal_mask(length, batch.target_in)  # (T, T)
    padding = padding_mask(batch.target_in)[0, 0]  # (1, T)
    return {
        "causal_mask": plots.mask_map(causal, words, words, title="Causal"),
        "decoder_mask": plots.mask_map(causal & padding, words, words, title="Causal and padding"),
    }


def write_page(folder: Path) -> Path:
    """Write the explorer's page of the model that the tour has trained, with the documents' sentence."""
    path = folder / "explorer.html"
    make_folder(folder, advice="give another --out")
    page = load(folder / "run", last=True).explore(IT_SENTENCES[0])
    write_file(path, page.html.encode("utf-8"), advice="give another --out")
    return path


def next_steps(folder: Path) -> list[tuple[str, str]]:
    """Return pairs (command, explanation) for the end of the tour."""
    return [
        (
            f'npformer translate --model {shell_word(folder / "run")} "the dog is tired"',
            "translate sentences of your own",
        ),
        (
            f'npformer explore --model {shell_word(folder / "run")} --open "the dog is tired"',
            "the explorer, with a sentence of your own",
        ),
        ("npformer lesson 0", "the course: step through it, Enter by Enter"),
        ("npformer gradcheck --verbose layer", "every tensor of some components"),
        ("npformer gradcheck my_layer.py:MyLayer --shape 2,5,8", "check a layer of your own"),
        ("npformer train --direction fr-en", "the other direction"),
        ("npformer train --task reverse --steps 300", "a toy task"),
        ("npformer train your.en your.de", "two files of your own"),
    ]
