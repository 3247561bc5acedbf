"""The public names of npformer: lazy, listed by dir(), and shown by help() with their signatures."""

import pydoc
import subprocess
import sys
import tomllib

import pytest
from paths import ROOT

import npformer

PACKAGES = ("checking", "data", "explorer", "functional", "generation", "models", "nn", "plots")
PACKAGES += ("pretrained", "training")
FUNCTIONS = ("assert_no_leak", "gradcheck", "load", "show", "train")


def test_dir_lists_the_public_interface():
    assert set(dir(npformer)) == {*npformer.__all__, "__version__"}
    assert set(PACKAGES) | set(FUNCTIONS) < set(npformer.__all__)
    for name in npformer.__all__:
        assert getattr(npformer, name) is not None


def test_help_shows_the_signatures():
    text = pydoc.plain(pydoc.render_doc(npformer))
    for name in FUNCTIONS:
        assert f"{name}(" in text
    assert "gradcheck(" in pydoc.plain(pydoc.render_doc(npformer.gradcheck))
    assert "*inputs" in pydoc.plain(pydoc.render_doc(npformer.gradcheck))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'npformer' has no attribute 'nothing'"):
        _ = npformer.nothing


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("import npformer", ["npformer."]),
        ("import npformer; npformer.load", ["npformer.training"]),
        # pytest loads the plugin for every suite where npformer is installed
        ("import pytest, npformer.pytest_plugin", ["numpy", "npformer.checking"]),
        ("import npformer.cli.bench, npformer.bench.compare", ["torch", "matplotlib", "cupy"]),
    ],
)
def test_an_import_loads_no_more_than_it_needs(imports, others):
    code = f"import sys; {imports}; print(*(m for m in sys.modules if m.startswith({tuple(others)})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} <= {"npformer.version"}


def test_type_information_is_included():
    assert (ROOT / "npformer" / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["npformer"]
