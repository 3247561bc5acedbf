"""What the view of a step says and where its controls lead, in Chromium."""

import re

import numpy as np
import pytest
from browser import open_page
from page_numbers import array, shown_number
from page_steps import wait_until
from readers import DESK

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium, html):
    with open_page(chromium, html, **DESK) as opened:
        yield opened


def choose(page, direction):
    page.click(f'#direction button[data-choice="{direction}"]')


# the name of each box of the map that is clicked, its step, and the boxes of this step and of the one before
BOXES = """() => [...document.querySelectorAll(".block")].map(({ dataset: { block } }) => {
    const box = () => document.querySelector(`[data-block="${block}"]`), { explorer } = npformer;
    const present = () => document.querySelector(".block.present").dataset.block;
    box().dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const name = box().getAttribute("aria-label"), crumbs = document.getElementById("crumbs").textContent;
    const found = { block, name, crumbs, position: explorer.position, present: present() };
    explorer.move(-1);
    return { ...found, before: present() };
})"""


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_box_of_the_map_opens_its_own_first_step(page, direction):
    """The operation of the step belongs to the block, and no step before it does."""
    choose(page, direction)
    found = page.evaluate(BOXES)
    blocks = [each["block"] for each in found]
    assert {
        "source",
        "target",
        "output",
        "loss",
        "decoder.0.cross",
        "encoder.1.add1",
        "encoder.1.norm1",
    } <= set(blocks)
    for each in found:
        assert each["present"] == each["block"]
        assert each["crumbs"].lower().startswith(f"{each['name']} · step ".lower())
        assert each["before"] != each["block"] or each["position"] == 0
    assert len({each["position"] for each in found}) == len(blocks)
    assert 0 in {each["position"] for each in found}
    page.click('[data-block="decoder.0.cross"]')
    assert page.get_attribute(".block.present", "data-block") == "decoder.0.cross"


def told_terms(page):
    """Open the list of all terms, and return the sentence above it and their products."""
    if not page.evaluate("document.getElementById('every-term').open"):
        page.click("#every-term summary")
    page.wait_for_selector("#every-term td")
    return page.text_content("#every-term p"), page.locator("#every-term td:last-child").all_text_contents()


def test_a_sum_that_is_multiplied_is_told_apart_from_the_product(page):
    """The sum is that of the terms, and the product is the number of the array."""
    for step, scale in (
        ("decoder.1.cross.attention.scores", "1/√{}"),
        ("encoder.0.norm1.mean", "1/{}"),
        ("loss", "1/{}"),
    ):
        page.evaluate("step => { npformer.explorer.goTo(step); npformer.explorer.changed(); }", step)
        sentence, products = told_terms(page)
        found = re.fullmatch(
            r"All (\d+) terms in their order. The sum is (\S+); times (\S+) = (\S+), it is (\S+)\.", sentence
        )
        assert found, sentence
        count, total, factor, formula, number = found.groups()
        assert int(count) == len(products)
        assert shown_number(total) == pytest.approx(sum(map(shown_number, products)), abs=5e-3)
        assert formula == scale.format(count)  # each of the terms is one dimension, or one target token
        assert float(number) == page.evaluate("npformer.explorer.numbers[npformer.explorer.index]")
        assert shown_number(total) * shown_number(factor) == pytest.approx(float(number), rel=5e-3)
        assert f"{factor} = {formula} times the sum of {count} terms" in page.text_content("#spoken")
    page.evaluate(
        "npformer.explorer.goTo('encoder.0.self_attention.output.product'); npformer.explorer.changed()"
    )
    sentence, _ = told_terms(page)  # a plain sum is the number
    number = page.evaluate("npformer.explorer.numbers[npformer.explorer.index]")
    assert float(sentence.split("The sum is ")[1].rstrip(".")) == pytest.approx(number, abs=1e-12)


def row_norms(page, path, head=0):
    """Return the norms of the rows of the gradient of an array, as NumPy computes them."""
    gradient = array(page, path, "gradients")
    return np.linalg.norm(gradient[head] if gradient.ndim == 3 else gradient, axis=-1)


