"""npformer train: train a model, or resume a run that was stopped."""

import ast
import contextlib
import signal
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console

from npformer.cli.curves import draw_curves
from npformer.cli.limits import require_threads, require_training
from npformer.cli.options import (
    COUNT,
    FINITE,
    INTEGERS,
    SEED,
    Whole,
    add,
    add_backend_argument,
    excludes,
    name_of,
    only_if,
)
from npformer.cli.output import console
from npformer.cli.progress import training_progress
from npformer.data.base_dataset import Dataset
from npformer.data.dataset import (
    DIRECTIONS,
    TASKS,
    builtin_dataset,
    files_dataset,
    open_dataset,
    task_dataset,
)
from npformer.data.monolingual import sentence_dataset
from npformer.data.multi30k import FOLDER
from npformer.data.text import TEXT_VOCAB_SIZE, TOKENS
from npformer.data.vocabulary import MASK
from npformer.errors import UserError, quantity
from npformer.escaping import printable, shell_word
from npformer.models.registry import ModelConfig
from npformer.pretrained.initial_weights import initial_weights
from npformer.pretrained.train_on_files import (
    MAX_LENGTH,
    MIN_COUNT,
    VOCAB_SIZE,
    available_cores,
    configure,
    run_name,
    threads_for,
)
from npformer.storage.atomic import require_folder_place
from npformer.training import Report, Result, TrainingConfig
from npformer.training import resume as resume_run
from npformer.training import train as train_run
from npformer.training.presets import PRESETS, Preset, find_preset
from npformer.training.ranks import RankError, launch

EPILOG = """\
Examples: npformer train
          npformer train train.en train.de --valid valid.en valid.de --run runs/en-de --steps 5000
          npformer train --task reverse --steps 300
          npformer train --text poems.txt --run runs/poems
          npformer train --preset bert-small
          npformer data multi30k && npformer train --preset multi30k-en-de
          npformer train --resume runs/en-fr
          mpirun -n 2 npformer train        (with npformer[mpi]: two processes that train one model)"""


PRESET, TEXT_PRESET = "small", "gpt-shakespeare"  # the default, and the one with --text


def chosen_preset(arguments: Namespace) -> Preset:
    """Return the preset of the command line. Its default depends on the data."""
    return find_preset(arguments.preset or (PRESET if arguments.text is None else TEXT_PRESET))


def _has_corpus(arguments: Namespace) -> bool:
    """Return whether the preset has a corpus of its own, which must be downloaded."""
    return chosen_preset(arguments).downloaded_corpus


def _reads(arguments: Namespace) -> str:
    """Return what the preset trains on: "sentence pairs", "text" or "sentences"."""
    return chosen_preset(arguments).reads


def _has_subwords(arguments: Namespace) -> bool:
    """Return whether the tokens of a text are subwords."""
    return _reads(arguments) == "text" and _tokens(arguments) == "subwords"


def _tokens(arguments: Namespace) -> str:
    """Return the tokens of a text: those of --tokens, else those of the preset for the text that ships.

    Another text is read as characters, because a short one has few subwords.
    """
    if arguments.tokens is not None:
        return str(arguments.tokens)
    return "characters" if arguments.text else str(chosen_preset(arguments).data["tokens"])


def _has_words(arguments: Namespace) -> bool:
    """Return whether the vocabulary is one of words, from files of the user."""
    return bool(arguments.files or (arguments.text and _reads(arguments) == "sentences"))


RULES = (
    excludes(
        "--resume",
        "files --valid --task --direction --limit --data --max-length --vocab-size --min-count --subwords "
        "--unfiltered --cased --text --tokens --preset --architecture --batch-size --seed --set --run "
        "--start-from",
        "a run has its own data and settings",
    ),
    excludes("--text", "files --task --direction --data", "a language model reads one text"),
    only_if(
        "--text",
        lambda arguments: _reads(arguments) != "sentence pairs",
        "with a preset for language models",
        f"leave out --preset, or give --preset {TEXT_PRESET}",
    ),
    only_if(
        "--tokens",
        lambda arguments: _reads(arguments) == "text",
        "with a preset for language models that continue a text",
        f"leave it out, or give --preset {TEXT_PRESET}",
    ),
    only_if(
        "files --task --direction",
        lambda arguments: _reads(arguments) == "sentence pairs",
        "with a preset for sentence pairs",
        "leave it out, or choose another --preset",
    ),
    only_if(
        "files --task",
        lambda arguments: not _has_corpus(arguments),
        "with a preset without text of its own",
        "leave it out, or choose another --preset",
    ),
    excludes("--task", "files", "a toy task makes its own sequences"),
    only_if(
        "--valid --limit --max-length --subwords --unfiltered",
        lambda arguments: arguments.files,
        "with two files to train on",
        "give those as well, or leave it out",
    ),
    only_if(
        "--min-count --cased",
        _has_words,
        "with two files to train on, or with --text and a preset that fills gaps",
        "give those as well, or leave it out",
    ),
    only_if(
        "--vocab-size",
        lambda arguments: _has_words(arguments) or _has_subwords(arguments),
        "with two files to train on, with --text and a preset that fills gaps, or with --tokens subwords",
        "give those as well, or leave it out",
    ),
    excludes("--subwords", "--vocab-size --min-count", "these are for vocabularies of words"),
    only_if(
        "--direction",
        lambda arguments: not (arguments.files or arguments.task or _has_corpus(arguments)),
        "with the built-in corpus",
    ),
    only_if(
        "--data",
        _has_corpus,
        "with a preset that reads a corpus",
        "add --preset multi30k-en-de, or leave it out",
    ),
)

