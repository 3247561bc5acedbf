"""npformer lens and npformer patch: they print and draw what the methods of the models return."""

import shlex

import pytest

import npformer
from npformer.cli.main import main
from npformer.plots import text_problems

pytestmark = pytest.mark.usefixtures("runs")
TEXTS = {
    "gpt": ("the cat ate", "the dog ate"),
    "bert": ("the [MASK] sees a dog", "the [MASK] sees a cat"),
    "translator": ("a man is riding", "is a man riding"),  # of as many pieces
}
every_model = pytest.mark.parametrize("name", TEXTS)


def printed(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr()


@every_model
def test_predictions_of_every_layer(name, capsys, figures):
    text, model = TEXTS[name][0], f"runs/{name}"
    found = npformer.load(model).lens(text)
    assert printed(capsys, "lens", text, "--model", model).out == f"{found.table()}\nwrote lens.png\n"
    assert text_problems(figures["lens.png"]) == []
    out = printed(capsys, "lens", text, "--model", model, "--position", "1").out
    assert out == f"{found.table(1)}\nwrote lens.png\n"


@every_model
@pytest.mark.parametrize("what", ["layers", "heads"])
def test_patches(name, what, capsys, figures):
    model = f"runs/{name}"
    out = printed(capsys, "patch", *TEXTS[name], "--model", model, "--what", what, "--position", "1").out
    found = npformer.load(model).patch(*TEXTS[name], what=what, position=1)
    assert out == f"{found.table()}\nwrote patch.png\n"
    assert text_problems(figures["patch.png"]) == []


def test_the_table_stands_without_a_picture(capsys, monkeypatch):
    def refuse(*arguments):
        raise npformer.UserError("it does not fit")

    monkeypatch.setattr("npformer.plots.prediction_grid", refuse)
    out, err = printed(capsys, "lens", "the cat", "--model", "runs/gpt")
    assert out == f"{npformer.load('runs/gpt').lens('the cat').table()}\n"
    assert err == "npformer: there is no picture, because it does not fit\n"


def test_the_usual_places():
    """A GPT predicts at its last token, a BERT in its gap, a translator where the translations part."""
    gpt, bert = npformer.load("runs/gpt"), npformer.load("runs/bert")
    assert gpt.attribution(TEXTS["gpt"][0]).position == len(TEXTS["gpt"][0]) - 1
    assert bert.attribution(TEXTS["bert"][0]).position == 1
    translator = npformer.load("en-de")
    found = translator.patch("A man is sleeping.", "A woman is sleeping.")
    assert (found.target, found.versus, found.position) == ("ein", "eine", 0)
    found = translator.patch("A man is sleeping.", "A man is reading.")
    assert (found.target, found.versus, found.position) == ("schläft", "liest", 2)
    # the target stands at this place of the translation
    assert translator.attribution("A man is sleeping.", target="schläft").position == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lens '' --model runs/gpt", "the argument after lens is empty"),
        ("lens a --model runs/gpt --target b", "--target has an effect only with --parts"),
        ("lens a --model runs/gpt --position 9", "position is 9: there is 1 position, counted from 0"),
        ("lens a --model runs/gpt --parts --target 'the cat'", "the target 'the cat' is 7 tokens of this"),
        ("lens 'a man' --model en-de --parts --target ☃", "this model lacks the target '☃'"),
        ("lens a --model runs/gpt --out a.txt", "cannot save a picture as 'a.txt'"),
        ("lens a --model runs/gpt --parts --target b --versus b", "target and versus are the same token"),
        ("patch a bb --model runs/gpt", "the texts have 1 and 2 tokens"),
        ("patch a b --model runs/gpt --what x", "choose one of layers, attention, feed-forward, heads"),
        ("patch 'the cat' 'the dog' --model runs/bert", "has no [MASK]: write it in place of a word"),
    ],
)
def test_what_is_refused(arguments, message, capsys):
    assert main(shlex.split(arguments)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
