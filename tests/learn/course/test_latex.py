"""Formulas as MathML and as lines of the terminal."""

from xml.etree import ElementTree

import pytest

from npformer.errors import UserError
from npformer.learn.course.latex import to_mathml, to_text

FORMULAS = [
    (r"\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V", "softmax(Q Kᵀ / √dₖ) V"),
    (r"QK^T + W_i^Q W^O", "QKᵀ + Wᵢ^Q W^O"),
    (r"\frac{\partial p_i}{\partial s_j} = p_i ([i = j] - p_j)", "∂pᵢ/∂sⱼ = pᵢ ([i = j] − pⱼ)"),
    (r"\hat{x} = \frac{x - \bar{x}}{\sqrt{\sigma^2 + \epsilon}}", "x̂ = (x − x̄) / √(σ² + ϵ)"),
    (r"\frac{1}{n} \sum_{i=1}^{n} x_i", "(1/n) Σᵢ₌₁ⁿ xᵢ"),
    (r"\frac{e^{s_i}}{\sum_m e^{s_m}}", "e^sᵢ / (Σₘ e^sₘ)"),
    (r"\frac{\partial L}{\partial W} = X^\top \frac{\partial L}{\partial Y}", "∂L/∂W = Xᵀ (∂L/∂Y)"),
    (r"\left(\frac{a+b}{c}\right)^2 \cdot \frac{a}{bc}", "((a + b) / c)² · a / (bc)"),
    (r"d_{\mathrm{model}}, d_{model}, x_{ij}, p_{t,s}", "d_model, d_model, xᵢⱼ, p_(t, s)"),
    (r"h_{t-1}, 10^{-9}, d^{-0.5}, W \in \mathbb{R}^{T \times D}", "hₜ₋₁, 10⁻⁹, d^−0.5, W ∈ ℝ^(T×D)"),
    (r"PE_{(pos, 2i)} = \sin(pos / 10000^{2i/d})", "PE_(pos, 2i) = sin(pos / 10000^(2i/d))"),
    (r"-\log p(y_t \mid y_{<t}, x)", "−log p(yₜ ∣ y_<t, x)"),
    (r"x \log x - 2\log p, \arg\max_i p_i", "x log x − 2 log p, arg maxᵢ pᵢ"),
    (
        r"{W^O}^\top \langle dw, v \rangle \left[ a \right], z_{tc}\ of L''', \frac{\sum_n l_n}{c}",
        "(W^O)ᵀ ⟨dw, v⟩ [a], z_tc of L‴, (Σₙ lₙ) / c",
    ),
    (r"\mathbf{W} x' \quad \|x\|_2", "W x′     ‖x‖₂"),
    (r"\operatorname{diag}(p) - p p^\top", "diag(p) − p pᵀ"),
    (r"\begin{aligned} dP &= dY V^\top \\ a + b &= -c \end{aligned}", "   dP = dY Vᵀ\na + b = −c"),
    (
        r"f(x) = \begin{cases} x & x > 0 \\ 0 & \text{if not} \end{cases}",
        "f(x) = ⎧ x  x > 0\n       ⎩ 0  if not",
    ),
    (r"\begin{pmatrix} a & -b \\ c & d \\ e & f \end{pmatrix}", "⎛ a  −b ⎞\n⎜ c  d  ⎟\n⎝ e  f  ⎠"),
]


@pytest.mark.parametrize(("latex", "text"), FORMULAS)
def test_a_formula_as_text_and_as_mathml(latex, text):
    """MathML is well-formed, and a name of several letters is one element, which browsers show upright."""
    assert to_text(latex) == text
    for display in (False, True):
        tree = ElementTree.fromstring(to_mathml(latex, display=display))
        assert tree.tag == "{http://www.w3.org/1998/Math/MathML}math"
        assert tree.get("display") == ("block" if display else "inline")
        assert not [node.text for node in tree.iter() if "&" in (node.text or "")]
    assert ("<mi>softmax</mi>" in to_mathml(latex)) == ("softmax" in latex)


@pytest.mark.parametrize("latex", [r"\foo{x}", r"\frac{a", r"x^2^3", r"a & b", r"\begin{aligned} a"])
def test_a_mistake_in_a_formula_is_a_users_error(latex):
    with pytest.raises(UserError, match=r"the formula .*: (correct its LaTeX|use a common one)"):
        to_text(latex)