def show_gradient(page, path):
    page.evaluate(
        """path => {
            const { explorer } = npformer;
            explorer.setDirection("backward");
            explorer.goTo(path);
            explorer.changed();
        }""",
        path,
    )


def test_the_tokens_with_the_largest_gradient_are_named(page):
    tokens = ["the", "dog", "is", "tired", "</S>"]
    q, k = (f"encoder.1.self_attention.attention.{name}" for name in "qk")
    # k stands transposed
    for path, of in (("source.sum", "row"), (q, "row of head 0"), (k, "column of head 0")):
        show_gradient(page, path)
        norms = row_norms(page, path)
        first, second = np.argsort(norms)[::-1][:2]
        told = page.text_content("#row-norms")
        found = re.fullmatch(
            rf"Largest {of}: “(\S+)” \(L2 norm (\S+)\), then “(\S+)” \(L2 norm (\S+)\)\.", told
        )
        assert found, told
        assert [found[1], found[3]] == [tokens[first], tokens[second]]
        shown = [shown_number(found[2]), shown_number(found[4])]
        assert shown == pytest.approx(norms[[first, second]], rel=5e-3)
    show_gradient(page, q)
    page.click("#heads button:nth-child(2)")
    found = re.match(r"Largest row of head 1: “\S+” \(L2 norm (\S+)\)", page.text_content("#row-norms"))
    assert shown_number(found[1]) == pytest.approx(row_norms(page, q, head=1).max(), rel=5e-3)
    table = "source.tokens.weight"
    show_gradient(page, table)
    word = page.evaluate("npformer.explorer.session.head.source_words")[row_norms(page, table).argmax()]
    assert page.text_content("#row-norms").startswith(f"Largest row: “{word}” (L2 norm ")
    page.evaluate("npformer.set_sentence('dog dog dog')")  # a token that occurs twice has its position
    show_gradient(page, "source.sum")
    names = [*(f"“dog” at position {place}" for place in range(3)), "“</S>”"]
    first, second = (names[row] for row in np.argsort(row_norms(page, "source.sum"))[::-1][:2])
    told = page.text_content("#row-norms")
    assert re.fullmatch(rf"Largest row: {first} \(L2 norm \S+\), then {second} \(L2 norm \S+\)\.", told), told


def test_rows_are_not_ranked_where_they_are_no_tokens(page):
    for direction, path in (("forward", "source.sum"), ("backward", "encoder.0.feed_forward.inner.weight")):
        choose(page, direction)
        page.evaluate("p => { npformer.explorer.goTo(p); npformer.explorer.changed(); }", path)
        assert page.evaluate("npformer.explorer.result.path") == path
        assert page.text_content("#row-norms") == ""


@pytest.mark.parametrize(
    ("direction", "names"), [("forward", ["rows", "weight", "y"]), ("backward", ["dx", "weight", "drows"])]
)
def test_the_grids_of_a_linear_layer_have_the_names_of_the_code(page, direction, names):
    choose(page, direction)
    page.evaluate("""() => {
        const { explorer } = npformer, path = "encoder.0.self_attention.projections.0.product";
        explorer.goToPosition(explorer.timeline.findIndex(({ step }) => step.path === path));
        explorer.changed();
    }""")
    page.click("#tables summary")
    page.wait_for_selector("#tables caption")
    captions = page.locator("#tables caption").all_text_contents()
    assert [caption.split(",")[0] for caption in captions] == names
    code = set(page.locator("#code .now b").all_text_contents())
    assert code <= {*names, "rows"}
    assert re.findall(r"\bd?(?:x|rows|y)\b", page.text_content("#step-sentence"))[:2] == (
        ["rows"] if direction == "forward" else ["dx", "drows"]
    )


def test_a_projection_is_named_by_what_it_computes(page):
    for number, name in enumerate(["query", "key", "value"]):
        show_gradient(page, f"decoder.1.cross.projections.{number}.y")
        told = page.text_content("#arithmetic .number")
        assert told.startswith(f"Gradient of the loss with respect to {name} projection, y, “")


