"""The source lines that the explorer shows are lines of the package today."""

import re
import shutil

import pytest
from paths import ROOT

from npformer.explorer import code_lines
from npformer.explorer.code_lines import code_of_steps, quote
from npformer.explorer.step_lines import STEP_LINES, VARIANTS


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_each_step_has_its_lines(variant):
    """Each key has its code, the function around it, and the place of both."""
    steps = code_of_steps(*([variant] if variant else []))
    assert steps.keys() == STEP_LINES.keys()
    for step in steps.values():
        for prefix, lines in (("", step["code"].split("\n")), ("gradient_", step["gradient"])):
            if not lines:
                continue
            source = step[f"{prefix}source"].splitlines()
            assert set(lines) <= {line.strip() for line in source}
            file = (ROOT / step[f"{prefix}file"]).read_text(encoding="utf-8").splitlines()
            assert file[step[f"{prefix}line"] - 1].strip() == lines[0]
            name = step[f"{prefix}function"].rpartition(".")[2]
            assert re.match(rf"def {name}\(", source[0])


def test_variants_replace_lines():
    assert "gain" in code_of_steps("post-norm")["residual"]["code"]
    assert "gain" not in code_of_steps()["residual"]["code"]
    assert code_of_steps("untied")["logits"]["file"] == "npformer/nn/linear.py"


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a function that changes a file of functional/, in a copy that is read in its place."""
    shutil.copytree(ROOT / "npformer/functional", tmp_path / "functional")
    monkeypatch.setattr(code_lines, "PACKAGE", tmp_path)
    monkeypatch.setattr(code_lines, "_parsed", code_lines._parsed.__wrapped__)

    def change(file, old, new):
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new), encoding="utf-8")

    return change


SCORES = STEP_LINES["scores"].backward
assert SCORES is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dq = dscores @ k", "dquery = dscores @ k", "has 0 lines that begin with 'dq ='"),
        ("    dq = dscores @ k", "    dq = dscores @ k  # (..., T, K)\n    dq = dscores @ k", "has 2 lines"),
        ("def attention_backward(", "def gradient_of_attention(", "has no function attention_backward"),
        (
            "    dscores = dscores * scale\n    dq = dscores @ k  # (..., T, K)\n",
            "    dq = dscores @ k  # (..., T, K)\n    dscores = dscores * scale\n",
            "in another order",
        ),
    ],
)
def test_a_line_that_is_not_found_is_an_error(old, new, message, copied):
    quote(SCORES)
    copied("functional/attention.py", old, new)
    with pytest.raises(LookupError, match=message):
        quote(SCORES)
