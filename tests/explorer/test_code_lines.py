"""The source lines that the explorer shows are lines of the package today."""

import re
import shutil
from functools import cache

import pytest
from paths import ROOT

from npformer.explorer.code_lines import STEP_LINES, VARIANTS, Quote, code_of_steps, line_numbers, quotes

ALL = [(key, each) for steps in (STEP_LINES, *VARIANTS.values()) for key, each in steps.items()]
QUOTES = [(key, quote) for key, each in ALL for quote in (each.forward, each.backward) if quote]


@pytest.mark.parametrize(("key", "quote"), QUOTES, ids=[f"{k}, {q.function}" for k, q in QUOTES])
def test_each_line_is_in_the_source(key, quote):
    text = (ROOT / "npformer" / quote.file).read_text(encoding="utf-8").splitlines()
    assert [text[number - 1].strip() for number in line_numbers(quote)] == list(quote.lines)


def test_the_keys_of_the_page():
    """Each key has its code, the function around it, and the place of both."""
    steps = code_of_steps()
    assert steps.keys() == STEP_LINES.keys()
    for step in steps.values():
        for prefix, lines in (("", step["code"].split("\n")), ("gradient_", step["gradient"])):
            if not lines:
                continue
            source = step[f"{prefix}source"].splitlines()
            assert source[0].startswith("def "), source[0]
            assert set(lines) <= {line.strip() for line in source}
            file = (ROOT / step[f"{prefix}file"]).read_text(encoding="utf-8").splitlines()
            assert file[step[f"{prefix}line"] - 1].strip() == lines[0]
            name = step[f"{prefix}function"].rpartition(".")[2]
            assert re.match(rf"def {name}\(", source[0])


def test_variants_replace_lines():
    assert "gain" in code_of_steps("post-norm")["residual"]["code"]
    assert "gain" not in code_of_steps()["residual"]["code"]
    assert code_of_steps("untied")["logits"]["file"] == "npformer/nn/linear.py"
    assert code_of_steps("post-norm").keys() == code_of_steps().keys()


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a function that changes a file of functional/, in a copy that is read in its place."""
    shutil.copytree(ROOT / "npformer/functional", tmp_path / "functional")
    monkeypatch.setattr(quotes, "PACKAGE", tmp_path)
    monkeypatch.setattr(quotes, "_functions_of", cache(quotes._functions_of.__wrapped__))

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
        ("dq = dscores @ k", "dq = scale * dscores @ k", "has 'dq = dscores @ k .*' 0 times"),
        ("    dq = dscores @ k", "    dq = dscores @ k  # (..., T, K)\n    dq = dscores @ k", "2 times"),
        ("def attention_backward(", "def gradient_of_attention(", "has no function attention_backward"),
        (
            "    dscores = dscores * scale\n    dq = dscores @ k  # (..., T, K)\n",
            "    dq = dscores @ k  # (..., T, K)\n    dscores = dscores * scale\n",
            "in another order",
        ),
    ],
)
def test_a_changed_source_is_noticed(old, new, message, copied):
    line_numbers(SCORES)
    quotes._functions_of.cache_clear()
    copied("functional/attention.py", old, new)
    with pytest.raises(LookupError, match=message):
        line_numbers(SCORES)


def test_a_moved_line_has_a_new_number(copied):
    quote = Quote("functional/linear.py", "linear", ("y = y + bias",))
    before = line_numbers(quote)
    quotes._functions_of.cache_clear()
    line = "    if bias is not None:\n"
    copied("functional/linear.py", line, f"    # one line more\n{line}")
    assert line_numbers(quote) == [before[0] + 1]