def test_a_pinned_number_stays_pinned_in_the_other_pass(page):
    """Its value leads to its gradient and back, in the view that is shown. Without a pin, the step stays."""
    before = page.evaluate("npformer.explorer.moment.step.path")
    choose(page, "backward")
    assert page.evaluate("npformer.explorer.moment.step.path") == before
    assert not page.evaluate("npformer.explorer.isPinned")
    choose(page, "forward")
    state = "(() => { const e = npformer.explorer; return [e.result.path, e.index, e.isPinned, e.view]; })()"
    page.evaluate("npformer.explorer.goTo('encoder.1.feed_forward.inner.y'); npformer.explorer.changed()")
    page.focus("#step")
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    value = page.evaluate(state)
    assert value[2:] == [True, "steps"]
    choose(page, "backward")
    assert page.evaluate(state) == value
    gradient = page.evaluate(f"npformer.gradients('{value[0]}')[{value[1]}]")
    assert page.evaluate("npformer.explorer.numbers[npformer.explorer.index]") == gradient
    assert "pinned" in page.text_content("#arithmetic")
    page.click('#views button:text-is("Attention")')
    page.keyboard.press("f")
    assert page.evaluate(state) == [*value[:3], "attention"]


PINNED = "(({ isPinned, result, index }) => [isPinned, result.shape, index, result.path])(npformer.explorer)"


def test_a_pinned_token_and_its_head_stay_pinned_from_step_to_step(page):
    page.evaluate("""() => {
        const { explorer } = npformer;
        explorer.goTo("decoder.0.cross.attention.scores");
        const [, queries, keys] = explorer.result.shape; // head 1, query 2, key 3
        Object.assign(explorer, { isPinned: true, index: (queries + 2) * keys + 3 });
        explorer.changed();
    }""")
    seen = {}
    for _ in range(60):
        page.keyboard.press("Space")
        is_pinned, shape, index, path = page.evaluate(PINNED)
        assert is_pinned
        place = [int(i) for i in np.unravel_index(index, shape)]
        seen[path] = place
    assert seen["decoder.0.cross.attention.softmax"] == [1, 2, 3]
    assert seen["decoder.0.add3.sum"][0] == seen["decoder.1.norm2.mean"][0] == 2
    assert seen["decoder.1.cross.attention.q"][:2] == [1, 2]  # past arrays without heads


PLACE = """([grid, row, column]) => {
    const { layout: { placed }, picture: { zoom } } = npformer.steps;
    const { x, y, cellWidth, cellHeight } = placed[grid];
    return { x: (x + (column + 0.5) * cellWidth) * zoom, y: (y + (row + 0.5) * cellHeight) * zoom };
}"""


def test_a_cell_of_another_array_says_its_number_and_leads_to_its_computation(page):
    q = array(page, "decoder.1.cross.attention.q")
    place = page.evaluate(PLACE, [0, 1, 2])
    page.hover("#step", position=place)
    name, _, number = page.get_attribute("#step", "title").rpartition(": ")
    assert re.fullmatch("q, head 0, “.+”, dimension 2", name)
    assert shown_number(number) == pytest.approx(q[0, 1, 2], rel=5e-3)
    page.click("#step", position=place)
    assert page.evaluate(PINNED) == [True, list(q.shape), q.shape[2] + 2, "decoder.1.cross.attention.q"]
    page.evaluate("npformer.explorer.goTo('linear'); npformer.explorer.changed()")
    page.click("#step", position=page.evaluate(PLACE, [1, 1, 2]))  # of a parameter, which nothing computes
    assert page.text_content("#said").startswith("query projection, weight, dimension 1, dimension 2: ")


# for each frame over the grids: the grid, and how many rows and columns the frame encloses
FRAMES = """() => {
    const frames = [], { steps } = npformer;
    steps.drawBeats({ frame: (...box) => frames.push(box) }, {});
    return frames.map(([x, y, width, height]) => {
        const holds = (p) => p.x <= x + 2 && x < p.x + 600 && p.y <= y + 2;
        const grid = steps.layout.placed.filter(holds).reduce((a, b) => (b.x + b.y > a.x + a.y ? b : a));
        return [grid.slice.name, (height - 1) / grid.cellHeight, (width - 1) / grid.cellWidth].map(
            (each) => (typeof each === "number" ? Math.round(each) : each),
        );
    });
}"""