OWN_TEXT = ""  # the value of --text without a file; no argument can be empty

# the command that uses a model, by what the model reads, and an example of its argument
NEXT = {
    "sentence pairs": ("translate", "a sentence"),
    "text": ("generate", "a beginning"),
    "sentences": ("fill", f"a sentence with {MASK}"),
}

MOST_CHARACTERS = 200  # of a value of --set
ANY_WHOLE = Whole(-INTEGERS)
MOST_SUBWORDS = 2**31 - 1  # the library that learns them counts with 32 bits

# --set NAME has an effect only if another setting, where the model has one, has one of these values
SETTINGS_ONLY_WITH: dict[str, tuple[str, tuple[Any, ...]]] = {
    "factor": ("schedule", ("warmup",)),
    "learning_rate": ("schedule", ("constant", "cosine")),
    "min_learning_rate": ("schedule", ("cosine",)),
    "warmup_steps": ("schedule", ("warmup", "cosine")),
    "max_distance": ("positions", ("relative",)),
    "rotary_base": ("positions", ("rotary",)),
    "rotary_layout": ("positions", ("rotary",)),
    "score": ("attention", ("global", "local-m", "local-p")),
    "window": ("attention", ("local-m", "local-p")),
    "forget_bias": ("cell", ("lstm",)),
    "halting_epsilon": ("halting", (True,)),
    "halting_bias": ("halting", (True,)),
    "ponder_weight": ("halting", (True,)),
}
# --set NAME has an effect only if another setting is given
SETTINGS_NEED = {"bleu_sentences": "bleu_every", "average_every": "average_last"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    _add_data_arguments(parser)
    settings = parser.add_argument_group("settings")
    add(
        settings,
        "--preset PRESET",
        "data, architecture and training settings that go together: "
        f"{', '.join(PRESETS.names())} (default: {PRESET}; with --text, {TEXT_PRESET})",
    )
    add(
        settings,
        "--architecture NAME",
        "another architecture than the preset's, such as paper-base, rnn-global, universal or gpt2",
    )
    add(settings, "--steps", "the number of optimizer steps", COUNT)
    add(settings, "--batch-size", "the number of sentences, or of windows of a text, in a batch", COUNT)
    add(settings, "--seed", "the seed of weights, order and dropout (default: 0)", SEED)
    add(
        settings,
        "--set NAME=VALUE",
        "any setting of the model or of the training",
        default=[],
        action="append",
    )
    run = parser.add_argument_group("run")
    add(run, "--run FOLDER", "the folder for checkpoints and log (default: in runs/)")
    add(run, "--resume FOLDER", "resume a run from its last checkpoint")
    add(
        run,
        "--start-from MODEL",
        "begin a new run with the weights of a trained model instead of random ones: a translator that "
        "ships, a run, a checkpoint or an exported file, of the same settings and vocabularies",
    )
    add_backend_argument(run, default=None)
    add(run, "--threads", "the threads of the matrix products (default: 1 up to d_model 128)", COUNT)
    add(
        run,
        "--workers",
        "the threads that share each batch (default: 1; for the presets of multi30k and gpt-shakespeare, one "
        "for each core)",
        COUNT,
    )


def _add_data_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that choose the data."""
    data = parser.add_argument_group("data (default: the data of the preset)")
    add(data, "[files...]", "two files whose lines are translations of each other", metavar="FILE")
    add(data, "--valid FILE FILE", "two files to validate on")
    add(data, "--task", "a toy task instead of text", TASKS)
    add(data, "--direction", "the direction of the built-in corpus", DIRECTIONS, default="en-fr")
    add(data, "--limit N", "read at most N pairs of the files", COUNT)
    add(
        data,
        f"--text [FILE={OWN_TEXT}]",
        "one text file, on which a language model is trained (default: Tiny Shakespeare, which ships; "
        "with a preset that fills gaps, the built-in corpus)",
    )
    add(
        data,
        "--tokens",
        "the tokens of the text (default: subwords for Tiny Shakespeare, characters for a FILE)",
        TOKENS,
    )
    add(data, "--data FOLDER", f"the folder of the preset's corpus (default: {FOLDER})")
    add(data, "--max-length", "leave out pairs with a longer sentence, in tokens", COUNT, default=MAX_LENGTH)
    add(
        data,
        "--vocab-size",
        f"the size of each vocabulary of words (default: {VOCAB_SIZE}), or the number of subwords of a "
        f"text (default: {TEXT_VOCAB_SIZE})",
        COUNT,
    )
    add(data, "--min-count", "leave out words that occur less often", COUNT, default=MIN_COUNT)
    add(data, "--subwords N", "use N subwords for both files instead of words", Whole(1, MOST_SUBWORDS))
    add(data, "--cased", "keep capitals (default: convert to lower case)")
    add(data, "--unfiltered", "keep repeated pairs, and pairs of very different lengths")


def run(arguments: Namespace) -> int:
    """Train. Return 0 if the run came to its end, and otherwise 128 and the number of the signal."""
    for option, count in (("--threads", arguments.threads), ("--workers", arguments.workers)):
        require_threads(option, count)
    first = launch().rank == 0  # only the first of mpirun's processes prints
    out = console(quiet=not first)
    try:
        with training_progress(out) as report:
            train = _resume if arguments.resume else _begin
            result, folder = train(arguments, out, report)
    except RankError:  # the rank with the error prints it
        return 2
    if first:
        _conclude(out, result, folder)
    return 0 if result.finished else 128 + (result.stopped_by or signal.SIGINT)


def _begin(arguments: Namespace, out: Console, report: Report) -> tuple[Result, Path]:
    """Train from the beginning."""
    preset = chosen_preset(arguments)
    if arguments.run:
        require_folder_place(Path(arguments.run), advice="choose another folder for the run")
    dataset, name = open_data(arguments, preset)
    for remark in dataset.remarks:
        out.print(remark, soft_wrap=True)
    folder = Path(arguments.run or f"runs/{name}")
    settings = _parse_settings(arguments.set)
    for option in ("--steps", "--batch-size", "--seed"):
        if name_of(option) in settings and name_of(option) in arguments.given:
            raise UserError(f"{option} and --set {name_of(option)} were both given: leave one of them out")
    named = set(settings)
    given = {name: getattr(arguments, name) for name in ("batch_size", "seed")}
    settings |= {name: value for name, value in given.items() if value is not None}
    model, training = configure(
        preset,
        dataset,
        settings,
        architecture=arguments.architecture,
        steps=arguments.steps,
        max_length=arguments.max_length if preset.reads == "sentence pairs" else None,
    )
    _refuse_settings_without_effect(named, model, training)
    workers = available_cores() if preset.all_cores and arguments.workers is None else arguments.workers
    require_training(model, training, dataset, workers=workers)
    start = arguments.start_from
    result = train_run(
        folder,
        dataset,
        model,
        training,
        backend=arguments.backend or "auto",
        threads=threads_for(model) if arguments.threads is None else arguments.threads,
        workers=workers,
        report=report,
        initial=None if start is None else initial_weights(start, model, dataset),
    )
    return result, folder


def _resume(arguments: Namespace, out: Console, report: Report) -> tuple[Result, Path]:
    """Train from the last checkpoint of a run."""
    result = resume_run(
        arguments.resume,
        changes={} if arguments.steps is None else {"steps": arguments.steps},
        backend=arguments.backend,
        threads=arguments.threads,
        workers=arguments.workers,
        report=report,
    )
    return result, Path(arguments.resume)


def _conclude(out: Console, result: Result, folder: Path) -> None:
    """Print how the run ended and what to do next, and draw its curves."""
    out.print(printable(result.message))
    with contextlib.suppress(UserError):  # no step yet, or no space on the disk: the run itself is safe
        draw_curves(folder)
    if result.finished:
        out.print(f"checkpoints, log and curves: {printable(folder)}", soft_wrap=True)
        command, text = NEXT[result.reads]
        for start, name in (("next:", command), ("     ", "explore")):
            out.print(f'{start} npformer {name} --model {shell_word(folder)} "{text}"', soft_wrap=True)


def open_data(arguments: Namespace, preset: Preset) -> tuple[Dataset, str]:
    """Return the dataset that the arguments name, and a name for its run."""
    if preset.downloaded_corpus:
        return preset.dataset(arguments.data or FOLDER), preset.name
    if arguments.files:
        if len(arguments.files) != 2:
            given = quantity(len(arguments.files), "file was", "files were")
            raise UserError(f"{given} given: give two, a source and its translation")
        source, target = arguments.files
        dataset = files_dataset(
            source,
            target,
            valid=tuple(arguments.valid) if arguments.valid else None,
            max_length=arguments.max_length,
            limit=arguments.limit,
            filtered=not arguments.unfiltered,
            lowercase=not arguments.cased,
            **_vocabulary(arguments, shared=preset.data.get("shared", False)),
        )
        return dataset, run_name(source)
    if preset.reads == "text":
        return open_text(arguments, preset)
    if preset.reads == "sentences":
        return open_sentences(arguments, preset)
    if arguments.task:
        return task_dataset(arguments.task), arguments.task
    shared = preset.data.get("shared", False)
    return builtin_dataset(arguments.direction, shared=shared), arguments.direction


def open_text(arguments: Namespace, preset: Preset) -> tuple[Dataset, str]:
    """Return the dataset of one text, that of the preset unless options change it, and a name for its run."""
    given = {"file": arguments.text, "vocab_size": arguments.vocab_size}
    changes = {name: value for name, value in given.items() if value}
    dataset = open_dataset({**preset.data, "tokens": _tokens(arguments), **changes})
    return dataset, run_name(arguments.text) if arguments.text else preset.name


def open_sentences(arguments: Namespace, preset: Preset) -> tuple[Dataset, str]:
    """Return the dataset of sentences, those of the preset or of a file, and a name for its run."""
    if not arguments.text:
        return preset.dataset(), preset.name
    dataset = sentence_dataset(arguments.text, lowercase=not arguments.cased, **_words(arguments))
    return dataset, run_name(arguments.text)


def _words(arguments: Namespace) -> dict[str, int]:
    """Return the settings of a vocabulary of words."""
    vocab_size = VOCAB_SIZE if arguments.vocab_size is None else arguments.vocab_size
    return {"vocab_size": vocab_size, "min_count": arguments.min_count}


def _vocabulary(arguments: Namespace, *, shared: bool) -> dict[str, Any]:
    """Return the settings of `files_dataset` for its vocabularies of words, or for its subwords."""
    if arguments.subwords is not None:
        return {"subwords": arguments.subwords}
    return _words(arguments) | {"shared": shared}


def _refuse_settings_without_effect(named: set[str], model: ModelConfig, training: TrainingConfig) -> None:
    """Raise UserError for a setting of --set that the other settings make ineffective."""
    settings = model.to_dict() | training.to_dict()
    if "bleu_every" in named and model.reads != "sentence pairs":
        raise UserError(
            "--set bleu_every has an effect only with sentence pairs, whose translations BLEU compares: "
            "leave it out"
        )
    if "r_drop" in named and not any(value for name, value in settings.items() if name.endswith("dropout")):
        raise UserError(
            "--set r_drop compares two passes with different dropout, and the model has none: leave it out, "
            "or add --set dropout=0.1"
        )
    for name in sorted(named):
        other, values = SETTINGS_ONLY_WITH.get(name, ("", ()))
        if other in settings and settings[other] not in values:
            choices = " or ".join(map(str, values))
            raise UserError(
                f"--set {name} has an effect only with {other} {choices}, and {other} is "
                f"{settings[other]}: leave it out, or add --set {other}={values[0]}"
            )
        needed = SETTINGS_NEED.get(name)
        if needed and settings[needed] is None:
            raise UserError(f"--set {name} has an effect only with {needed}: add --set {needed}=N")


def _parse_settings(texts: list[str]) -> dict[str, Any]:
    """Return texts NAME=VALUE as a dict.

    Raises:
        UserError: If a text has another form, a number is too large, or a setting is given twice.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--set {text!r}: write NAME=VALUE, as --set d_model=128")
        if name in settings:
            raise UserError(f"--set gives {name!r} twice: give it once")
        settings[name] = _parse_value(name, value)
    return settings


def _parse_value(name: str, text: str) -> Any:
    """Return the number, the truth value, None or the tuple that a text says. Any other text stays a text."""
    if len(text) > MOST_CHARACTERS:
        raise UserError(f"the value of --set {name!r} has {len(text):,} characters: give a shorter one")
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # {[1]}; too many brackets
        return text
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, (int, float)) and not abs(number) < INTEGERS:
            raise UserError(f"--set {name}={text} is too large: give a number below 2**63")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            ANY_WHOLE(text) if isinstance(value, int) else FINITE(text)
        except ArgumentTypeError:  # a form of Python that no option takes, such as 1_000 or 0x10
            return text
    return value
