"""The finder of heads: which heads attend from a token, or to it, and how strongly."""

import pytest
from browser import visit
from page_numbers import array, shown_number
from page_steps import wait_until
from readers import make_reader, open_view

pytestmark = pytest.mark.browser

FROM, TO = ('.finder select[aria-label="Token that attends"]', '.finder select[aria-label^="Token that is"]')
ENCODER = [f"encoder.{i}.self_attention" for i in range(2)]
OF_DECODER = [f"decoder.{i}.{name}" for i in range(2) for name in ("self_attention", "cross")]


@pytest.fixture
def reader(reader):
    open_view(reader, "Attention")
    return reader


def weights(page, name):
    return array(page, f"{name}.attention.weights")


def found(page):
    """Return the listed heads, as triples of title, tokens and weight."""
    return [item.locator(">*").all_text_contents() for item in page.locator(".found li").all()]


def titled(name, head):
    stack, layer, kind = name.split(".")
    return f"{'cross-attention' if kind == 'cross' else stack}, layer {layer}, head {head}"


def check(page, expected):
    """Check the list against {(sublayer, head): weight}."""
    listed = found(page)
    assert {title for title, *_ in listed} == {titled(*key) for key in expected}
    by_title = {titled(*key): weight for key, weight in expected.items()}
    shown = [shown_number(cells[-1]) for cells in listed]
    assert shown == sorted(shown, reverse=True)
    for title, *_, weight in listed:
        assert shown_number(weight) == pytest.approx(by_title[title], abs=5e-4)


def test_each_head_is_listed_with_the_token_to_which_a_token_attends_most(reader):
    assert found(reader.page) == []
    assert "Choose a token" in reader.page.text_content(".finder")
    reader.page.select_option(FROM, "source.3")
    check(
        reader.page,
        {(name, h): weights(reader.page, name)[h, 3].max() for name in ENCODER for h in range(2)},
    )
    title, tokens, _, _ = found(reader.page)[0]
    name, head = next((name, h) for name in ENCODER for h in range(2) if titled(name, h) == title)
    key = weights(reader.page, name)[head, 3].argmax()
    assert tokens == f"tired attends to {['the', 'dog', 'is', 'tired', '</S>'][key]}"
    equal = "A head that attends to all 5 keys alike has the weight 0.2"
    assert equal in reader.page.text_content(".finder")
    bar = reader.page.locator(".found .share i").first
    assert float(bar.evaluate("bar => parseFloat(bar.style.width)")) == pytest.approx(
        100 * weights(reader.page, name)[head, 3].max(), rel=1e-3
    )  # a full bar is the weight 1


def test_two_tokens_are_chosen(reader):
    reader.page.select_option(FROM, "target.0")
    expected = {(name, h): weights(reader.page, name)[h, 0].max() for name in OF_DECODER for h in range(2)}
    check(reader.page, expected)
    reader.page.select_option(TO, "source.1")
    crosses = [name for name in OF_DECODER if name.endswith("cross")]
    check(reader.page, {(name, h): weights(reader.page, name)[h, 0, 1] for name in crosses for h in range(2)})
    reader.page.select_option(FROM, "")
    to_dog = {
        (name, h): weights(reader.page, name)[h, :, 1].max() for name in ENCODER + crosses for h in range(2)
    }
    check(reader.page, to_dog)
    reader.page.select_option(FROM, "source.0")
    reader.page.select_option(TO, "target.0")
    assert "No attention of this model connects these two tokens." in reader.page.text_content(".finder")


def test_a_head_of_the_list_is_opened_with_its_weight_pinned(reader):
    reader.page.select_option(FROM, "source.3")
    reader.page.select_option(TO, "source.1")
    title, _, _, weight = found(reader.page)[0]
    reader.press(".found .follow")
    told = reader.page.text_content("#attention p[aria-live]")
    assert told == f"{title}: The attention weight from “tired” to “dog” is {weight}."
    assert reader.page.is_visible("#attention-pinned")
    assert reader.page.text_content(".found .chosen .follow") == title
    reader.press("#switch-head")
    assert f"{title} (off)" in [cells[0] for cells in found(reader.page)]
    before = found(reader.page)
    visit(reader.page, reader.page.evaluate("location.hash"))  # the link has the chosen tokens
    assert found(reader.page) == before


def test_only_the_token_with_which_a_reader_stays_is_announced(reader):
    """An arrow key in the closed list chooses a token with each press."""
    reader.page.evaluate(
        """from => {
        const told = document.querySelector("#attention-told");
        window.said = [];
        new MutationObserver((written) => {
            const texts = written.flatMap(({ addedNodes }) => [...addedNodes].map((one) => one.textContent));
            if (told.ariaLive === "polite") said.push(...texts);
        }).observe(told, { childList: true });
        for (const token of [1, 2, 3]) {
            document.querySelector(from).value = `source.${token}`;
            document.querySelector(from).dispatchEvent(new Event("change"));
        }
    }""",
        FROM,
    )
    wait_until(reader.page, "said.length > 0")
    assert reader.page.evaluate("said") == [reader.page.text_content("#attention-told")]


def test_a_text_has_tokens_of_one_side(chromium, html_of_gpt):
    with make_reader("keyboard", chromium, html_of_gpt) as reader:
        open_view(reader, "Attention")
        assert reader.page.locator(f"{FROM} optgroup").count() == 1
        reader.page.select_option(FROM, "target.3")
        assert len(found(reader.page)) == 4
        assert "␣ → c" in found(reader.page)[0][1]
