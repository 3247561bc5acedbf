"""npformer saliency, and npformer attention for models that read one text."""

import pytest

import npformer
from npformer.cli.main import main
from npformer.plots import text_problems

pytestmark = pytest.mark.usefixtures("runs")
TEXTS = {"gpt": "the cat ate", "bert": "the [MASK] sees a dog", "translator": "a man is riding"}


def printed(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr()


@pytest.mark.parametrize("name", TEXTS)
def test_the_table_and_the_picture(name, capsys, figures):
    settings = ["--method", "gradient", "--position", "1"]
    out = printed(capsys, "saliency", TEXTS[name], "--model", f"runs/{name}", *settings).out
    found = npformer.load(f"runs/{name}").saliency(TEXTS[name], method="gradient", position=1)
    assert out == f"{found.table()}\nwrote saliency.png\n"
    assert text_problems(figures["saliency.png"]) == []


def test_the_options_are_those_of_the_method(capsys):
    options = "--target d --score logit --tolerance 0.001 --points 2000 --out a.svg"
    said = printed(capsys, "saliency", TEXTS["gpt"], "--model", "runs/gpt", *options.split())
    found = npformer.load("runs/gpt").saliency(
        TEXTS["gpt"], target="d", score="logit", tolerance=0.001, most_points=2000
    )
    assert said.out == f"{found.table()}\nwrote a.svg\n"
    assert said.err == ""
    assert abs(found.gap) < 0.001


def test_too_few_points_and_unknown_words_are_reported(capsys):
    few = ["--points", "8", "--tolerance", "1e-9"]
    said = printed(capsys, "saliency", TEXTS["translator"], "--model", "runs/translator", *few).err
    assert ": give more points, with --points" in said
    said = printed(capsys, "saliency", "the [MASK] yak", "--model", "runs/bert", "--method", "gradient").err
    assert said == "npformer: the model does not know 'yak' and reads <UNK> instead\n"


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_attention_of_a_text(name, capsys, figures):
    out = printed(capsys, "attention", TEXTS[name], "--model", f"runs/{name}").out
    assert out == "wrote attention/self_grid.png\nwrote attention/self_lines.png\n"
    assert len(figures) == 2
    assert all(text_problems(figure) == [] for figure in figures.values())
