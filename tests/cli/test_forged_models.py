"""Every command that reads a model refuses damaged and forged checkpoints in one sentence."""

import copy
import json

import damage
import numpy as np
import pytest
import toy_pretrained
from training_worker import tiny_run

from npformer import UserError, load
from npformer.cli.main import main
from npformer.storage.checksummed import read_checksummed

COMMANDS = {
    "translate": ["translate", "3 1", "--model", "run"],
    "translate the last": ["translate", "3 1", "--model", "run", "--last"],
    "score": ["score", "test.en", "test.en", "--model", "run"],
    "attention": ["attention", "3 1", "--model", "run"],
    "explore": ["explore", "3 1", "--model", "run"],
    "saliency": ["saliency", "3 1", "--model", "run"],
    "masks": ["masks", "3 1", "--model", "run"],
    "figures": ["figures", "F29", "--model", "run"],
    "resume": ["train", "--resume", "run"],
    "export": ["pretrained", "--export", "run", "--out", "x.safetensors", "--card", "card.json"],
}


def changed(settings, *path, value):
    """Return the settings with another value in one place."""
    settings = copy.deepcopy(settings)
    place = settings
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return settings


# functions of the arrays and the settings that return forged ones
FORGERIES = {
    "a newer format": lambda t, s: (t, s | {"format": 2}),
    "an unknown kind": lambda t, s: (t, s | {"kind": "diffusion"}),
    "an unknown setting": lambda t, s: (t, changed(s, "model", "rotary", value=True)),
    "a setting of another type": lambda t, s: (t, changed(s, "model", "d_model", value="wide")),
    "a flag of another type": lambda t, s: (t, changed(s, "model", "scale_embedding", value="no")),
    "a huge model": lambda t, s: (t, changed(s, "model", "n_layers", value=10**8)),
    "a huge table": lambda t, s: (t, changed(s, "model", "max_length", value=10**9)),
    "another vocabulary": lambda t, s: (
        t,
        changed(s, "source", value=toy_pretrained.toy_codec("en").to_json()),
    ),
    "a codec of nothing": lambda t, s: (t, changed(s, "target", value="{}")),
    "a deep codec": lambda t, s: (t, changed(s, "target", value="[" * 3000 + "]" * 3000)),
    "NaN": lambda t, s: (t, changed(s, "model", "dropout", value="@nan")),
    "no model": lambda t, s: (t, {name: value for name, value in s.items() if name != "model"}),
    "no arrays": lambda t, s: ({}, s),
    "arrays of integers": lambda t, s: ({name: value.astype(np.int32) for name, value in t.items()}, s),
    "a list": lambda t, s: (t, changed(s, "model", value=[])),
}


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    run = tmp_path_factory.mktemp("original") / "run"
    tiny_run(run, steps=3)
    tensors, settings = read_checksummed(run / "last.safetensors")
    del settings["sha256"]
    return tensors, settings


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "test.en").write_text("3 1\n")
    (tmp_path / "card.json").write_text(json.dumps(toy_pretrained.FIELDS))
    return tmp_path / "run"


@pytest.mark.parametrize("forgery", FORGERIES)
def test_every_command_refuses_a_forged_checkpoint(forgery, original, place, capsys):
    data = damage.with_checksum(*FORGERIES[forgery](*original), "npformer")
    for name in ("last", "best"):
        (place / f"{name}.safetensors").write_bytes(data)
    files = files_below(place.parent)
    for name, arguments in COMMANDS.items():
        assert main(arguments) == 2, name
        said = capsys.readouterr().err
        assert said.startswith("npformer: "), (name, said)
        assert said.count("\n") == 1, (name, said)
        assert ".safetensors" in said or " in the checkpoint: " in said, (name, said)
        assert files_below(place.parent) == files, name
    with pytest.raises(UserError):
        load("run")


def test_the_original_is_accepted(original, place, capsys):
    data = damage.with_checksum(*original, "npformer")
    (place / "last.safetensors").write_bytes(data)
    assert main(COMMANDS["translate"]) == 0
