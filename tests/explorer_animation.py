"""Draw the animation of the explorer that the README shows, from screenshots of a real page in Chromium.

    npformer tour
    python tests/explorer_animation.py figures/explorer.gif

It needs playwright and Chromium: see CONTRIBUTING.md. Each frame shows what a click or a key has done, with a
caption. The test of this script is in tests/explorer/test_animation.py.
"""

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from browser import start_chromium

import npformer

SENTENCE = "the dog is tired"
SIZE = {"width": 1120, "height": 740}  # of the page, in pixels
CAPTION = 42  # the height of the caption, in pixels
SECONDS = 1.4  # for which a frame is shown: a caption is read in this time
COLORS = 256
STEP = "decoder.1.cross.attention"


def scenes(page):
    """Use the page as a reader does, and yield a caption after each action.

    Args:
        page: A page of playwright that shows the explorer.
    """
    press = Presses(page)
    page.evaluate("Object.assign(npformer.overview, { isWelcome: false, stage: 6.5 }).stop()")
    yield "The whole model: Play sends the sentence through it."
    page.evaluate("Object.assign(npformer.overview, { stage: Infinity }).render()")
    yield "Each column belongs to a token, and each ribbon is an attention weight."
    press.button("Steps")
    press.button("Change the sentence")
    page.locator("#source-input").fill(SENTENCE[:-3])
    yield "Type a sentence: the page computes the whole model, forward and backward."
    page.locator("#source-input").fill(SENTENCE)
    press.button("Let the model translate")
    press.button("Change the sentence")
    yield "One step is one line of code. The chosen score is this dot product."
    press.next_until(f"{STEP}.softmax")
    yield "Next: the softmax turns the scores of each query into weights."
    press.next_until(f"{STEP}.z")
    press.button("backward")
    yield "Backward: the same line with its gradient. Here, that of the weights."
    press.next_until(f"{STEP}.masked")
    yield "Next: the gradient of the same scores, and the terms of which it is the sum."
    press.button("What if")
    yield "What if a head were missing? Each head has a switch."
    most_important_head(page).click()
    yield "A head of the cross-attention is off: the loss grows, most right words are less probable."
    page.get_by_role("button", name="Remove all changes").click()
    press.button("Check a gradient")
    yield "Any gradient can be compared with the slope of the loss."
    press.button("Attention")
    yield "The attention weights of every layer and head, and their gradients."


class Presses:
    """The buttons of a page."""

    def __init__(self, page):
        self.page = page

    def button(self, name):
        """Press the button with this name."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def next_until(self, path):
        """Press Next until the page is about the array with this path."""
        for _ in range(9):
            self.button("Next →")
            if self.page.evaluate("npformer.explorer.result.path") == path:
                return
        raise AssertionError(f"no step to {path}")


def most_important_head(page):
    """Return the button of the head of the last cross-attention without which the loss is largest."""
    name = re.compile(r"^cross-attention, layer 1, head")
    heads = page.locator("#changes").get_by_role("button", name=name)
    losses = []
    for i in range(heads.count()):
        heads.nth(i).click()
        losses.append(page.evaluate("npformer.loss()"))
        heads.nth(i).click()
    return heads.nth(losses.index(max(losses)))


def frames(browser, html):
    """Return the pictures of all scenes.

    Args:
        browser: The browser of playwright.
        html: The page of the explorer.
    """
    found = []
    with contextlib.closing(browser.new_page(viewport=SIZE, color_scheme="light")) as page:
        page.set_content(html)
        page.wait_for_function("window.npformer")
        for caption in scenes(page):
            page.wait_for_timeout(300)  # the translation follows a change after a moment
            page.evaluate("scrollTo(0, 0)")
            found.append(with_caption(Image.open(io.BytesIO(page.screenshot())), caption))
    return found


def with_caption(picture, caption):
    """Return a picture with a line of text above it."""
    framed = Image.new("RGB", (picture.width, picture.height + CAPTION), "#222222")
    framed.paste(picture, (0, CAPTION))
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 20)
    ImageDraw.Draw(framed).text((20, 9), caption, fill="white", font=font)
    return framed


def save(pictures, path):
    """Write pictures as an endless GIF, each with colors of its own."""
    first, *others = [picture.quantize(COLORS, dither=Image.Dither.NONE) for picture in pictures]
    first.save(path, save_all=True, append_images=others, duration=round(SECONDS * 1000), loop=0)


def main():
    """Write the animation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", metavar="FILE.gif")
    parser.add_argument("--model", default="tour/run", help="a translator (default: tour/run)")
    arguments = parser.parse_args()
    html = npformer.load(arguments.model).explore("the cat is small").html
    with start_chromium() as browser:
        save(frames(browser, html), arguments.out)
    print(f"wrote {arguments.out} ({Path(arguments.out).stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
