"""The live page of a GPT of characters: its data, its numbers after what a reader may do, and its views."""

import copy
import json

import numpy as np
import pytest
from browser import open_page
from page_numbers import arrays_of, page_numbers
from page_steps import Steps, wait_until_generated, wait_until_ready
from pass_record import NO_TARGET, PassRecord, compare
from readers import DESK, UNNAMED, VIEWS, loss, make_reader, open_view, text
from tiny_runs import CHARACTERS, gpt_checkpoint

import npformer
from npformer.data.text_codecs import CharacterCodec
from npformer.errors import UserError
from npformer.explorer import explore
from npformer.explorer.model_data import MOST_TOKENS, explorer_name
from npformer.explorer.recorded import recorded_data
from npformer.explorer.text_data import labels_of
from npformer.storage.checkpoint import save_checkpoint
from npformer.training.optimizer import Adam

TEXT, OTHER = "the cat\nate", "a dog"

LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "n_kv_heads": 1, "bias": False}
MODELS = {"gpt2": {"context": 60}, "llama": {"context": 60, **LLAMA}}


def loaded_gpt(folder, **changes):
    """Return a tiny GPT of characters, as npformer.load returns one."""
    save_checkpoint(gpt_checkpoint(**changes), folder / "run.safetensors")
    return npformer.load(folder / "run.safetensors")


@pytest.fixture(scope="module", params=MODELS)
def loaded(request, tmp_path_factory):
    return loaded_gpt(tmp_path_factory.mktemp("run"), **MODELS[request.param])


@pytest.fixture(scope="module")
def html(loaded):
    return explore(loaded, TEXT).html


def model_of(loaded):
    """Return the model in float64, with the numbers of float32 that the page carries."""
    return copy.deepcopy(loaded.model).astype(np.float32).astype(np.float64)


def ids_of(text=TEXT):
    ids = CHARACTERS.encode(text)
    return [], ids, [*ids[1:], NO_TARGET]


# The data


def test_the_page_carries_every_parameter_in_order_and_the_table_of_rotary_positions(loaded):
    page = explore(loaded, TEXT)
    numbers = page_numbers(page)
    positions = numbers.pop("positions")
    assert list(numbers) == [explorer_name(name) for name, _ in loaded.model.named_parameters()]
    for value, parameter in zip(numbers.values(), loaded.model.parameters(), strict=True):
        np.testing.assert_array_equal(value, parameter.value.astype("f4"))
    rotary = loaded.model.layers[0].attention.rotary
    if rotary is None:
        assert positions.size == 0
    else:
        np.testing.assert_array_equal(positions[:, :2], rotary.cos.astype("f4"))
        np.testing.assert_array_equal(positions[:, 2:], rotary.sin.astype("f4"))


def test_the_head_of_the_page(loaded):
    page = explore(loaded, TEXT)
    assert page.kind == "live"
    assert page.head["architecture"] == "gpt"
    assert page.head["characters"] == list(CHARACTERS.tokens)
    assert page.head["target_words"][:3] == ["↵", "␣", "a"]
    assert page.head["example"] == {"source": TEXT, "target": None, "text_ids": CHARACTERS.encode(TEXT)}
    assert json.loads(json.dumps(page.head)) == page.head


def test_signs_of_characters_that_one_does_not_see():
    assert labels_of("\n\t ab") == ["↵", "⇥", "␣", "a", "b"]
    assert labels_of("\n ␣") == ["↵", " ", "␣"]  # a sign that is a character itself stands for nothing else


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text '' has 0 characters: give at least two"),
        ("a", "the text 'a' has 1 character: give at least two"),
        (
            "ab" * 25,
            "the text has 50 characters, and a page of this model has room for 48: give a shorter one",
        ),
        ("the fox", "the text has the character 'f', which the model has not seen in training"),
    ],
)
def test_bad_texts_are_refused_in_one_sentence(text, message, loaded):
    with pytest.raises(UserError, match=message):
        explore(loaded, text)


def test_a_text_as_long_as_the_page_or_the_context(loaded, tmp_path):
    assert len(explore(loaded, "a" * MOST_TOKENS).head["example"]["text_ids"]) == MOST_TOKENS
    short = loaded_gpt(tmp_path, context=5)
    assert explore(short, "a dog").kind == "live"
    with pytest.raises(UserError, match="has 6 characters, and a page of this model has room for 5"):
        explore(short, "a dogs")


def test_a_target_is_refused(loaded):
    with pytest.raises(UserError, match="a language model reads one text"):
        explore(loaded, TEXT, "the dog")


# The numbers


@pytest.fixture
def page(chromium, html):
    with open_page(chromium, html) as opened:
        wait_until_ready(opened)
        yield opened


@pytest.mark.browser
def test_the_page_begins_with_its_text(page, loaded):
    record = PassRecord(model_of(loaded), ids_of())
    compare(record, arrays_of(page))
    assert page.evaluate("npformer.loss()") == pytest.approx(float(record.values["loss"]), rel=1e-12)


