"""Caches print as one line, and as nested tables in a notebook."""

from dataclasses import dataclass

import numpy as np

import npformer.functional as F
from npformer.functional.caches import cache_class


@cache_class
@dataclass
class Both:
    """A cache that holds others."""

    layers: list
    norm: object
    factor: float = 0.5
    shape: tuple = (2, 3)


def test_the_line_names_arrays_by_dtype_and_shape_and_inner_caches_by_class():
    _, norm = F.layer_norm(np.ones((2, 3)), np.ones(3), np.zeros(3))
    assert repr(norm) == "LayerNormCache(xhat=float64[2, 3], rstd=float64[2, 1], gain=float64[3])"
    assert repr(Both([norm, norm], norm)) == (
        "Both(layers=[LayerNormCache(...), ...], norm=LayerNormCache(...), factor=0.5, shape=(2, 3))"
    )
    assert repr(Both((norm,), {"a": norm})) == (
        "Both(layers=[LayerNormCache(...)], norm=dict(...), factor=0.5, shape=(2, 3))"
    )


def test_in_a_notebook_inner_caches_are_folded_tables():
    _, norm = F.layer_norm(np.ones((2, 3)), np.ones(3), np.zeros(3))
    html = Both([1], norm)._repr_html_()
    assert html.startswith("<details open><summary><b>Both</b></summary><table><tr>")
    inner = (
        "<tr><th style='text-align:left'>norm</th><td><details><summary>LayerNormCache(...)</summary><table>"
        "<tr><th style='text-align:left'>xhat</th><td>float64[2, 3]</td></tr>"
    )
    assert inner in html
    assert "<tr><th style='text-align:left'>layers</th><td>[1]</td></tr>" in html
    assert html.count("<table>") == html.count("</table>") == 2
