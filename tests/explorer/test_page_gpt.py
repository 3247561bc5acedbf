"""The live page of a GPT of characters: its data, its texts, and the views that it has of its own."""

import json

import numpy as np
import pytest
from browser import open_page
from page_numbers import page_numbers
from page_steps import Steps, wait_until_generated, wait_until_ready
from readers import loss, make_reader, open_view, text
from tiny_runs import CHARACTERS

from npformer.data.text_codecs import CharacterCodec
from npformer.errors import UserError
from npformer.explorer import explore
from npformer.explorer.model_data import MOST_TOKENS, explorer_name, labels_of
from npformer.explorer.recorded import recorded_data

TEXT, OTHER = "the cat\nate", "a dog"
LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "n_kv_heads": 1, "bias": False}


@pytest.fixture(scope="module")
def gpt2(loaded_gpt):
    return loaded_gpt(context=60)


@pytest.fixture(scope="module")
def llama(loaded_gpt):
    return loaded_gpt(context=60, **LLAMA)


# The data


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_the_page_carries_every_parameter_in_order_and_the_table_of_rotary_positions(name, request):
    loaded = request.getfixturevalue(name)
    numbers = page_numbers(explore(loaded, TEXT))
    positions = numbers.pop("positions")
    assert list(numbers) == [explorer_name(name) for name, _ in loaded.model.named_parameters()]
    for value, parameter in zip(numbers.values(), loaded.model.parameters(), strict=True):
        np.testing.assert_array_equal(value, parameter.value.astype("f4"))
    rotary = loaded.model.layers[0].self_attention.rotary
    if rotary is None:
        assert positions.size == 0
    else:
        np.testing.assert_array_equal(positions, np.hstack([rotary.cos, rotary.sin]).astype("f4"))


def test_the_head_of_the_page(gpt2):
    page = explore(gpt2, TEXT)
    assert (page.kind, page.head["architecture"]) == ("live", "gpt")
    assert page.head["characters"] == list(CHARACTERS.tokens)
    assert page.head["target_words"][:3] == ["↵", "␣", "a"]
    assert page.head["example"] == {"source": TEXT, "target": None, "text_ids": CHARACTERS.encode(TEXT)}
    assert json.loads(json.dumps(page.head)) == page.head


def test_signs_of_characters_that_one_does_not_see():
    assert labels_of("\n\t ab") == ["↵", "⇥", "␣", "a", "b"]
    assert labels_of("\n ␣") == ["↵", " ", "␣"]  # a sign that is a character itself stands for nothing else


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([""], "the text '' has 0 characters: give at least two"),
        (["a"], "the text 'a' has 1 character: give at least two"),
        (["ab" * 25], "has 50 characters, and a page of this model has room for 48: give a shorter one"),
        (["the fox"], "the text has the character 'f', which the model has not seen in training"),
        ([TEXT, "the dog"], "a language model reads one text"),
    ],
)
def test_bad_texts_are_refused_in_one_sentence(texts, message, gpt2):
    with pytest.raises(UserError, match=message):
        explore(gpt2, *texts)


def test_a_text_as_long_as_the_page_or_the_context(gpt2, loaded_gpt):
    assert len(explore(gpt2, "a" * MOST_TOKENS).head["example"]["text_ids"]) == MOST_TOKENS
    short = loaded_gpt(context=5)
    assert explore(short, "a dog").kind == "live"
    with pytest.raises(UserError, match="has 6 characters, and a page of this model has room for 5"):
        explore(short, "a dogs")


# The page


@pytest.mark.browser
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_live_page_has_the_steps_of_a_recorded_one(name, request, chromium):
    """The same names, operations, lines of code and inputs, so that both are shown in the same way."""
    loaded = request.getfixturevalue(name)
    steps = Steps(recorded_data(loaded, TEXT))
    with open_page(chromium, explore(loaded, TEXT).html) as page:
        wait_until_ready(page)
        found = page.evaluate("""npformer.explorer.tape.steps.map(({ path, op, line, shape, inputs }) =>
            [path, op, line, shape, inputs.map((input) => input.path)])""")
        assert {*steps.by_path} <= {*page.evaluate("npformer.paths()")}
    wanted = [
        [s["path"], s["op"], s["line"], s["shape"], [steps.all[i][0]["path"] for i in s["inputs"]]]
        for s, _, _ in steps.all
    ]
    # of the table of positions, a recorded page has some rows
    rows = "embedding.positions.weight"
    assert sorted(s for s in found if s[0] != rows) == sorted(s for s in wanted if s[0] != rows)


@pytest.mark.browser
def test_tokens_and_continuation_are_those_of_the_package(chromium, html_of_gpt, gpt2):
    with open_page(chromium, html_of_gpt) as page:
        wait_until_ready(page)
        for written in (TEXT, OTHER, "\n\n a", "  ", "the cat and the dog and the cat and the dog and"):
            page.evaluate("text => npformer.set_sentence(text)", written)
            assert page.evaluate("npformer.explorer.session.ids.targetIn") == CHARACTERS.encode(written)
            assert page.evaluate("npformer.explorer.session.texts.source") == written
            continued = page.evaluate("npformer.explorer.session.output")
            assert written + continued == gpt2.generate(written, min(16, 61 - len(written)))


