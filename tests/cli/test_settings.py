"""npformer train --set: any value of any setting."""

from itertools import product

import pytest

from npformer.cli import train
from npformer.cli.main import main
from npformer.data.dataset import task_dataset
from npformer.models.registry import architecture_class

STRANGE = ["True", "None", "x", "", "[1]", "(1,)", "{}", "{1: 2}", "-1", "0", "1e300", "1j", "b'x'", "..."]
DATA = {
    "small": ["--task", "copy"],
    "rnn": ["--task", "copy"],
    "gpt-small": ["--text", "train.en"],
    "bert-small": ["--preset", "bert-small", "--text", "train.en"],
}


class WouldBegin(Exception):
    """Raised where a training would begin."""


@pytest.mark.parametrize("architecture", DATA)
def test_every_setting_takes_or_refuses_any_value(architecture, tmp_path, monkeypatch, capsys):
    """Each value either begins a training or is refused in one sentence, and never ends in a traceback."""

    def begin(*arguments, **settings):
        raise WouldBegin

    dataset = task_dataset("copy", n=20)
    monkeypatch.setattr(train, "task_dataset", lambda task: dataset)
    monkeypatch.setattr(train, "train_run", begin)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.en").write_text("the cat sleeps\nthe dog eats\n" * 10)
    names = list(architecture_class(architecture).__dataclass_fields__)
    if architecture == "small":  # these are the same for all architectures
        names += train.TrainingConfig.__dataclass_fields__
    for name, value in product(names, STRANGE):
        line = ["train", *DATA[architecture], "--architecture", architecture, "--set", f"{name}={value}"]
        try:
            assert main(line) == 2, line
        except WouldBegin:
            continue
        assert capsys.readouterr().err.count("\n") == 1, line
