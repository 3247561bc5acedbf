"""Presets: data, architecture and training under one name, on a toy corpus with the real layout."""

import dataclasses

import pytest

from npformer.cli.main import main
from npformer.data import codec_from_json
from npformer.data.dataset import task_dataset
from npformer.data.monolingual import sentence_dataset
from npformer.data.multi30k import PARTS
from npformer.data.text import text_dataset
from npformer.models.registry import architecture, config_from_checkpoint
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import TrainingConfig
from npformer.training.presets import PRESETS, Preset, find_preset

WHO = {"a man": "ein mann", "a woman": "eine frau", "a dog": "ein hund", "the child": "das kind"}
DOES = {"sleeps": "schläft", "is running": "rennt", "reads a book": "liest ein buch", "eats": "isst"}
WHERE = {"in the park": "im park", "at home": "zu hause", "on the street": "auf der straße"}
QUICK = ["--steps", "4", "--set", "d_model=16", "--set", "d_ff=16", "--set", "n_layers=1"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Write 48 generated pairs to tok/, and four more each for validation and test."""
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
def small_presets(monkeypatch, tmp_path):
    """Give the presets no more subwords than the toy corpus can have."""
    monkeypatch.chdir(tmp_path)
    plain = Preset.dataset

    def dataset(preset, folder=None):
        return plain(dataclasses.replace(preset, data={**preset.data, "subwords": 70}), folder)

    monkeypatch.setattr(Preset, "dataset", dataset)


@pytest.mark.parametrize("built_in", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_every_preset_has_an_existing_architecture(built_in, corpus):
    """The data are small, and every night those of the first preset that reads such data."""
    file = corpus / "tok" / f"{PARTS[0]}.lc.norm.tok.en"
    small = {"sentence pairs": task_dataset, "text": text_dataset, "sentences": sentence_dataset}
    arguments = {"sentence pairs": (), "text": (file,), "sentences": (file,)}
    # pairs of sentences have a shared vocabulary
    datasets = {"sentence pairs": find_preset("paper").dataset()} if built_in else {}
    for preset in PRESETS:
        if preset.reads not in datasets:
            reads = preset.reads
            datasets[reads] = preset.dataset() if built_in else small[reads](*arguments[reads])
        if built_in:
            assert min(datasets[preset.reads].sizes.values()) > (60 if preset.reads == "text" else 200)
        dataset = datasets[preset.reads]
        config = preset.model(dataset)
        assert config == architecture(preset.architecture, **dataset.sizes)
        assert preset.model(dataset, dropout=0.25).dropout == 0.25
        assert find_preset(preset.name) is preset
    assert datasets.keys() == {"sentence pairs", "text", "sentences"}


@pytest.mark.usefixtures("small_presets")
def test_it_trains_resumes_and_continues_with_r_drop(corpus, tmp_path, capsys):
    arguments = ["train", "--preset", "multi30k-en-de", "--data", str(corpus), *QUICK]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "48 pairs" in printed
    checkpoint = load_checkpoint(tmp_path / "runs/multi30k-en-de/last.safetensors")
    config, model = TrainingConfig(**checkpoint.training_settings), config_from_checkpoint(checkpoint)
    source, target = map(codec_from_json, checkpoint.codecs.values())
    assert (config.batch_tokens, config.decay_share, config.steps, config.warmup_steps) == (2048, 0.2, 4, 1)
    assert (model.n_heads, model.dropout, model.d_model, model.source_vocab) == (4, 0.3, 16, 70)
    assert model.positions == "rotary"
    assert source.vocabulary == target.vocabulary
    assert (source.text, target.text) == ("tokenised", "tokenised")
    assert checkpoint.dataset["subwords"] == 70
    assert (tmp_path / "runs/multi30k-en-de/curves.png").stat().st_size > 10_000
    assert (tmp_path / "runs/multi30k-en-de/averaged.safetensors").exists()
    assert main(["train", "--resume", "runs/multi30k-en-de"]) == 0
    assert "finished after step 4" in capsys.readouterr().out
    assert main(["translate", "--model", "runs/multi30k-en-de", "A dog sleeps at home."]) == 0
    # R-Drop continues a training
    again = [*arguments, "--set", "r_drop=1", "--run", "runs/r-drop", "--start-from", "runs/multi30k-en-de"]
    assert main(again) == 0
    assert load_checkpoint(tmp_path / "runs/r-drop/last.safetensors").training_settings["r_drop"] == 1.0


def test_r_drop_without_dropout_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    r_drop = ["train", "--task", "copy", "--steps", "1", "--set", "d_model=16", "--set", "r_drop=1"]
    assert main([*r_drop, "--set", "dropout=0"]) == 2
    assert "two passes with different dropout, and the model has none" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    assert main([*r_drop, "--set", "dropout=0.1"]) == 0
