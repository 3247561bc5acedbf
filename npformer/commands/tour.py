"""npformer tour: the whole package in three minutes."""

import time
from pathlib import Path

import numpy as np
from rich.table import Table

from npformer.backend import choose_backend
from npformer.commands.gradcheck import print_table
from npformer.commands.train import threads_for
from npformer.data.batches import make_batch
from npformer.data.corpus import builtin_corpus
from npformer.data.datasets import builtin_dataset
from npformer.decoding import Translator
from npformer.decoding.exam import strongest_look, take_exam
from npformer.errors import UserError
from npformer.gradcheck.cases import all_cases
from npformer.masks import causal_mask, padding_mask
from npformer.terminal import console, training_progress
from npformer.training import TrainingConfig, load_checkpoint, train
from npformer.transformer import TransformerConfig

# what a look at one ambiguous word shows best: the animal is tired, the street is wide
IT_SENTENCES = (
    "the animal didn't cross the street because it was too tired",
    "the animal didn't cross the street because it was too wide",
)
BANK_SENTENCES = (
    "i arrived at the bank after crossing the river",
    "i arrived at the bank after crossing the road to get some money",
)
RUN_FILES = ("last.safetensors", "best.safetensors", "log.jsonl")


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument("--out", default="tour", help="the folder to write to (tour)")
    parser.add_argument("--steps", type=int, help="training steps; fewer are quicker and worse")
    parser.add_argument("--seed", type=int, default=0, help="of weights, order and dropout (0)")
    parser.add_argument("--backend", choices=("numpy", "cupy", "auto"), default="auto", help="(auto)")


def run(arguments) -> int:
    """Returns 0, or 1 where a gradient is wrong."""
    start = time.perf_counter()
    out, folder = console(), Path(arguments.out)
    backend = choose_backend(arguments.backend)
    out.print("[bold]npformer tour[/]: train, translate, check, look. Three minutes on two cores.")

    _heading(out, "1. Train", "a Transformer on sentences that a grammar made, English to French")
    translator = train_translator(out, folder / "run", arguments, backend)

    _heading(out, "2. Translate", "sentences that it has never seen")
    show_translations(out, translator)
    show_exam(out, translator)

    _heading(out, "3. Check", "every backward pass against its forward pass, by complex step")
    begin = time.perf_counter()
    reports = [case.check() for case in all_cases()]
    print_table(out, reports, time.perf_counter() - begin, grouped=True)

    _heading(out, "4. Look", "where attention looks")
    for path in draw_pictures(translator, folder):
        out.print(f"wrote {path}")

    out.print(f"\n[bold]Done[/] in {time.perf_counter() - start:.0f} s. What next:")
    for command, what in next_steps(folder):
        out.print(f"  {command:58} {what}")
    return 0 if all(report.ok for report in reports) else 1


def _heading(out, title: str, text: str) -> None:
    out.print(f"\n[bold]{title}[/]  {text}")


def train_translator(out, folder: Path, arguments, backend: str) -> Translator:
    """Train in this folder, in place of what an earlier tour left there."""
    for name in RUN_FILES:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{folder} cannot be written ({error.strerror}): give another --out") from error
    dataset = builtin_dataset()
    model = TransformerConfig.preset(
        "small",
        source_vocab=len(dataset.source.vocabulary),
        target_vocab=len(dataset.target.vocabulary),
    )
    training = TrainingConfig.preset("small", seed=arguments.seed)
    if arguments.steps:
        training = training.replace(steps=arguments.steps, warmup_steps=max(1, arguments.steps // 10))
    out.print(
        f"{len(dataset.train):,} pairs, {model.source_vocab} English and {model.target_vocab} French words, "
        f"d_model {model.d_model}, {model.n_heads} heads, {model.n_layers} + {model.n_layers} layers"
    )
    with training_progress(out) as report:
        threads = threads_for(model)
        result = train(folder, dataset, model, training, backend=backend, threads=threads, report=report)
    out.print(result.message)
    checkpoint = load_checkpoint(folder / "last.safetensors")
    return Translator(checkpoint.model(backend), checkpoint.source, checkpoint.target)


def show_translations(out, translator: Translator) -> None:
    """The documents' ambiguous sentences, and a few held-out ones."""
    held_out = [pair.english for pair in builtin_corpus().test if pair.family == "plain"]
    sentences = [*IT_SENTENCES, *BANK_SENTENCES, *held_out[::150]]
    for sentence, translation in zip(sentences, translator.translate(sentences), strict=True):
        out.print(f"  {sentence}\n    [cyan]{translation}[/]")


def show_exam(out, translator: Translator) -> None:
    """Exact translations and right ambiguous words, over all held-out sentences."""
    pairs = builtin_corpus().test
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("held-out sentences")
    for title in ("number", "exact", "right word"):
        table.add_column(title, justify="right")
    table.add_column("where the strongest head looks")
    scores = take_exam(translator, pairs)
    for score in scores:
        right = "" if score.right_word is None else f"{score.right_word / score.sentences:.1%}"
        table.add_row(
            score.family,
            str(score.sentences),
            f"{score.share:.1%}",
            right,
            describe_look(translator, [pair for pair in pairs if pair.family == score.family]),
        )
    total = sum(score.sentences for score in scores)
    table.add_row("all", str(total), f"{sum(score.exact for score in scores) / total:.1%}", "", "")
    out.print(table)


def describe_look(translator: Translator, pairs) -> str:
    """For *it* and *bank*, which head looks at the word that decides, and how often."""
    if pairs[0].reference is None:
        return ""
    look = strongest_look(translator.model, translator, pairs)
    target = "what it stands for" if pairs[0].family == "it" else "the word that decides"
    return f"at {target}: {look.share:.1%} ({look.where} layer {look.layer}, head {look.head})"


def draw_pictures(translator: Translator, folder: Path) -> list[Path]:
    """Attention maps of the documents' sentence and the masks of a padded sentence, as PNG."""
    from npformer import plots  # matplotlib takes a second to load: only who draws should wait

    folder.mkdir(parents=True, exist_ok=True)
    figures = attention_maps(plots, translator) | decoder_masks(plots, translator)
    return [plots.save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def attention_maps(plots, translator: Translator) -> dict:
    """Every layer and head of the three kinds of attention, read from one forward pass's cache."""
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


def decoder_masks(plots, translator: Translator) -> dict:
    """What the decoder may look at in a batch of "merci" and "je suis étudiant": the first is padded."""
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


def next_steps(folder: Path) -> list[tuple[str, str]]:
    """Commands to go on with, and what each does."""
    return [
        (f'npformer translate --run {folder / "run"} "the cat sleeps"', "translate sentences of your own"),
        ("npformer lesson 0", "the course: step through it, Enter by Enter"),
        ("npformer gradcheck --verbose layer", "every tensor of some components"),
        ("npformer gradcheck my_layer.py:MyLayer --shape 2,5,8", "check a layer of your own"),
        ("npformer train --direction fr-en", "the other direction"),
        ("npformer train --task reverse --steps 300", "a toy task"),
        ("npformer train your.en your.de", "two files of your own"),
    ]
