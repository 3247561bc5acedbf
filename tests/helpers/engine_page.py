"""The explorer's engine on a page of its own, without views, for tests."""

import base64
import json
import math
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from browser import open_page
from pass_record import compare

import npformer
from npformer.explorer.model_data import config_data, explorer_name, fixed_table

WEB = Path(npformer.__file__).parent / "explorer" / "web"

# a function of JavaScript: the bytes of an array as text
ENCODE = """
function encode(array) {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}
"""

HARNESS = """
import { Transformer } from "/engine/transformer.js";
import { GPT } from "/engine/gpt.js";
import { continuation, greedy } from "/engine/greedy.js";
import { ARITHMETIC, terms } from "/arithmetic/terms.js";
import { Adam, GradientDescent, parameterGradients } from "/engine/optimizers.js";
import { erf } from "/engine/activations.js";

const decode = (text) => new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

ENCODE_FUNCTION

let model, ids, edits;
window.engine = {
  make(kind, config, parameters, positions) {
    const decoded = parameters.map(([name, shape, data]) => [name, { shape, data: decode(data) }]);
    model = new { Transformer, GPT }[kind](config, new Map(decoded), positions && decode(positions));
  },
  run(newIds, newEdits) {
    [ids, edits] = [newIds, newEdits];
    model.run(ids, edits);
    return model.loss;
  },
  arrays() {
    const all = {};
    const { names } = model.tape;
    for (const [path, { shape, data, grad }] of names) all[path] = [shape, encode(data), encode(grad)];
    return all;
  },
  steps: () => model.tape.steps.map(({ path, shape, op, line, edited }) => ({
    path, shape, op, line, edited: edited.size })),
  lines: () => [...new Set(model.tape.steps.map((step) => step.line))],
  greedy: (source, changes) => greedy(model, source, changes),
  continuation: (text, changes, count) => continuation(model, text, changes, count),
  update(kind, lr, count) {
    const optimizer = kind === "adam" ? new Adam() : new GradientDescent();
    for (let i = 0; i < count; i++) {
      optimizer.update(model.parameters, parameterGradients(model.tape), lr);
      model.run(ids, edits);
    }
    return model.loss;
  },
  terms(places) {
    return places.map(([path, index, direction]) => {
      const step = model.tape.names.get(path);
      const { terms: list, scale, number: sum } = terms(model.tape, step, index, direction);
      const products = list.map(({ factors }) => factors.reduce((product, { value }) => product * value, 1));
      const found = list.map(({ value }) => value);
      const known = list.every(({ factors }) => factors.every(({ step, index, value, grad, name }) =>
        !step || name || (grad ? step.grad : step.data)[index] === value));
      const number = (direction === "forward" ? step.data : step.grad)[index];
      const total = found.reduce((a, b) => a + b, 0) * scale.value;
      return { number: `${number}`, sum: `${sum}`, total: `${total}`, known,
        values: found.map(String), products: products.map(String) };
    });
  },
  // the slope of the loss in one entry of every array, or of every n-th from one on, and its gradient
  slopes(newIds, newEdits, nudge, first, n) {
    model.run(newIds, newEdits);
    const places = model.tape.steps.map(({ path, data, grad }, i) => {
      const index = (i * 7919) % data.length;
      return { path, index, value: data[index], gradient: grad[index] };
    }).filter((_, i) => i % n === first);
    return places.filter(({ value }) => Number.isFinite(value)).map(({ path, index, value, gradient }) => {
      const [up, down] = [nudge, -nudge].map((change) => {
        const changed = [...(newEdits.values?.[path] ?? []), [index, value + change]];
        model.run(newIds, { ...newEdits, values: { ...newEdits.values, [path]: changed } });
        return model.loss;
      });
      return [`${path}[${index}]`, (up - down) / (2 * nudge), gradient];
    });
  },
  operations: () => Object.keys(ARITHMETIC),
  erf: (numbers) => numbers.map(erf),
};
"""


class Engine:
    """The engine on a page. Arrays of the page come back as float64."""

    def __init__(self, page):
        self.page = page

    def call(self, name, *arguments):
        """Call a function of window.engine and return its result."""
        return self.page.evaluate(f"engine.{name}(...{json.dumps(arguments)})")

    def make(self, model):
        """Give the page the parameters of a model of float64 numbers."""
        parameters = [
            (explorer_name(name), p.shape, _encode(p.value)) for name, p in model.named_parameters()
        ]
        tables = fixed_table(model)
        table = _encode(tables[0]) if tables else None
        self.call("make", type(model).__name__, config_data(model.config), parameters, table)

    def run(self, source, target_in, target_out, edits=None):
        """Compute a pair of sentences and return the loss."""
        ids = {"source": source, "targetIn": target_in, "targetOut": target_out}
        return self.call("run", {name: np.asarray(x).tolist() for name, x in ids.items()}, edits or {})

    def arrays(self):
        """Return {path: (values, gradient)} of all arrays."""
        return decoded_arrays(self.call("arrays"))


def decoded_arrays(found):
    """Return {path: (values, gradient)} from {path: [shape, values, gradient]}, encoded by ENCODE."""
    return {
        path: tuple(np.frombuffer(base64.b64decode(text)).reshape(shape) for text in texts)
        for path, (shape, *texts) in found.items()
    }


def _encode(array):
    return base64.b64encode(np.ascontiguousarray(array, np.float64).tobytes()).decode()


@contextmanager
def open_modules(browser, script, ready):
    """Open a page with the modules of the explorer and a script, and yield it when `ready` is there."""
    modules = {
        path.relative_to(WEB).as_posix(): ("text/javascript", path.read_text(encoding="utf-8"))
        for path in WEB.rglob("*.js")
    }
    modules["harness.js"] = ("text/javascript", script)
    html = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="harness.js"></script>'
    with open_page(browser, html, modules) as page:
        page.wait_for_function(f"() => Boolean({ready})")
        yield page


@contextmanager
def open_engine(browser):
    """Open the page and yield its Engine."""
    with open_modules(browser, HARNESS.replace("ENCODE_FUNCTION", ENCODE), "window.engine") as page:
        yield Engine(page)


# what the tests of the engine check


def check(engine, record, ids, edits=None, tolerance=1e-12):
    """Check that all arrays of a record are those of the page, after this run of the page."""
    engine.run(*ids, edits)
    compare(record, engine.arrays(), tolerance)


def check_slopes(found):
    largest = max(abs(gradient) for _, _, gradient in found)
    for path, slope, gradient in found:
        assert slope == pytest.approx(gradient, rel=1e-5, abs=1e-8 * largest), path


def check_terms(place, found):
    number, total = float(found["number"]), float(found["total"])
    values = [float(value) for value in found["values"]]
    if math.isinf(number):
        assert number == total
        return
    largest = max(map(abs, [number, *values]), default=0.0)
    assert abs(number - total) <= 1e-12 * max(1.0, largest), place
    assert found["sum"] == found["total"], place
    assert found["products"] == found["values"], place
    assert found["known"], place  # each factor is the entry of an array that it says it is