@pytest.mark.browser
def test_a_live_page_has_the_steps_of_a_recorded_one(page, loaded):
    """The same names, operations, lines of code and inputs, so that both are shown in the same way."""
    steps = Steps(recorded_data(loaded, TEXT))
    found = page.evaluate("""npformer.explorer.tape.steps.map(({ path, op, line, shape, inputs }) =>
        [path, op, line, shape, inputs.map((input) => input.path)])""")
    wanted = [
        [s["path"], s["op"], s["line"], s["shape"], [steps.all[i][0]["path"] for i in s["inputs"]]]
        for s, _, _ in steps.all
    ]
    found = [step for step in found if step[0] != "embedding.positions.weight"]  # of which it has some rows
    wanted = [step for step in wanted if step[0] != "embedding.positions.weight"]
    assert sorted(found) == sorted(wanted)
    assert {*steps.by_path} <= {*page.evaluate("npformer.paths()")}


@pytest.mark.browser
def test_another_text(page, loaded):
    page.evaluate("text => npformer.set_sentence(text)", OTHER)
    compare(PassRecord(model_of(loaded), ids_of(OTHER)), arrays_of(page))


@pytest.mark.browser
def test_changes(page, loaded):
    changes = {
        "heads": {"layers.1.self_attention": [1]},
        "masks": {"layers.0.self_attention": [[0, 2, True], [3, 0, False]]},
        "values": {"layers.0.feed_forward.outer.y": [[2, 1.5]]},
    }
    page.evaluate("edits => npformer.edit(edits)", changes)
    compare(PassRecord(model_of(loaded), ids_of(), **changes), arrays_of(page))
    page.evaluate("npformer.edit({})")
    compare(PassRecord(model_of(loaded), ids_of()), arrays_of(page))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "lr", "tolerance"), [("gradient descent", 0.01, 1e-12), ("adam", 0.001, 1e-9)]
)
def test_five_steps(chromium, tmp_path, name, lr, tolerance):
    """Without biases: the gradients of those of keys are rounding alone, which Adam would amplify."""
    loaded = loaded_gpt(tmp_path, **MODELS["llama"])
    model = model_of(loaded)
    adam = Adam(model)
    with open_page(chromium, explore(loaded, TEXT).html) as page:
        wait_until_ready(page)
        for _ in range(5):
            page.evaluate("([lr, optimizer]) => npformer.step(lr, { optimizer })", [lr, name])
            PassRecord(model, ids_of())
            if name == "adam":
                adam.step(lr)
            else:
                model.values -= lr * model.grads
        compare(PassRecord(model, ids_of()), arrays_of(page), tolerance)


@pytest.mark.browser
def test_tokens_and_continuation_are_those_of_the_package(page, loaded):
    for written in (TEXT, OTHER, "\n\n a", "  ", "the cat and the dog and the cat and the dog and"):
        page.evaluate("text => npformer.set_sentence(text)", written)
        assert page.evaluate("npformer.explorer.session.ids.targetIn") == CHARACTERS.encode(written)
        assert page.evaluate("npformer.explorer.session.texts.source") == written
        room = loaded.model.config.context - len(written)
        continued = page.evaluate("npformer.explorer.session.output")
        assert written + continued == loaded.generate(written, min(16, room + 1))


@pytest.mark.browser
def test_characters_outside_the_basic_plane(chromium, tmp_path):
    """A character is a code point, as in Python, and not one of the two units by which JavaScript counts."""
    codec = CharacterCodec("a😀b\n")
    checkpoint = gpt_checkpoint(vocab_size=4)
    object.__setattr__(checkpoint, "codecs", {"text": codec.to_json()})
    save_checkpoint(checkpoint, tmp_path / "run.safetensors")
    with open_page(chromium, explore(npformer.load(tmp_path / "run.safetensors"), "a😀").html) as page:
        wait_until_ready(page)
        page.evaluate("npformer.set_sentence('b😀a😀')")
        assert page.evaluate("npformer.explorer.session.ids.targetIn") == codec.encode("b😀a😀")


# The views


@pytest.fixture(params=["keyboard", "finger"])
def reader(request, chromium, html):
    with make_reader(request.param, chromium, html) as made:
        wait_until_ready(made.page)
        yield made


@pytest.mark.browser
def test_a_text_is_typed_with_a_sign_for_the_end_of_a_line(reader):
    assert text(reader, "#source-text") == TEXT.replace("\n", "↵")
    reader.press("#open-form")
    assert reader.page.input_value("#source-input") == TEXT.replace("\n", "↵")
    reader.write("#source-input", "a cat↵at")
    reader.press("#sentence-form button.main")
    assert reader.page.evaluate("npformer.explorer.session.texts.source") == "a cat\nat"
    assert reader.page.is_hidden("#target-input")