@pytest.mark.parametrize("how", ["pointer", "focus"])
def test_a_name_in_the_code_answers_with_its_array_and_its_block(page, how):
    page.evaluate("""() => {
        const { explorer } = npformer, path = "decoder.1.cross.projections.1.product";
        explorer.goToPosition(explorer.timeline.findIndex(({ step }) => step.path === path));
        explorer.changed();
    }""")
    assert page.evaluate(FRAMES) == [["y", 1, 1]]  # the chosen number
    name = page.locator('#code .now b:text-is("rows")')
    name.hover() if how == "pointer" else name.focus()
    title = "encoder.1.norm2.y, shape 5 × 8: encoder, layer 1, norm (around feed-forward)"
    assert name.get_attribute("title") == title
    assert page.text_content("#said") == (title if how == "focus" else "")
    assert page.evaluate(FRAMES) == [["y", 1, 1], ["rows", 5, 8]]
    assert page.get_attribute("#map .present", "data-block") == "encoder.1.norm2"
    page.mouse.move(0, 0)
    page.focus("#step")
    assert page.evaluate(FRAMES) == [["y", 1, 1]]
    assert page.get_attribute("#map .present", "data-block") == "decoder.1.cross"
    choose(page, "backward")
    page.hover("#step", position=page.evaluate(PLACE, [1, 2, 3]))
    assert len(page.evaluate(FRAMES)) == 2  # the chosen number, and the cell


