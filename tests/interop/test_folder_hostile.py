"""Random damage and forgery: every folder is loaded or refused with one sentence, in little memory."""

import json
import shutil
import tracemalloc

import numpy as np
import pytest
from family_models import CONFIGS, random_model
from hugging_face_folders import forge, write_folder
from safetensors.numpy import load_file

from npformer import UserError
from npformer.interop import export_folder, load_folder
from npformer.interop.families import FAMILIES

N = 300  # folders
MANY = 6000  # in a test for the night
# of memory: reading a JSON file reserves 64 MB, and the models take some kB
MOST_BYTES = 2**26 + 2**24
VALUES = (
    *(None, True, False, -1, 0, 1, 3, 64, 2**31, 2**63, 10**18, 10**290, 10**400, 0.5, -1.5, 1e308),
    *(float("nan"), float("inf"), "", "x", "F32", "../x", "\ud800", [], [1], [0, 8], {}, {"a": 1}),
    *([1] * 1000, [10**18] * 60, [[[[[]]]]], "x" * 100_000),
)
DTYPES = ("F64", "F16", "BF16", "I64", "BOOL", "F8_E4M3", "F4", "C64", "F31", "f32", "")


def a_value(rng):
    """Return a random value for JSON, from the list or nested very deeply."""
    index = rng.integers(len(VALUES) + 1)
    if index < len(VALUES):
        return VALUES[index]
    deep = 0
    for _ in range(rng.integers(40, 900)):
        deep = [deep]
    return deep


def damage_bytes(path, rng):
    """Cut a file, lengthen it, overwrite some bytes near its beginning, or forge the length of its header."""
    data = bytearray(path.read_bytes())
    kind = rng.integers(4)
    if kind == 0:
        data = data[: rng.integers(len(data))]
    elif kind == 1:
        data += rng.bytes(rng.integers(1, 100))
    elif kind == 2:
        for _ in range(rng.integers(1, 5)):
            data[rng.integers(min(len(data), 400))] = rng.integers(256)
    else:
        data[:8] = int(rng.integers(2**63) >> rng.integers(63)).to_bytes(8, "little")
    path.write_bytes(data)


def forge_header(path, rng):
    """Change an entry in the header of a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    name = list(header)[rng.integers(len(header))]
    kind = rng.integers(6)
    if kind == 0:
        header[name] = a_value(rng)
    elif kind == 1:
        header[str(a_value(rng))[:1000]] = header.pop(name)
    elif kind == 2:
        header[name]["dtype"] = DTYPES[rng.integers(len(DTYPES))]
    elif kind == 3:
        lengths = rng.integers(2**63, size=rng.integers(70))
        header[name]["shape"] = [int(n) >> int(rng.integers(64)) for n in lengths]
    elif kind == 4:
        header[name]["data_offsets"] = [int(n) for n in rng.integers(-9, 2000, 2)]
    else:
        header[name][["dtype", "shape", "data_offsets", "x"][rng.integers(4)]] = a_value(rng)
    forge(path, header, data)


def forge_json(path, rng):
    """Change an entry of a JSON file, at its first or second level."""
    content = json.loads(path.read_text())
    inner = [value for value in content.values() if isinstance(value, dict) and value]
    target = inner[0] if inner and rng.integers(2) else content
    key = list(target)[rng.integers(len(target))]
    target[key] = a_value(rng)
    path.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Return the settings and the tensors of a small model of each family."""
    root, contents = tmp_path_factory.mktemp("families"), []
    for family in FAMILIES.names():
        folder = export_folder(random_model(CONFIGS[family]), root / family, family)
        settings = json.loads((folder / "config.json").read_text())
        assert settings["model_type"] == family
        contents.append((settings, load_file(folder / "model.safetensors")))
    return contents


def hostile_folder(folder, contents, seed):
    """Write a folder of a small model and damage one of its files."""
    rng = np.random.default_rng(seed)
    settings, tensors = contents[seed % len(contents)]
    write_folder(folder, settings, tensors, n_shards=int(rng.integers(1, 3)))
    files = sorted(folder.iterdir())
    path = files[rng.integers(len(files))]
    if rng.integers(3) == 0:
        damage_bytes(path, rng)
    elif path.suffix == ".json":
        forge_json(path, rng)
    else:
        forge_header(path, rng)
    return folder


def outcome(folder):
    """Return the message of the UserError, or "" if the folder is loaded, and the memory in use at most."""
    tracemalloc.start()
    try:
        load_folder(folder)
        message = ""
    except UserError as error:
        message = str(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return message, peak


def test_random_damage_and_forgery(tmp_path, contents):
    assert refusals(tmp_path, contents, range(N)) >= 200  # some changes change nothing, as a larger limit


@pytest.mark.nightly
def test_much_random_damage_and_forgery(tmp_path, contents):
    assert refusals(tmp_path, contents, range(N, N + MANY)) > 0.6 * MANY


def refusals(root, contents, seeds):
    """Check that each folder is loaded or refused with one sentence, in little memory. Count the refused."""
    refused = 0
    for seed in seeds:
        folder = hostile_folder(root / str(seed), contents, seed)
        message, peak = outcome(folder)
        assert peak < MOST_BYTES, (seed, message)
        assert "\n" not in message, (seed, message)
        assert len(message) < 700, (seed, message)
        assert ": " in message or not message, (seed, message)
        refused += bool(message)
        shutil.rmtree(folder)
    return refused


def test_the_undamaged_folders_are_loaded(tmp_path, contents):
    for settings, tensors in contents:
        assert outcome(write_folder(tmp_path, settings, tensors))[0] == "", settings
