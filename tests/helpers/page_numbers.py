"""The numbers of a page of the explorer: those that its text carries, and those that a browser computes."""

import base64
import re

import numpy as np
from engine_page import ENCODE, decoded_arrays


def page_numbers(page):
    """Return the numbers that a page carries: the parameters by name, and the table of positions."""
    text = re.search(r'id="weights">([^<]*)<', page.html)[1]
    numbers, start = np.frombuffer(base64.b64decode(text), "<f4"), 0
    arrays = {}
    for name, shape in [*page.head["parameters"], ["positions", page.head["positions"] or [0]]]:
        arrays[name] = numbers[start : start + np.prod(shape)].reshape(shape)
        start += np.prod(shape)
    assert start == len(numbers)
    return arrays


def shown_number(text):
    """Return the number in a text of the page, such as "1.60·10⁻⁵"."""
    plain = text.replace("−", "-").replace("∞", "inf").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(plain.replace("·10", "e"))


def arrays_of(page):
    """Return {path: (values, gradients)} of all arrays of the page."""
    return decoded_arrays(
        page.evaluate(f"""() => {{
            {ENCODE}
            const {{ paths, shape, values, gradients }} = window.npformer;
            const encoded = (path) => [shape(path), encode(values(path)), encode(gradients(path))];
            return Object.fromEntries(paths().map((path) => [path, encoded(path)]));
        }}""")
    )


def array(page, path, which="values"):
    """Return the values, or the gradients, of one array of the page."""
    shape, numbers = page.evaluate(f"p => [npformer.shape(p), Array.from(npformer.{which}(p))]", path)
    return np.array(numbers).reshape(shape)
