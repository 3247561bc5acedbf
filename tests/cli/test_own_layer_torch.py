"""npformer gradcheck on a file with functions of PyTorch: the example of the documentation."""

import re

import pytest
from paths import ROOT

from npformer.cli.main import main

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

PAGE = (ROOT / "docs" / "checking-torch-and-jax.md").read_text(encoding="utf-8")


def without_numbers(text):
    """Return the text without the rounding errors and the errors that depend on random numbers."""
    return re.sub(r"\d\.\de[-+]\d\d", "", text)


def test_the_example_of_the_documentation(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "my_linear.py" in block
    )
    shown = next(block for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) if "my_linear" in block)
    command, _, output = shown.partition("\n")
    (tmp_path / "my_linear.py").write_text(code, encoding="utf-8")
    assert main(command.removeprefix("$ npformer ").split()) == 1
    assert without_numbers(capsys.readouterr().out) == without_numbers(output)
