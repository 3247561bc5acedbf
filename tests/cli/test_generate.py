"""npformer generate: texts as they are written, stop strings, perplexity, and mistakes."""

import math
import re

import numpy as np
import pytest
from commands import said

import npformer
from npformer.cli import generate
from npformer.data.text import text_dataset
from npformer.models.gpt import GPTConfig
from npformer.pretrained import loaded
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


def make_generator(run):
    return npformer.load(run, last=True)


def test_it_prints_the_prompt_and_what_the_model_draws(run, capsys):
    settings = {"temperature": 0.7, "top_k": 9, "top_p": 0.9}
    options = ["--temperature", 0.7, "--top-k", 9, "--top-p", 0.9, "--seed", 3, "--last"]
    (expected,) = make_generator(run).generate(["the "], 40, rng=np.random.default_rng(3), **settings)
    assert said(capsys, "generate", "the ", "--model", run, "--tokens", 40, *options) == expected + "\n"
    assert len(expected) == 44


def test_greedy_texts_are_those_of_the_most_probable_tokens(run, capsys):
    out = said(capsys, "generate", "the ", "--model", run, "--greedy", "--tokens", 30)
    assert out == said(capsys, "generate", "the ", "--model", run, "--top-k", 1, "--tokens", 30)
    assert out != said(capsys, "generate", "the ", "--model", run, "--tokens", 30, "--temperature", 5)


def greedy_texts(capsys, run, *arguments):
    """Return the texts that a command with several prompts writes by greedy search."""
    out = said(capsys, "generate", *arguments, "--model", run, "--greedy")
    return out.split(f"{generate.BETWEEN}\n")


def test_several_prompts_are_printed_one_after_another(run, capsys):
    both = greedy_texts(capsys, run, "the cat", "dog", "--tokens", 20)
    alone = [greedy_texts(capsys, run, text, "--tokens", 20) for text in ("the cat", "dog")]
    assert [[text] for text in both] == alone


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
    whole = greedy_texts(capsys, run, "the ", "the cat", "--tokens", 60)
    stopped = greedy_texts(capsys, run, "the ", "the cat", "--tokens", 60, "--stop", "\n", "--stop", "zebra")
    assert stopped == [text.split("\n")[0] + "\n" for text in whole]


def test_decoding_ends_when_all_texts_have_ended(run):
    generator, asked = make_generator(run), []
    step = generator.model.decode_step
    generator.model.decode_step = lambda *a, **s: asked.append(1) or step(*a, **s)
    generator.generate(["the "], 500, stop=list(generator.tokenizer.codec.characters))
    assert len(asked) == 1


def test_a_text_that_has_ended_waits_for_the_others(run, monkeypatch):
    """What may begin a stop string belongs to a text that ends without one."""
    generator = make_generator(run)
    written = np.array([generator.tokenizer.encode(text).ids for text in ("a dog eats", "the cat do")])
    monkeypatch.setattr(loaded, "sample_ids", lambda *prompts, **settings: iter(written.T))
    assert generator.generate(["the ", "see "], 10, stop=["dog"]) == ["the a ", "see the cat do"]


@pytest.mark.parametrize("tokens", ["bytes", "subwords"])
def test_other_tokens(tokens, tmp_path, capsys):
    run = trained(tmp_path, tokens)
    out = said(capsys, "generate", "the cat", "--model", run, "--tokens", 12)
    assert out.startswith("the cat")
    out = said(capsys, "generate", "--perplexity", tmp_path / "poem.txt", "--model", run)
    _, nats, _, bits = map(float, re.findall(r"\d+(?:\.\d+)?", out.replace(",", "")))
    tokens_per_character = len(make_generator(run).tokenizer.encode(TEXT).ids) / len(TEXT)
    assert bits == pytest.approx(nats / math.log(2) * tokens_per_character, abs=2e-4)
    assert (tokens_per_character < 0.9) == (tokens == "subwords")


def test_the_perplexity_is_that_of_the_loaded_model(run, tmp_path, capsys):
    text = "the dog sees the cat\n"
    (tmp_path / "other.txt").write_text(text, encoding="utf-8")
    out = said(capsys, "generate", "--perplexity", tmp_path / "other.txt", "--model", run)
    perplexity, nats, tokens, bits = map(float, re.findall(r"\d+(?:\.\d+)?", out))
    expected = npformer.load(run).perplexity(text)
    assert perplexity == pytest.approx(expected, rel=1e-3)
    assert nats == pytest.approx(math.log(expected), abs=1e-4)
    assert (tokens, bits) == (20, pytest.approx(math.log2(expected), abs=1e-4))