def test_next_shows_in_beats_how_the_number_is_made(page, chromium, html):
    """A frame takes at most 16 ms of script; where less motion is asked for, each beat stands still."""
    page.evaluate("npformer.explorer.goTo('decoder.0.cross.attention.k'); npformer.explorer.changed()")
    page.keyboard.press("Space")
    wait_until(page, "npformer.steps.stage > 0.3")
    wait_until(page, "npformer.steps.stage === Infinity")
    times = sorted(page.evaluate("npformer.steps.times"))
    assert times[len(times) // 2] <= 16
    with open_page(chromium, html, **DESK, reduced_motion="reduce") as still:
        still.evaluate("npformer.explorer.goTo('decoder.0.cross.attention.k'); npformer.explorer.changed()")
        seen = set()
        for step, beats in (
            ("scores", ["meet", "products", "sum"]),
            ("masked", []),
            ("softmax", ["scores", "exponentials", "division"]),
        ):
            while still.text_content("#array-name") != f"decoder.0.cross.attention.{step}":
                still.keyboard.press("Space")
            assert still.evaluate("[npformer.steps.frame, npformer.steps.stage]") == [0, np.inf]
            assert still.locator("#beats .choice button").all_text_contents() == beats
            for name in beats:
                still.click(f'#beats button:text-is("{name}")')
                assert still.get_attribute(f'#beats button:text-is("{name}")', "aria-pressed") == "true"
                seen.add(still.evaluate("document.getElementById('step').toDataURL()"))
        assert len(seen) == 6


def test_a_softmax_shows_the_sum_over_all_keys_and_a_mask_its_array(page):
    page.evaluate("npformer.explorer.goTo('decoder.0.self_attention.attention.softmax')")
    scores = array(page, "decoder.0.self_attention.attention.masked")[0]
    size = len(scores)
    page.evaluate(f"npformer.explorer.index = {2 * size + 1}; npformer.explorer.changed()")
    scores = scores[2]
    exponentials = np.exp(scores - scores.max())
    total = exponentials.sum()
    first, second = page.locator("#arithmetic .equation, #arithmetic .inner").all_text_contents()
    assert [shown_number(x) for x in re.split(" / | ≈ ", first)] == pytest.approx(
        [exponentials[1], total, exponentials[1] / total], rel=5e-3, abs=5e-4
    )
    assert shown_number(second.rsplit(" ≈ ")[1]) == pytest.approx(total, rel=5e-3)
    assert page.locator("#arithmetic .terms li").count() == min(size, 6)  # five, and the rest
    told_terms(page)
    products = page.locator("#every-term table >> nth=1").locator("td:last-child").all_text_contents()
    assert sum(map(shown_number, products)) == pytest.approx(total, rel=5e-3)
    page.evaluate("npformer.explorer.goTo('decoder.0.self_attention.attention.masked')")
    page.evaluate("npformer.explorer.changed()")
    page.click("#tables summary")
    page.wait_for_selector("#tables caption >> nth=2")
    assert page.locator("#tables caption").all_text_contents()[1] == f"mask, {size} × {size}"
    cells = page.locator("#tables table >> nth=1").locator("tbody td").all_text_contents()
    assert np.array_equal([round(shown_number(cell)) for cell in cells], np.tri(size).ravel())


def test_back_and_forward_walk_the_trail_of_what_was_followed(page):
    places = [page.evaluate(PINNED)[2:]]
    for _ in range(3):
        page.locator("#arithmetic .follow").first.click()
        places.append(page.evaluate(PINNED)[2:])
    assert len({tuple(place) for place in places}) == 4
    page.keyboard.press("Space")  # a step is no place of its own
    for place in places[2::-1]:
        page.go_back()
        wait_until(page, f"npformer.explorer.result.path === '{place[1]}'")
        assert page.evaluate(PINNED)[2:] == place
    page.go_forward()
    wait_until(page, f"npformer.explorer.result.path === '{places[1][1]}'")
    page.locator("#trail button").nth(1).click()
    wait_until(page, f"npformer.explorer.result.path === '{places[2][1]}'")
    page.click('[data-block="encoder.0.feed_forward"]')  # what was ahead is forgotten
    assert page.locator("#trail > *").count() == 4
    page.go_back()
    wait_until(page, f"npformer.explorer.result.path === '{places[2][1]}'")


def test_the_grids_show_that_they_have_the_focus_and_what_the_keys_do(page):
    """The ring lies inside the canvas, because the box around it cuts off what is outside."""
    page.focus("#large")
    style = "(() => { const s = getComputedStyle(document.querySelector('#step')); return [s.outlineStyle, \
        parseFloat(s.outlineWidth), parseFloat(s.outlineOffset)]; })()"
    assert page.evaluate(style)[0] == "none"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "step":
            break
    ring, width, offset = page.evaluate(style)
    assert ring == "solid"
    assert offset <= -width < 0
    assert page.is_visible("#steps .keys")
    assert page.text_content("#steps .keys").startswith("Arrow keys choose a number. Enter pins it: ")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_steps_of_the_block_are_listed_and_lead_there(page, direction):
    choose(page, direction)
    page.click('[data-block="encoder.1.self_attention"]')
    first = page.evaluate("npformer.explorer.position")
    options = page.locator("#block-steps option").all_text_contents()
    assert options[0].startswith(f"{first + 1}: ")
    assert any(option.endswith("query projection, y") for option in options)
    assert all((": gradient of " in option) == (direction == "backward") for option in options)
    page.select_option("#block-steps", index=3)
    assert page.evaluate("npformer.explorer.position") == first + 3
    assert f"step {first + 4} of " in page.text_content("#crumbs")
    assert page.input_value("#step-number") == str(first + 4)
    page.select_option("#block-steps", index=len(options) - 1)
    page.click("#actions .main")  # and the next step belongs to another block
    assert page.get_attribute(".block.present", "data-block") != "encoder.1.self_attention"


def test_a_step_is_reached_by_its_number(page):
    """A number outside of the steps leads to the first or the last one, and none stays."""
    count = page.evaluate("npformer.explorer.timeline.length")
    for typed, step in (("7", 7), ("", 7), ("0", 1), ("-5", 1), ("99999", count), ("2.4", 2)):
        page.fill("#step-number", typed)
        page.keyboard.press("Tab")
        assert f"step {step} of {count}" in page.text_content("#crumbs")
        assert page.input_value("#step-number") == str(step)
