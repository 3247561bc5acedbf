"""npformer tour: train, translate, check, look and explore in four minutes."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from npformer.backend import choose_backend
from npformer.checking.cases import all_cases
from npformer.cli.gradcheck import print_table, print_verdict
from npformer.cli.options import COUNT, SEED, add_backend_argument, add_language
from npformer.cli.output import console
from npformer.cli.own_command import as_typed
from npformer.cli.progress import training_progress
from npformer.data.corpus import BuiltinCorpus, Pair, builtin_corpus
from npformer.data.dataset import PairDataset
from npformer.data.loader import make_batch
from npformer.errors import UserError
from npformer.escaping import printable, shell_word
from npformer.functional.masks import causal_mask, padding_mask
from npformer.generation.baselines import evaluate_baselines
from npformer.generation.evaluation import FamilyAccuracy, evaluate_families, parts_of, strongest_head
from npformer.generation.search import BEAM
from npformer.language import say
from npformer.learn.console import plain_table, styled
from npformer.learn.course.trained import LessonTraining, is_of_recipe, tour_recipe
from npformer.models.transformer import TransformerConfig
from npformer.pretrained import Translator, load
from npformer.pretrained.attention import title_of
from npformer.pretrained.train_on_files import threads_for
from npformer.storage.atomic import explain_os_errors, make_folder, write_file
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import TrainingConfig, train
from npformer.training.presets import find_preset
from npformer.training.run_folder import RunFolder

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
PRESET = find_preset("small")
ANOTHER_RUN = "holds another run, which the tour does not replace: give another --out"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--out", default="tour", metavar="FOLDER", help="the folder to write to")
    parser.add_argument(
        "--steps",
        type=COUNT,
        help="the number of training steps; fewer give worse translations "
        f"(default: {PRESET.training.steps})",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="the seed of weights, order and dropout")
    add_backend_argument(parser)
    add_language(parser)
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="print the results of each part of the test and of each component",
    )


def run(arguments: Namespace) -> int:
    """Train, translate, check and draw. Return 0, or 1 if a gradient is incorrect."""
    start = time.perf_counter()
    out, folder = console(), Path(arguments.out)
    backend = choose_backend(arguments.backend)
    make_folder(folder, advice="give another --out")
    what = say(": train, translate, check, look, explore. Four minutes on two cores.")
    out.print(styled(("npformer tour", "bold"), what))

    _heading(out, say("1. Train"), say("a Transformer on sentences from a grammar, English to French"))
    translator = train_translator(out, folder / "run", arguments, backend)

    _heading(out, say("2. Translate"), say("sentences that it has not seen in training"))
    show_translations(out, translator)
    exact = show_evaluation(out, translator, verbose=arguments.verbose)

    _heading(out, say("3. Check"), say("every backward pass against its forward pass, by complex step"))
    begin = time.perf_counter()
    cases = all_cases()
    checking = say("checking {count} components, which takes about a minute ...", count=len(cases))
    out.print(checking, style="dim")
    reports = [case.check() for case in cases]
    show = partial(print_table, grouped=True) if arguments.verbose else print_verdict
    show(out, reports, time.perf_counter() - begin)

    _heading(out, say("4. Look"), say("the attention weights"))
    for path in draw_pictures(translator, folder):
        out.print(say("wrote {path}", path=printable(path)), soft_wrap=True)

    _heading(out, say("5. Explore"), say("every number of the model, forward and backward"))
    page = write_page(folder)
    out.print(say("wrote {path}", path=printable(page)), soft_wrap=True)

    after = say(" in {seconds:.0f} s. {exact}", seconds=time.perf_counter() - start, exact=exact)
    out.print(styled(("\n" + say("Done"), "bold"), after))
    out.print(styled(f"  {IT_SENTENCES[0]}\n    ", (translator.translate(IT_SENTENCES[0], beam=1), "cyan")))
    text = say("Open {page} in a browser: it shows every number. What next:", page=printable(page))
    out.print(text, soft_wrap=True)
    for command, what in next_steps(folder):
        out.print(styled(say("{what}:\n  ", what=what), (command, "bold")), soft_wrap=True)
    return 0 if all(report.ok for report in reports) else 1


def _heading(out: Console, title: str, text: str) -> None:
    out.print(styled((f"\n{title}", "bold"), f"  {text}"))


def train_translator(out: Console, folder: Path, arguments: Namespace, backend: str) -> Translator:
    """Train in this folder, or go on with the training of an earlier tour with the same settings.

    Args:
        out: The console.
        folder: The folder of the run.
        arguments: The arguments of the command, with steps and seed.
        backend: "numpy" or "cupy".

    Raises:
        UserError: If the folder cannot be written, if it holds another run, or if a setting is out of range.
        KeyboardInterrupt: If Ctrl-C stopped the training.
    """
    run = RunFolder(folder)
    saved = load_checkpoint(run.last) if run.last.exists() else None
    training = PRESET.training.replace(seed=arguments.seed)
    if arguments.steps is not None:
        training = training.replace(steps=arguments.steps, warmup_steps=max(1, arguments.steps // 10))
    if saved is None:
        forget_start(run)
    elif TrainingConfig.from_checkpoint(saved) != training:
        raise UserError(f"{folder} {ANOTHER_RUN}")
    out.print(say("making the sentences ..."), style="dim")
    dataset, model, _ = tour_recipe()
    _show_recipe(out, dataset, model)
    last = printable(run.last)
    if saved is not None and not is_of_recipe(saved, LessonTraining(dataset, model, training)):
        raise UserError(f"{folder} {ANOTHER_RUN}")
    if saved is not None and saved.step == training.steps:
        out.print(say("an earlier tour has trained this translator: {path}", path=last), soft_wrap=True)
        return Translator.from_checkpoint(saved, backend)
    with training_progress(out) as report:
        result = train(
            folder,
            dataset,
            model,
            training,
            backend=backend,
            threads=threads_for(model),
            report=report,
            resume=saved is not None,
        )
    if not result.finished:
        out.print(say("stopped after step {step}: the same command goes on from there", step=result.step))
    result.require_finished()
    finished = say("finished after step {step}; the model is {path}", step=result.step, path=last)
    out.print(finished, soft_wrap=True)
    return Translator.from_checkpoint(load_checkpoint(run.last), backend)


def _show_recipe(out: Console, dataset: PairDataset, model: TransformerConfig) -> None:
    """Print the sizes of the data and of the model."""
    out.print(
        say(
            "{pairs:,} pairs, {source} English and {target} French words, d_model {width}, {heads} heads, "
            "{layers} + {layers} layers",
            pairs=len(dataset.train),
            source=model.source_vocab,
            target=model.target_vocab,
            width=model.d_model,
            heads=model.n_heads,
            layers=model.n_layers,
        )
    )


def forget_start(run: RunFolder) -> None:
    """Remove the log of a training that was stopped before its first checkpoint.

    Raises:
        UserError: If the folder holds another file of a run.
    """
    if run.best.exists():
        raise UserError(f"{run.path} {ANOTHER_RUN}")
    with explain_os_errors(run.log, "removed", "give another --out"):
        run.log.unlink(missing_ok=True)


def show_translations(out: Console, translator: Translator) -> None:
    """Translate the ambiguous sentences of the source documents, and a few held-out ones."""
    held_out = [pair.english for pair in builtin_corpus().test if pair.family == "simple"]
    sentences = [*IT_SENTENCES, *BANK_SENTENCES, *held_out[::150]]
    for sentence, translation in zip(sentences, translator.translate(sentences, beam=BEAM), strict=True):
        out.print(styled(f"  {sentence}\n    ", (translation, "cyan")))


_PART_TITLES = {"words": "new pairs of words", "frame": "new frames", None: "other"}


def show_evaluation(out: Console, translator: Translator, *, verbose: bool) -> str:
    """Return a sentence with the share of held-out sentences that are translated exactly.

    Args:
        out: The console.
        translator: The translator.
        verbose: Also print the accuracy on each part of the test set, and what is reached without a model.
    """
    corpus = builtin_corpus()
    more = say("translating {count:,} more such sentences ...", count=len(corpus.test))
    out.print(more, style="dim")
    scores = evaluate_families(translator, corpus.test)
    total, exact = sum(score.sentences for score in scores), sum(score.exact for score in scores)
    if verbose:
        show_parts(out, translator, scores)
        show_baselines(out, corpus)
    sentence = say(
        "Of {total:,} unseen sentences, {exact:,} ({share:.1%}) are exactly right.",
        total=total,
        exact=exact,
        share=exact / total,
    )
    out.print(sentence)
    return sentence


def show_parts(out: Console, translator: Translator, scores: Sequence[FamilyAccuracy]) -> None:
    """Print the accuracy on each part of the test set.

    Args:
        out: The console.
        translator: The translator.
        scores: The scores of the parts.
    """
    parts = parts_of(builtin_corpus().test)
    titles = ("number", "exact", "right word", "what the strongest head attends to")
    number, exact, word, head = titles
    sentences = "held-out sentences, greedy search"
    table = plain_table(sentences, f">{number}", f">{exact}", f">{word}", head, wrapped=(sentences, *titles))
    for score in scores:
        table.add_row(
            f"{score.family}, {_PART_TITLES[score.held_out]}",
            str(score.sentences),
            f"{score.share:.1%}",
            _share(score.right_word, score.sentences),
            describe_head(translator, parts[score.family, score.held_out]),
        )
    out.print(table)


def show_baselines(out: Console, corpus: BuiltinCorpus) -> None:
    """Print how far held-out sentences are from training, and what memory and single words reach."""
    titles = ("words to change", "exact", "right word", "single word")
    same = "the same without a model: the nearest training sentence"
    table = plain_table(same, *(f">{title}" for title in titles), wrapped=(same, *titles))
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
    """Draw attention maps of the source documents' sentence and the masks of a padded sentence, as PNG."""
    from npformer import plots  # matplotlib takes a second to load

    make_folder(folder, advice="give another --out")
    figures = attention_maps(translator) | decoder_masks(translator)
    return [plots.save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def attention_maps(translator: Translator) -> "dict[str, Figure]":
    """Draw every layer and head of the three kinds of attention, from the cache of one forward pass."""
    from npformer import plots

    translator.model.to("numpy")
    found = translator.attention(IT_SENTENCES[0], beam=1, max_length=None)
    return {
        f"{kind}_attention": plots.attention_grid(weights, *found.labels(kind), title=title_of(kind))
        for kind, weights in found.weights.items()
    }


def decoder_masks(translator: Translator) -> "dict[str, Figure]":
    """Draw the decoder's masks in a batch of "merci" and "je suis étudiant": the first one is padded."""
    from npformer import plots

    codec = translator.codec.target
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
    """Write the explorer's page of the model that the tour has trained, with a well-known sentence."""
    path = folder / "explorer.html"
    make_folder(folder, advice="give another --out")
    page = load(folder / "run", last=True).explore(IT_SENTENCES[0])
    write_file(path, page.html.encode("utf-8"), advice="give another --out")
    return path


def next_steps(folder: Path) -> list[tuple[str, str]]:
    """Return pairs (command, explanation) for the end of the tour."""
    run = shell_word(folder / "run")
    steps = [
        (f'npformer translate --model {run} "the dog is tired"', say("translate a sentence of your own")),
        ("npformer lesson 0", say("step through the course, Enter by Enter")),
        ("npformer exercise start softmax-backward", say("write a backward pass, which is checked")),
    ]
    return [(as_typed(command), what) for command, what in steps]
