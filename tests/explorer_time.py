"""Measure the explorer's page of a model: its size, its first picture, and how fast numbers follow a key.

    python tests/explorer_time.py [--model RUN] [--sentence TEXT] [--rounds N]

The model is that of the tour (`npformer tour`), and the sentence has 12 tokens with its end. A round presses
a key that switches a head off or on, and the time ends in the next frame, when the changed numbers are drawn.
The exit status is 1 if a bar is missed: at the median 50 ms from the key to the changed numbers and 1.5 s to
the first picture, and 4 MB of page.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path
from shutil import which

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from browser import NAMES
from page_steps import wait_until_ready

import npformer

BARS = {"key": 50.0, "paint": 1500.0, "megabytes": 4.0}
OPENINGS = 7  # of the page, each in a context of its own

# the ms from each key press to the end of the frame that draws its numbers, and whether the loss changed
PREPARE = """() => {
    window.times = [];
    addEventListener("keydown", () => {
        const start = performance.now(), before = npformer.loss();
        const channel = new MessageChannel();
        channel.port1.onmessage = () => times.push([performance.now() - start, npformer.loss() !== before]);
        requestAnimationFrame(() => channel.port2.postMessage(0)); // after the frame's picture is drawn
    }, true);
}"""
PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime"""


def first_paint(browser, address):
    """Return the time in ms from the start of the navigation to the first picture with the numbers."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address)
    wait_until_ready(page)
    paint = None
    while paint is None:
        page.wait_for_timeout(20)
        paint = page.evaluate(PAINT)
    context.close()
    return paint


def processor_time(session):
    """Return the processor time in ms of the page's main thread, which other programs do not change much."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * metrics["TaskDuration"]


def key_times(browser, address, rounds):
    """Return the times in ms from the press of a key to the changed numbers, and its processor time."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    wait_until_ready(page)
    page.click('#views button:text-is("What if")')
    page.focus("#changes .row button")
    for _ in range(4):  # the first runs are slow, until the browser has compiled the engine
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
    page.evaluate("npformer.explorer.generateLater = () => {}")  # the translation follows later
    page.evaluate(PREPARE)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = processor_time(session)
    for _ in range(rounds):
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
    processor = (processor_time(session) - before) / rounds
    times = page.evaluate("times")
    page.close()
    assert len(times) == rounds, "a key was not counted"
    assert all(changed for _, changed in times), "a key changed no number"
    return [time for time, _ in times], processor


def measure(path, rounds):
    """Return the key times, the processor time of a key, and the paint times of a page in Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(which, NAMES)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        address = path.resolve().as_uri()
        paints = [first_paint(browser, address) for _ in range(OPENINGS)]
        times, processor = key_times(browser, address, rounds)
        browser.close()
    return times, processor, paints


def main():
    """Measure, print the table, and return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tour/run")
    parser.add_argument("--sentence", default="the animal didn't cross the street because it was too tired")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("explorer.html"))
    arguments = parser.parse_args()
    page = npformer.load(arguments.model).explore(arguments.sentence)
    page.save(arguments.out)
    tokens = len(page.head["example"]["source_ids"])
    load = os.getloadavg()[0]
    times, processor, paints = measure(arguments.out, arguments.rounds)
    megabytes = arguments.out.stat().st_size / 1e6
    found = {"key": statistics.median(times), "paint": statistics.median(paints), "megabytes": megabytes}
    print(f"{page.head['model']['parameters']:,} parameters, {tokens} tokens, load average {load:.1f} before")
    for name, key, all_times, bar in (
        ("from a key to the changed numbers", "key", times, "50 ms"),
        ("first picture", "paint", paints, "1,500 ms"),
    ):
        print(f"{name:34} median {found[key]:6.1f} ms, most {max(all_times):6.1f} ms, bar {bar}")
    print(f"{'processor time of a key':34} mean   {processor:6.1f} ms")
    print(f"{'page':34} {megabytes:.2f} MB, bar 4 MB")
    return int(any(found[name] > bar for name, bar in BARS.items()))


if __name__ == "__main__":
    sys.exit(main())