@pytest.mark.browser
def test_the_model_goes_on(reader, loaded):
    reader.press("#open-form")
    assert text(reader, "#own") == "Let the model go on"
    reader.press("#own")
    assert reader.page.evaluate("npformer.explorer.session.texts.source") == loaded.generate(TEXT, 16)
    compare(PassRecord(model_of(loaded), ids_of(loaded.generate(TEXT, 16))), arrays_of(reader.page))
    for _ in range(2):
        reader.press("#own")
    assert len(reader.page.evaluate("npformer.explorer.session.ids.targetIn")) == MOST_TOKENS
    reader.press("#own")
    assert "The text fills the page, with room for 48" in text(reader, "#message")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("a fox", "The model does not know “f”, “x”: use characters of its vocabulary."),
        ("a", "The text is too short: write at least two characters."),
        ("ab" * 30, "The text has 60 characters, and the page has room for 48: shorten it."),
    ],
)
def test_a_text_that_cannot_be_read_is_refused(reader, typed, message):
    before = loss(reader)
    reader.press("#open-form")
    reader.write("#source-input", typed)
    reader.press("#sentence-form button.main")
    assert text(reader, "#message") == message
    assert loss(reader) == before


@pytest.mark.browser
def test_a_token_is_replaced_in_what_is_read_and_in_what_is_to_be_predicted(reader, loaded):
    open_view(reader, "What if")
    reader.write('#changes input[aria-label="token 2"]', "a")
    reader.page.keyboard.press("Tab")
    assert text(reader, "#source-text") == "tae cat↵ate"
    compare(PassRecord(model_of(loaded), ids_of("tae cat\nate")), arrays_of(reader.page))
    reader.write('#changes input[aria-label="token 3"]', "␣")
    reader.page.keyboard.press("Tab")
    assert reader.page.evaluate("npformer.explorer.session.texts.source") == "ta  cat\nate"


@pytest.mark.browser
def test_a_field_stays_as_the_reader_left_it_when_the_output_follows_an_earlier_change(reader):
    field = '#changes input[aria-label="token 3"]'
    open_view(reader, "What if")
    reader.write('#changes input[aria-label="token 2"]', "a")
    reader.page.keyboard.press("Tab")
    reader.write(field, "␣␣")
    reader.page.keyboard.press("Control+a")
    reader.page.evaluate("npformer.explorer.generateLater()")  # the output comes now, on any machine
    wait_until_generated(reader.page)
    assert reader.page.input_value(field) == "␣␣"
    reader.page.keyboard.type("␣")  # what was selected is still selected
    reader.page.keyboard.press("Tab")
    assert reader.page.evaluate("npformer.explorer.session.texts.source") == "ta  cat\nate"


@pytest.mark.browser
def test_a_head_and_a_cell_of_the_mask_are_changed(reader):
    before = loss(reader)
    open_view(reader, "What if")
    assert reader.page.locator("#changes .row").count() == 2
    reader.press("#changes .row button")
    reader.change_cell("#mask")
    assert text(reader, "#changed") == "2 changes"
    assert loss(reader) != before
    assert text(reader, "#changes .comparison tbody tr:nth-child(2) th") == "Continuation"


@pytest.mark.browser
def test_a_gradient_is_checked_and_a_training_step_lowers_the_loss(reader):
    before = loss(reader)
    open_view(reader, "Check a gradient")
    assert "The gradient agrees with the slope." in text(reader, "#slope .verdict")
    # a masked score has no gradient, so another number is proposed
    assert reader.page.evaluate("npformer.gradients(npformer.explorer.result.path)[npformer.explorer.index]")
    open_view(reader, "Training step")
    reader.press("#training .main")
    assert loss(reader) < before
    reader.press("#training .controls > button:last-child")
    assert loss(reader) == before


@pytest.mark.browser
def test_a_link_shows_the_same_view(reader):
    reader.page.evaluate("text => npformer.set_sentence(text)", "a\ncat  and ")
    open_view(reader, "What if")
    reader.press("#changes .row button")
    state = """(() => {
        const { view, result, index, session } = npformer.explorer;
        return [view, result.path, index, npformer.loss(), session.texts, session.output, location.hash];
    })()"""
    wait_until_generated(reader.page)
    before = reader.page.evaluate(state)
    reader.page.reload()
    wait_until_ready(reader.page)
    wait_until_generated(reader.page)
    assert reader.page.evaluate(state) == before


@pytest.mark.browser
def test_every_step_of_both_directions_is_shown(chromium, html):
    """open_page fails if a view writes an error."""
    with open_page(chromium, html, **DESK) as page:
        wait_until_ready(page)
        for direction in ("forward", "backward"):
            page.click(f'#direction button[data-choice="{direction}"]')
            count = page.evaluate("npformer.explorer.timeline.length")
            assert count > 60
            for position in range(count):
                page.evaluate(
                    "i => { npformer.explorer.goToPosition(i); npformer.explorer.changed(); }", position
                )
                assert page.text_content("#step-sentence").endswith(".")
                assert page.text_content("#code .now")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_view_is_wider_than_the_window_and_everything_has_a_name(chromium, html, width, scheme):
    with open_page(chromium, html, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        wait_until_ready(page)
        page.click("#open-form")
        for number, view in enumerate(VIEWS, 1):
            page.click(f"#views button:nth-child({number})")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            assert page.evaluate(UNNAMED) == [], view
