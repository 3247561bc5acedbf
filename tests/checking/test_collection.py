"""Right layers, and the same layers with one mistake each, written by somebody who had not seen the checker.

collection/table.json lists the layers with their inputs. For each mistake it has the changed line, the tensor
and the entry that must be named, and words of the diagnosis that name the mistake.
"""

import gc
import importlib.util
import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from npformer import gradcheck

FOLDER = Path(__file__).parent / "collection"
TABLE = json.loads((FOLDER / "table.json").read_text(encoding="utf-8"))
CODES = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))]
numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def _only_new_objects():
    """Hide from the garbage collector what the process holds now.

    The diagnosis asks it for the functions of a code. It would go through all objects of all other tests.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def report_of(layer, code, tmp_path):
    """Check the layer of this code. It lies in a file, whose lines the diagnosis names."""
    path = tmp_path / f"layer_{next(numbers)}.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses look up their annotations
    try:
        spec.loader.exec_module(module)
        settings = eval(layer.get("settings", "{}"), {"np": np})
        return gradcheck(getattr(module, layer["name"])(), *inputs_of(layer), **settings)
    finally:
        del sys.modules[path.stem]


def inputs_of(layer):
    if "inputs" in layer:
        return eval(layer["inputs"], {"np": np})
    rng = np.random.default_rng(0)
    shapes = layer["shape"] if isinstance(layer["shape"][0], list) else [layer["shape"]]
    return [rng.standard_normal(shape) for shape in shapes]


def code_of(layer):
    """Return the file with the layer's class."""
    return next(code for code in CODES if re.search(rf"^class {layer['name']}\b", code, re.MULTILINE))


@pytest.mark.parametrize("layer", TABLE, ids=lambda layer: layer["layer"])
def test_a_right_layer(layer, tmp_path):
    report = report_of(layer, code_of(layer), tmp_path)
    assert report.ok, str(report)


@pytest.mark.parametrize("layer", TABLE, ids=lambda layer: f"{layer['layer']}: {layer['wrong']['mistake']}")
def test_a_wrong_layer(layer, tmp_path):
    wrong, code = layer["wrong"], code_of(layer)
    assert wrong["old"] in code
    code = code.replace(wrong["old"], wrong["new"], wrong["count"] or -1)
    report = report_of(layer, code, tmp_path)
    assert not report.ok
    row = next(row for row in report.failures if row.tensor == wrong["tensor"])
    assert wrong["words"] in row.diagnosis, str(report)
    if "entry" in wrong:
        assert row.entry == tuple(wrong["entry"])


def test_the_size_of_the_collection():
    assert len(TABLE) >= 60
