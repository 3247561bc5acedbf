"""npformer generate: texts as they are written, stop strings, perplexity, and mistakes."""

import math
import re

import numpy as np
import pytest
from toy_pretrained import FIELDS, toy_checkpoint

from npformer import UserError
from npformer.cli import generate
from npformer.cli.main import main
from npformer.data.codecs import text_codec_from_checkpoint
from npformer.data.text import text_dataset
from npformer.functional import log_softmax
from npformer.generation import TextGenerator, text_generator
from npformer.models.bert import Bert, BertConfig
from npformer.models.gpt import GPTConfig
from npformer.models.registry import model_from_checkpoint
from npformer.pretrained import Card, save_pretrained
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint
from npformer.training import TrainingConfig, train

TEXT = "the cat sees the dog\nthe dog eats\n" * 12
SIZES = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 8}


def trained(folder, tokens):
    """Train a tiny model for a few steps, and return the folder of its run."""
    text = folder / "poem.txt"
    text.write_text(TEXT, encoding="utf-8")
    dataset = text_dataset(text, tokens=tokens, vocab_size=20 if tokens == "subwords" else None)
    settings = TrainingConfig(steps=30, batch_size=8, learning_rate=0.02, schedule="constant")
    train(folder / "run", dataset, GPTConfig(**(SIZES | dataset.sizes)), settings, threads=1)
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("characters"), "characters")


