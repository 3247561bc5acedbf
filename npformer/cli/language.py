"""npformer language: train a small language model, and let it fill gaps in a sentence or continue one."""

from argparse import ArgumentParser, Namespace

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.cli.options import COUNT, SEED, Rule, Whole
from npformer.cli.output import note, print_lines
from npformer.data.sentences import MASK
from npformer.data.tokens import LANGUAGES, tokenize
from npformer.errors import UserError, quantity
from npformer.generation import continue_text, fill_in, fill_in_table
from npformer.training.language import (
    SIZES,
    TrainedLanguage,
    train_causal_language_model,
    train_masked_language_model,
)

STEPS = {"masked": 1500, "causal": 600}  # half a minute each
LONGEST = 12  # the tokens of a continuation
MOST = 100  # answers to a text

RULES: tuple[Rule, ...] = ()


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f'Example: npformer language "the {MASK} sleeps" "the cat"'
    parser.add_argument(
        "text",
        nargs="+",
        metavar="TEXT",
        help=f"a sentence with {MASK} in place of words, which an encoder finds from both sides; or the "
        "beginning of a sentence, which a decoder continues",
    )
    parser.add_argument(
        "--steps",
        type=COUNT,
        help=f"the training steps (default: {STEPS['masked']} to fill gaps, {STEPS['causal']} to continue)",
    )
    parser.add_argument(
        "--answers", type=Whole(1, MOST), default=5, metavar="N", help="the answers to each text (default: 5)"
    )
    parser.add_argument("--seed", type=SEED, default=0, help="the seed of training and draws (default: 0)")


def run(arguments: Namespace) -> int:
    """Train on the English sentences of the built-in corpus, and answer. Return 0."""
    for text in arguments.text:
        _require_length(text)
    with_gaps = [text for text in arguments.text if MASK in text]
    beginnings = [text for text in arguments.text if MASK not in text]
    with threadpool_limits(1, user_api="blas"):  # one thread is fastest for matrices this small
        if with_gaps:
            trained = _train("masked", arguments)
            for text in with_gaps:
                gaps = fill_in(trained.model, trained.codec, text, k=arguments.answers)
                print_lines(f"{text}\n{fill_in_table(gaps)}")
        if beginnings:
            trained = _train("causal", arguments)
            rng = np.random.default_rng(arguments.seed)
            for text in beginnings:
                answers = continue_text(
                    trained.model, trained.codec, text, arguments.answers, rng=rng, max_tokens=LONGEST
                )
                print_lines("\n".join([text, *(f"  {answer}" for answer in answers)]))
    return 0


def _require_length(text: str) -> None:
    """Raise UserError for a text that the models cannot hold, before they are trained."""
    most = SIZES["max_length"] - LONGEST - 1
    words = len(tokenize(text.replace(MASK, " gap "), elision=LANGUAGES["en"].elision))  # with the signs
    if words > most:
        raise UserError(
            f"a text has {quantity(words, 'word')}, and the models read {most} at most: give a shorter one"
        )


def _train(kind: str, arguments: Namespace) -> TrainedLanguage:
    """Train a model, and print how well it predicts sentences that it was not trained on."""
    steps = arguments.steps or STEPS[kind]
    what = {"masked": "an encoder, which fills gaps", "causal": "a decoder, which continues sentences"}[kind]
    note(f"training {what}: {quantity(steps, 'step')}")
    train = train_masked_language_model if kind == "masked" else train_causal_language_model
    trained = train(steps=steps, seed=arguments.seed)
    note(
        f"perplexity on held-out sentences: {trained.held_out.perplexity:.2f}; with the frequencies of the "
        f"words alone: {trained.unigram:.2f}"
    )
    return trained
