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