def printed(capsys, *arguments):
    """Return what a command without mistakes prints."""
    assert main(["generate", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def make_generator(run):
    checkpoint = load_checkpoint(run / "last.safetensors")
    return TextGenerator(model_from_checkpoint(checkpoint), text_codec_from_checkpoint(checkpoint))


def test_it_prints_the_prompt_and_what_the_model_draws(run, capsys):
    settings = {"temperature": 0.7, "top_k": 9, "top_p": 0.9}
    options = ["--temperature", 0.7, "--top-k", 9, "--top-p", 0.9, "--seed", 3, "--last"]
    (expected,) = make_generator(run).generate(["the "], 40, rng=np.random.default_rng(3), **settings)
    assert printed(capsys, "the ", "--model", run, "--tokens", 40, *options) == expected + "\n"
    assert len(expected) == 44


def test_greedy_texts_are_those_of_the_most_probable_tokens(run, capsys):
    out = printed(capsys, "the ", "--model", run, "--greedy", "--tokens", 30)
    assert out == printed(capsys, "the ", "--model", run, "--top-k", 1, "--tokens", 30)
    assert out != printed(capsys, "the ", "--model", run, "--tokens", 30, "--temperature", 5)


def test_several_prompts_are_printed_one_after_another(run, capsys):
    out = printed(capsys, "the cat", "dog", "--model", run, "--greedy", "--tokens", 20)
    one_by_one = [
        printed(capsys, text, "--model", run, "--greedy", "--tokens", 20) for text in ("the cat", "dog")
    ]
    assert out == f"{generate.BETWEEN}\n".join(one_by_one)


def test_the_text_is_printed_while_it_is_written(monkeypatch):
    """Each piece is printed before the next one is computed."""
    events = []
    monkeypatch.setattr(generate, "print_data", lambda text, end="\n": events.append(text + end))

    def steps():
        for pieces in (["a", "1"], ["b", ""], ["", "2"]):
            events.append("step")
            yield pieces

    generate.print_texts(["x", "y"], steps())
    assert events == ["x", "step", "a", "step", "b", "step", "", "\n", f"{generate.BETWEEN}\n", "y12\n"]


def test_stop_strings_end_each_text(run, capsys):
    whole = printed(capsys, "the ", "the cat", "--model", run, "--tokens", 60, "--greedy").split(
        f"{generate.BETWEEN}\n"
    )
    stopped = printed(
        capsys,
        "the ",
        "the cat",
        "--model",
        run,
        "--tokens",
        60,
        "--greedy",
        "--stop",
        "\n",
        "--stop",
        "zebra",
    ).split(f"{generate.BETWEEN}\n")
    for before, after in zip(whole, stopped, strict=True):
        assert after == before.split("\n")[0] + "\n"


def test_decoding_ends_when_all_texts_have_ended(run):
    generator, asked = make_generator(run), []
    step = generator.model.decode_step
    generator.model.decode_step = lambda *a, **s: asked.append(1) or step(*a, **s)
    generator.generate(["the "], 500, stop=list(generator.codec.characters))
    assert len(asked) == 1


def test_a_text_that_has_ended_waits_for_the_others(run, monkeypatch):
    """What may begin a stop string belongs to a text that ends without one."""
    generator = make_generator(run)
    written = np.array([generator.codec.encode(text) for text in ("a dog eats", "the cat do")])
    monkeypatch.setattr(text_generator, "sample_ids", lambda *prompts, **settings: iter(written.T))
    assert generator.generate(["the ", "see "], 10, stop=["dog"]) == ["the a ", "see the cat do"]


@pytest.mark.parametrize("tokens", ["bytes", "subwords"])
def test_other_tokens(tokens, tmp_path, capsys):
    run = trained(tmp_path, tokens)
    out = printed(capsys, "the cat", "--model", run, "--tokens", 12)
    assert out.startswith("the cat")
    out = printed(capsys, "--perplexity", tmp_path / "poem.txt", "--model", run)
    _, nats, _, bits = map(float, re.findall(r"\d+(?:\.\d+)?", out.replace(",", "")))
    tokens_per_character = len(make_generator(run).codec.encode(TEXT)) / len(TEXT)
    assert bits == pytest.approx(nats / math.log(2) * tokens_per_character, abs=2e-4)
    assert (tokens_per_character < 0.9) == (tokens == "subwords")


def test_the_terminal_is_not_steered(run, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    generate.print_texts(["a\x1b[31m"], [["b\x07\n"]])
    assert capsys.readouterr().out == "a\\x1b[31mb\\x07\n\n"


def test_the_perplexity_is_that_of_the_windows(run, tmp_path, capsys):
    path = tmp_path / "other.txt"
    path.write_text("the dog sees the cat\n", encoding="utf-8")
    out = printed(capsys, "--perplexity", path, "--model", run)
    generator = make_generator(run)
    checkpoint = load_checkpoint(run / "best.safetensors") if (run / "best.safetensors").exists() else None
    model = generator.model if checkpoint is None else model_from_checkpoint(checkpoint)
    ids, losses = generator.codec.encode("the dog sees the cat\n"), []
    for start in range(0, len(ids) - 1, 8):
        window = ids[start : start + 9]
        log_p, _ = log_softmax(model.forward([window[:-1]])[0][0])
        losses += (-log_p[np.arange(len(window) - 1), window[1:]]).tolist()
    assert len(losses) == 20
    perplexity, nats, tokens, bits = re.findall(r"\d+(?:\.\d+)?", out)
    assert float(nats) == pytest.approx(np.mean(losses), abs=1e-4)
    assert float(perplexity) == pytest.approx(math.exp(np.mean(losses)), rel=1e-3)
    assert (tokens, float(bits)) == ("20", pytest.approx(np.mean(losses) / math.log(2), abs=1e-4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["the", "--temperature", "0"], "--temperature is '0': give a number above 0"),
        (["the", "--temperature", "-1"], "--temperature is '-1': give a number above 0"),
        (["the", "--top-p", "0"], "--top-p is '0': give a number above 0, at most 1"),
        (["the", "--top-p", "1.5"], "--top-p is '1.5': give a number above 0, at most 1"),
        (["the", "--top-k", "0"], "--top-k is '0': give a whole number, 1 or more"),
        (["the", "--tokens", "0"], "--tokens is '0': give a whole number, 1 or more"),
        ([""], "the argument after generate is empty: give a name or a text, or leave it out"),
        (["the", "--stop", ""], "the argument after --stop is empty"),
        ([], 'give a prompt, as npformer generate "ROMEO:", or --perplexity with a file'),
        (
            ["the", "tée"],
            "prompt 2: the text has the character 'é', which the model has not seen in training",
        ),
        (["the cat sees"], "prompt 1 has 12 tokens, and the model reads 8 at most: shorten it"),
        (
            ["the", "--greedy", "--top-k", "2"],
            "--top-k has no effect with --greedy, because the most probable",
        ),
        (["the", "--perplexity", "poem.txt"], "the has no effect with --perplexity, because the model reads"),
        (["--perplexity", "missing.txt"], "missing.txt"),
    ],
)
def test_mistakes(run, arguments, message, capsys):
    assert main(["generate", *arguments, "--model", str(run)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t", "the text has a single token, and nothing follows it: give a longer text"),
        ("the zebra", "the text has the character 'z', which the model has not seen in training"),
        ("", "is empty: give a file with text"),
    ],
)
def test_files_without_a_perplexity(run, text, message, tmp_path, capsys):
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    assert main(["generate", "--perplexity", str(path), "--model", str(run)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pretrained.safetensors", "checkpoint.safetensors"])
def test_a_translator_is_refused(name, tmp_path, capsys):
    if name.startswith("pretrained"):
        save_pretrained(toy_checkpoint(), tmp_path / name, Card(**FIELDS))
    else:
        save_checkpoint(toy_checkpoint(), tmp_path / name)
    assert main(["generate", "the", "--model", str(tmp_path / name)]) == 2
    assert (
        "is a translator, which cannot continue a text: use it with npformer translate, or"
        in capsys.readouterr().err
    )


def test_a_model_that_does_not_continue_texts_is_refused(run):
    codec = make_generator(run).codec
    bert = Bert(BertConfig(vocab_size=len(codec.tokens), d_model=4, n_heads=1, n_layers=1, max_length=8))
    with pytest.raises(UserError, match="the model reads sentences, and a text generator reads text: give"):
        TextGenerator(bert, codec)