@pytest.mark.browser
def test_characters_outside_the_basic_plane(chromium, loaded_gpt):
    """A character is a code point, as in Python, and not one of the two units by which JavaScript counts."""
    codec = CharacterCodec("a😀b\n")
    with open_page(chromium, explore(loaded_gpt(codec), "a😀").html) as page:
        page.evaluate("npformer.set_sentence('b😀a😀')")
        assert page.evaluate("npformer.explorer.session.ids.targetIn") == codec.encode("b😀a😀")


@pytest.fixture(params=["keyboard", "finger"])
def reader(request, chromium, html_of_gpt):
    with make_reader(request.param, chromium, html_of_gpt) as made:
        yield made


def source_of(reader):
    return reader.page.evaluate("npformer.explorer.session.texts.source")


@pytest.mark.browser
def test_a_text_is_typed_with_a_sign_for_the_end_of_a_line_and_the_model_goes_on(reader, gpt2):
    assert text(reader, "#source-text") == TEXT.replace("\n", "↵")
    reader.press("#open-form")
    assert reader.page.input_value("#source-input") == TEXT.replace("\n", "↵")
    assert reader.page.is_hidden("#target-input")
    assert reader.page.is_hidden("#own")  # the text goes on where the reader writes with the model
    reader.write("#source-input", "a cat↵at")
    reader.press("#sentence-form button.main")
    assert source_of(reader) == "a cat\nat"
    open_view(reader, "The model")
    reader.press("#write summary")
    reader.press(".written .token")  # a text keeps its first character, and one alone has nothing to predict
    assert reader.page.evaluate("npformer.writer.tokens.length") == 1
    assert reader.page.is_disabled("#write > div:nth-child(3) button:nth-child(4)")
    reader.press("#write > div:nth-child(3) button:nth-child(3)")  # begin again
    reader.page.fill("#write-temperature", "0")
    reader.press("#write > div:nth-child(3) button:nth-child(2)")  # write to the end
    reader.press("#write > div:nth-child(3) button:nth-child(4)")  # send this text through the model
    assert source_of(reader) == gpt2.generate("a cat\nat", MOST_TOKENS - 8)


@pytest.mark.browser
def test_a_text_that_cannot_be_read_is_refused(reader):
    before = loss(reader)
    reader.press("#open-form")
    for typed, message in (
        ("a fox", "The model does not know “f”, “x”: use characters of its vocabulary."),
        ("a", "The text is too short: write at least two characters."),
        ("ab" * 30, "The text has 60 characters, and the page has room for 48: shorten it."),
    ):
        reader.write("#source-input", typed)
        reader.press("#sentence-form button.main")
        assert text(reader, "#message") == message
        assert loss(reader) == before


@pytest.mark.browser
def test_a_token_is_replaced_and_a_field_stays_as_the_reader_left_it(reader):
    """Also when the output follows an earlier change while the reader writes."""
    open_view(reader, "What if")
    reader.page.select_option("#what-tokens select", index=1)
    reader.write("#what-tokens input", "a")
    reader.page.keyboard.press("Tab")
    assert text(reader, "#source-text") == "tae cat↵ate"
    targets = reader.page.evaluate("npformer.explorer.session.ids.targetOut")
    assert targets[:-1] == CHARACTERS.encode("ae cat\nate")
    reader.page.select_option("#what-tokens select", index=2)
    field = "#what-tokens input"
    reader.write(field, "␣␣")
    reader.page.keyboard.press("Control+a")
    reader.page.evaluate("npformer.explorer.generateLater()")  # the output comes now, on any machine
    wait_until_generated(reader.page)
    assert reader.page.input_value(field) == "␣␣"
    reader.page.keyboard.type("␣")  # what was selected is still selected
    reader.page.keyboard.press("Tab")
    assert source_of(reader) == "ta  cat\nate"


@pytest.mark.browser
def test_a_gradient_a_head_a_mask_and_a_training_step(reader):
    before = loss(reader)
    open_view(reader, "Check a gradient")
    assert "The gradient agrees with the slope." in text(reader, "#slope .verdict")
    # a masked score has no gradient, so another number is proposed
    assert reader.page.evaluate("npformer.gradients(npformer.explorer.result.path)[npformer.explorer.index]")
    open_view(reader, "What if")
    assert reader.page.locator("#changes .row").count() == 2
    reader.press("#changes .row button")
    reader.change_cell("#mask")
    assert text(reader, "#changed") == "2 changes"
    changed = loss(reader)
    assert changed != before
    assert text(reader, "#changes .comparison > table tbody tr:nth-child(2) th") == "Continuation"
    open_view(reader, "Teach it")
    reader.press("#training .main")
    assert loss(reader) < changed
    reader.press("#teach-single > button:last-child")
    assert loss(reader) == changed
