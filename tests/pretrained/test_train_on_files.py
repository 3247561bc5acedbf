"""npformer.train: two files give a run and its translator."""

import pytest

import npformer
from npformer import UserError

TINY = {"d_model": 16, "d_ff": 16, "n_heads": 2, "n_layers": 1, "validate_every": 3}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Return a folder with two small files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.en").write_text("the cat sleeps\nthe dog eats\na cat eats\n" * 10, encoding="utf-8")
    (tmp_path / "train.fr").write_text("le chat dort\nle chien mange\nun chat mange\n" * 10, encoding="utf-8")
    return tmp_path


def test_a_run_is_trained_and_loaded(place):
    events = []
    run = npformer.train(
        "train.en", place / "train.fr", steps=6, report=events.append, filtered=False, **TINY
    )
    assert (run.folder / "best.safetensors").is_file()
    assert str(run.folder) == "runs/train"
    assert run.result.finished
    assert events
    assert run.translator.model.config.d_model == 16
    assert isinstance(run.translator.translate("the cat sleeps"), str)
    with pytest.raises(UserError, match="runs/train already holds a run"):
        npformer.train("train.en", "train.fr", steps=6, **TINY)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"preset": "smal"}, "did you mean small?"),
        ({"preset": "multi30k-en-de"}, "the preset multi30k-en-de trains on its own corpus"),
        ({"architecture": "paper-bas"}, "did you mean paper-base?"),
        ({"d_modell": 10}, "there is no setting d_modell"),
        ({"steps": 0}, "steps is 0"),
    ],
)
def test_invalid_arguments_are_refused(place, arguments, words):
    with pytest.raises(UserError, match=words):
        npformer.train("train.en", "train.fr", **arguments)
    assert not (place / "runs").exists()
