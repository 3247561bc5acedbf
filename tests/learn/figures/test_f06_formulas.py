"""Tests of F06: the numbers of the formula cards."""

import re

import numpy as np
import pytest
from figure_cells import draw, texts
from jianshu_oracle import softmax


def numbers_of(line):
    return [float(n.replace("−", "-")) for n in re.findall(r"[−\d][\d,]*\.?\d*", line)]


def line_with(figure, beginning):
    (line,) = [text for text in texts(figure) if text.startswith(beginning)]
    return line.removeprefix(beginning)


@pytest.mark.parametrize(("position", "d"), [(1, 4), (3, 6)])
def test_f06_a_position_vector(position, d):
    line = line_with(
        draw("F06", position=position, d_positions=d).figure, f"pos = {position}, d_model = {d}:"
    )
    angles = [position / 10000 ** (2 * i / d) for i in range(d // 2)]
    expected = [f(angle) for angle in angles for f in (np.sin, np.cos)]
    assert numbers_of(line) == pytest.approx(expected, abs=6e-6)


def test_f06_has_the_position_and_weights_of_the_inventory():
    caption = draw("F06").caption
    assert "0.84147, 0.54030, 0.01000, 0.99995" in caption
    assert "0.88, 0.12" in caption


@pytest.mark.parametrize(("products", "d_head"), [((112, 96), 64), ((8, 4, 0), 16)])
def test_f06_scores_scaled_and_their_softmax(products, d_head):
    figure = draw("F06", products=products, d_head=d_head).figure
    scaled = np.array(products) / np.sqrt(d_head)
    shown = numbers_of(line_with(figure, "scaled:"))
    assert shown == pytest.approx([*scaled, *softmax(scaled)], abs=0.00501)


@pytest.mark.parametrize("x", [(1.0, -2.0), (0.5, 1.0, 2.0)])
def test_f06_a_feed_forward_network(x):
    from npformer.nn import FeedForward

    state = FeedForward(len(x), 4, rng=np.random.default_rng(2), dtype=np.float64).state_dict()
    hidden = np.maximum(0, np.array(x) @ state["inner.weight"])
    figure = draw("F06", x=x).figure
    assert numbers_of(line_with(figure, "max(0, xW₁ + b₁) =")) == pytest.approx(hidden, abs=0.00501)
    assert numbers_of(line_with(figure, "FFN(x) =")) == pytest.approx(
        hidden @ state["outer.weight"], abs=0.00501
    )


@pytest.mark.parametrize(("d_model", "heads"), [(512, 8), (30, 5)])
def test_f06_a_heads_width_and_the_parameters(d_model, heads):
    line = line_with(draw("F06", d_model=d_model, n_heads=heads).figure, f"d_model = {d_model}, h = {heads}:")
    learned = 4 * (d_model * d_model + d_model)
    assert f"each head is {d_model // heads} wide" in line
    assert f"{learned:,} parameters" in line


def test_f06_has_the_four_formulas():
    text = " ".join(texts(draw("F06").figure))
    network = r"\max(0,\; xW_1 + b_1)\,W_2 + b_2"
    assert all(part in text for part in (r"\sin", r"\cos", network, r"\sqrt{d_k}", "Concat", "W^O", "W_i^Q"))
