"""npformer generate: continue texts with a trained language model, or measure its perplexity on a file."""

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from npformer.cli.load_model import NEWEST_RUN, add_model_arguments, load_kind
from npformer.cli.options import COUNT, POSITIVE, SEED, Real, Rule, Whole, add, add_backend_argument, excludes
from npformer.cli.output import print_data, print_line
from npformer.data.files import read_text
from npformer.errors import UserError, in_context
from npformer.pretrained import TextGenerator

TOKENS, MOST = 200, 10_000_000  # the tokens after a prompt, by default and at most
BETWEEN = "-" * 20  # the line between two texts

EPILOG = """\
Examples: npformer generate "ROMEO:" --model runs/gpt-shakespeare
          npformer generate "ROMEO:" "JULIET:" --temperature 0.8 --top-p 0.9 --stop "ROMEO:"
          npformer generate --perplexity poems.txt --model runs/poems

The first text is printed while the model writes it, and the others after it."""

TOP_P = Real("a number above 0, at most 1", lambda value: 0 < value <= 1)

RULES: tuple[Rule, ...] = (
    excludes("--greedy", "--temperature --top-k --top-p --seed", "the most probable token is always chosen"),
    excludes(
        "--perplexity",
        "prompts --tokens --greedy --temperature --top-k --top-p --seed --stop --chat",
        "the model reads the file and writes nothing",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[prompts...]", "the beginning of a text", metavar="PROMPT")
    models = "the folder of a run that was trained on text, a checkpoint of it, or a Hugging Face folder"
    add_model_arguments(parser, NEWEST_RUN, models=f"{models} of a language model")
    add(parser, "--tokens N", "the number of tokens after a prompt", Whole(1, MOST), default=TOKENS)
    add(
        parser,
        "--temperature",
        "below 1, probable tokens become more probable; above 1, less",
        POSITIVE,
        default=1.0,
    )
    add(parser, "--top-k K", "draw from the K most probable tokens only", COUNT)
    add(parser, "--top-p P", "draw from the fewest tokens whose probabilities sum to P or more", TOP_P)
    add(parser, "--greedy", "choose the most probable token, without draws")
    add(parser, "--seed", "the seed of the draws", SEED, default=0)
    add(
        parser,
        "--stop STRING",
        "end a text before this string; the option may be repeated",
        default=[],
        action="append",
    )
    add(
        parser,
        "--chat",
        "read the prompt as the message of a user, by the chat template of the model's folder",
    )
    add(parser, "--perplexity FILE", "print how well the model predicts the text of a file")
    add_backend_argument(parser)


def run(arguments: Namespace) -> int:
    """Continue the prompts, or measure the perplexity of a file. Return 0."""
    if not arguments.prompts and arguments.perplexity is None:
        raise UserError('give a prompt, as npformer generate "ROMEO:", or --perplexity with a file')
    loaded = load_kind(TextGenerator, arguments, arguments.backend)
    if arguments.perplexity is not None:
        print_line(_describe_perplexity(loaded, arguments.perplexity))
        return 0
    names = () if arguments.greedy else ("temperature", "top_k", "top_p", "seed")
    draws = {name: getattr(arguments, name) for name in names}
    if arguments.chat:
        if len(arguments.prompts) > 1:
            raise UserError("--chat answers one message: give one prompt")
        messages = [{"role": "user", "content": arguments.prompts[0]}]
        print_texts([""], loaded.stream_chat(messages, arguments.tokens, stop=arguments.stop, **draws))
        return 0
    steps = loaded.stream(arguments.prompts, arguments.tokens, stop=arguments.stop, **draws)
    print_texts(arguments.prompts, steps)
    return 0


def print_texts(prompts: list[str], steps: Iterable[list[str]]) -> None:
    """Print the first text piece by piece, and then the other texts.

    Args:
        prompts: The beginnings of the texts.
        steps: The next piece of each text, again and again.
    """
    texts = [[prompt] for prompt in prompts]
    print_data(prompts[0], end="")
    for pieces in steps:
        print_data(pieces[0], end="")
        for text, piece in zip(texts[1:], pieces[1:], strict=True):
            text.append(piece)
    print_data("")
    for text in texts[1:]:
        print_data(BETWEEN)
        print_data("".join(text))


def _describe_perplexity(loaded: TextGenerator, path: str) -> str:
    """Return a line with the perplexity of a model on a file, measured as during training.

    Raises:
        UserError: If the file cannot be read, if it has characters that the model does not know, or if it has
            fewer than two tokens.
    """
    text = read_text(path, any_bytes=loaded.reads_any_bytes)
    with in_context(path):
        loss, n_tokens = loaded.loss(text), len(loaded.tokenizer.encode(text).ids)
    bits = loss / math.log(2) * n_tokens / len(text)
    return (
        f"perplexity {math.exp(loss):.3f}: {loss:.4f} nats for each of {n_tokens - 1:,} tokens, "
        f"{bits:.4f} bits for each character"
    )
