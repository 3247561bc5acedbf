"""A whole recipe: text, model and training by one name, on a toy corpus laid out as the real one is."""

import dataclasses

import numpy as np
import pytest

from npformer import Transformer, TransformerConfig
from npformer.cli import main
from npformer.commands import train as command
from npformer.data.multi30k import PARTS
from npformer.training import TrainingConfig, load_checkpoint, read_log, translation
from npformer.training.config import PRESETS

WHO = {"a man": "ein mann", "a woman": "eine frau", "a dog": "ein hund", "the child": "das kind"}
DOES = {"sleeps": "schläft", "is running": "rennt", "reads a book": "liest ein buch", "eats": "isst"}
WHERE = {"in the park": "im park", "at home": "zu hause", "on the street": "auf der straße"}
QUICK = ["--steps", "4", "--set", "d_model=16", "--set", "d_ff=16", "--set", "n_layers=1"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """48 made-up pairs in tok/, of which four validate and four test."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "tok").mkdir()
    pairs = [
        (f"{a} {b} {c} .", f"{x} {y} {z} .")
        for a, x in WHO.items()
        for b, y in DOES.items()
        for c, z in WHERE.items()
    ]
    parts = dict(zip(PARTS, (pairs, pairs[::12], pairs[3::12]), strict=True))
    for part, chosen in parts.items():
        for language, lines in zip(("en", "de"), zip(*chosen, strict=True), strict=True):
            path = folder / "tok" / f"{part}.lc.norm.tok.{language}"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def small_recipes(monkeypatch, tmp_path):
    """The recipes with as few subwords as the toy corpus gives."""
    pytest.importorskip("sentencepiece")
    monkeypatch.chdir(tmp_path)
    small = {name: dataclasses.replace(recipe, subwords=70) for name, recipe in translation.RECIPES.items()}
    monkeypatch.setattr(command, "RECIPES", small)


def test_every_recipe_has_a_training_and_a_model_that_exist():
    for name, recipe in translation.RECIPES.items():
        assert TrainingConfig.preset(name).batch_tokens
        assert TransformerConfig.preset(recipe.model).tied == "all"
    assert {"multi30k-en-de", "multi30k-en-de-short"} <= set(translation.RECIPES) <= set(PRESETS)


def test_the_model_is_transformer_tiny():
    config = TransformerConfig.preset("multi30k")
    sizes = (
        config.d_model,
        config.d_ff,
        config.n_heads,
        config.n_layers,
        config.dropout,
        config.label_smoothing,
    )
    assert sizes == (128, 256, 4, 4, 0.3, 0.1)
    model = Transformer(config, rng=np.random.default_rng(0))
    # the published count, 2.57 million, is that of a vocabulary a little smaller than 10,000
    assert model.count_parameters() == 10_000 * 128 + 1_325_568


@pytest.mark.usefixtures("small_recipes")
def test_it_trains_and_goes_on(corpus, tmp_path, capsys):
    arguments = ["train", "--recipe", "multi30k-en-de", "--data", str(corpus), *QUICK]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "48 pairs" in printed
    checkpoint = load_checkpoint(tmp_path / "runs/multi30k-en-de/last.safetensors")
    config, model = checkpoint.training_config, checkpoint.model_config
    assert (config.batch_tokens, config.decay_share, config.steps, config.warmup_steps) == (2048, 0.2, 4, 1)
    assert (model.n_heads, model.dropout, model.d_model, model.source_vocab) == (4, 0.3, 16, 70)
    assert checkpoint.source.vocabulary == checkpoint.target.vocabulary
    assert (checkpoint.source.text, checkpoint.target.text) == ("tokenised", "tokenised")
    assert checkpoint.dataset["subwords"] == 70
    assert (tmp_path / "runs/multi30k-en-de/curves.png").stat().st_size > 10_000
    assert (tmp_path / "runs/multi30k-en-de/averaged.safetensors").exists()
    assert main(["train", "--resume", "runs/multi30k-en-de"]) == 0
    assert "finished after step 4" in capsys.readouterr().out
    assert main(["translate", "--run", "runs/multi30k-en-de", "A dog sleeps at home."]) == 0


@pytest.mark.usefixtures("small_recipes")
def test_each_setting_can_be_changed(corpus, tmp_path):
    changes = ["--set", "factor=0.5", "--set", "warmup_steps=3", "--model", "small", "--run", "other"]
    assert main(["train", "--recipe", "multi30k-en-de-short", "--data", str(corpus), *QUICK, *changes]) == 0
    checkpoint = load_checkpoint(tmp_path / "other/last.safetensors")
    assert (checkpoint.training_config.factor, checkpoint.training_config.warmup_steps) == (0.5, 3)
    assert checkpoint.model_config.norm == "pre"
    rates = [entry["lr"] for entry in read_log(tmp_path / "other") if "lr" in entry]
    assert rates[-1] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "nowhere"], "there is no file nowhere/tok/train.lc.norm.tok.en: fetch the corpus with"),
        (["one.en", "two.de"], "has a text and subwords of its own, and one.en was given beside it"),
        (["--task", "copy"], "and --task was given beside it"),
        (["--vocab-size", "50"], "and --vocab-size was given beside it"),
        (
            ["--recipe", "multi30k-en-fe"],
            "unknown training preset 'multi30k-en-fe': did you mean multi30k-en-de",
        ),
        (["--recipe", "small", "--data", "x"], "--data goes with a recipe that reads a corpus: add --recipe"),
    ],
)
def test_what_it_refuses(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--recipe", "multi30k-en-de", *arguments]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
