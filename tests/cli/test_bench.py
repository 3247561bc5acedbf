"""npformer bench: its output, its files and the options that it refuses."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from commands import refused, said

from npformer.bench import compare, costs, decoding, measure, setups
from npformer.bench.setups import Setup
from npformer.cli import bench
from npformer.cli.main import main
from npformer.errors import Registry, UserError
from npformer.models.gpt import GPT, GPTConfig
from npformer.plots import text_problems
from npformer.plots.curve_plots import cost_panels

TOY = Setup("tiny", 8, 12, 2, 1, 30, 4, 6, tied=False)  # replaces the setup of that name
QUICK = ["bench", "--repeats", "2", "--seconds", "0.001"]


@pytest.fixture
def toys(monkeypatch):
    """Replace the setups of the benchmark with two small ones."""
    toys = Registry("setup")
    toys.register("tiny", TOY)
    toys.register("small", replace(TOY, name="small", tied=True))
    monkeypatch.setattr(setups, "SETUPS", toys)
    monkeypatch.setattr(bench, "is_busy", lambda machine: False)
    monkeypatch.setattr(measure, "run_child", measure_here)


def measure_here(task):
    """Measure in this process, which is faster; PyTorch takes twice the time and the memory."""
    if task.kind != "torch":
        return measure.measure(task)
    found = measure.measure(replace(task, kind="npformer"))
    return {key: value and 2 * value for key, value in found.items()}


def test_the_table(toys, capsys):
    assert main(QUICK) == 0
    shown = capsys.readouterr()
    assert re.search(r"^ +step +tokens/s +products +over \(packed\) +memory$", shown.out, re.MULTILINE)
    row = r"^tiny +[\d,]+ ms +[\d,]+ +\d+% +\d+\.\d\d \(\d+\.\d\d\) +[\d,]+ MB$"
    assert re.search(row, shown.out, re.MULTILINE)
    assert re.search(row.replace("tiny", "small"), shown.out, re.MULTILINE)
    assert "PyTorch" not in shown.out
    assert f"numpy {np.__version__}" in shown.out
    assert max(map(len, shown.out.splitlines()[:8])) <= 120


def test_json_on_the_screen_is_nothing_but_json(toys, capsys):
    (row,) = json.loads(said(capsys, "", *QUICK, "--only", "small", "--workers", "1", "--json"))
    assert (row["name"], row["ratio"], row["rough"]) == ("small", None, False)
    assert (row["workers"], row["repeats"]) == (1, 2)
    keys = {"step_seconds", "tokens_per_second", "floor_seconds", "over_floor", "peak_memory"}
    assert all(row[key] > 0 for key in keys | {"share_in_products"})
    assert row["above_import_memory"] >= 0  # memory freed by importing may suffice
    assert {"machine", "versions", "date", "backend"} <= row.keys()


def test_against_pytorch(toys, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "find_spec", lambda name: "there")
    path = tmp_path / "bench.json"
    out = said(capsys, "", *QUICK, "--only", "tiny", "--against", "torch", "--json", str(path))
    assert re.search(
        r"^tiny .* \d+\.\d\d; -?\d+\.\d\d +\d+\.\d\d \(\d+\.\d\d–\d+\.\d\d\)$", out, re.MULTILINE
    )
    assert "median of 2 rounds" in out
    (row,) = json.loads(path.read_text(encoding="utf-8"))
    low, high = row["ratio_spread"]
    assert 0 < low <= row["ratio"] <= high
    assert row["torch_peak_memory"] > 50_000_000  # Python and NumPy
    assert row["peak_memory_ratio"] == pytest.approx(row["peak_memory"] / row["torch_peak_memory"])


def test_the_profile(toys, capsys):
    out = said(capsys, "bench --seconds 0.001 --profile --only small")
    shares = [float(share) for share in re.findall(r"([\d.]+)%", out)]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert re.search(r"^cross-entropy +\d+\.\d +\d+\.\d +\d+\.\d +\d+\.\d%$", out, re.MULTILINE)
    names = [re.split(r"  +", line)[0] for line in out.splitlines()]
    assert {"small", "Adam", "cross-entropy", "the whole step"} <= set(names)
    rows = json.loads(said(capsys, "bench --seconds 0.001 --profile --json"))
    assert {row["name"] for row in rows} == {"tiny"}
    assert all(row["seconds"] == pytest.approx(row["forward"] + row["backward"]) for row in rows)


def test_the_curves(toys, capsys, monkeypatch, tmp_path, figures):
    monkeypatch.setattr(costs, "LENGTHS", (4, 8, 16))
    monkeypatch.setattr(costs, "BATCHES", (2, 4, 8))
    sizes = {"lengths": costs.LENGTHS, "batches": costs.BATCHES, "setup": TOY, "seconds": 0.0}
    monkeypatch.setattr(costs, "measure_costs", partial(costs.measure_costs, **sizes))
    data = tmp_path / "costs.json"
    assert main(["bench", "--curves", str(tmp_path / "costs.png"), "--json", str(data)]) == 0
    figure = figures["costs.png"]
    assert text_problems(figure) == []
    assert [ax.get_ylabel() for ax in figure.axes] == ["seconds", "megabytes"] * 2
    rows = json.loads(data.read_text(encoding="utf-8"))
    attention = [row["bytes"] / 1e6 for row in rows if row["name"] == "attention"]
    line = next(line for line in figure.axes[1].lines if len(line.get_xdata()) and line.get_xdata()[0] == 4)
    step = [row["bytes"] / 1e6 for row in rows if (row["name"], row["against"]) == ("step", "length")]
    np.testing.assert_allclose(line.get_ydata(), step)
    out = capsys.readouterr().out
    assert f"{attention[-1]:.1f}" in out
    assert re.search(r"^length +step ms +step MB +attention ms", out, re.MULTILINE)


def test_decoding(monkeypatch, capsys):
    toy = replace(TOY, vocab_size=40, length=20)
    gpt = GPT(GPTConfig(vocab_size=40, d_model=8, n_layers=1, n_heads=2, context=40))
    measurements = {
        "one": decoding.with_and_without_cache,
        "many": lambda workers: decoding.batched_decoding(workers, 2),
        "text": lambda workers: decoding.generation(workers, 3),
        "products": lambda workers: decoding.generation_products(workers, 3),
    }
    sizes = {"LENGTH": 6, "SENTENCES": 30, "CONTINUATION": 6, "BASE8K": toy, "TINY": toy}
    for name, value in (sizes | {"MEASUREMENTS": measurements, "_gpt": lambda: gpt}).items():
        monkeypatch.setattr(decoding, name, value)
    one, many, text, products = json.loads(said(capsys, "bench --decoding --json"))
    assert (text["sentences"], text["tokens"]) == (products["sentences"], products["tokens"]) == (3, 18)
    assert (one["name"], one["sentences"], many["name"], many["sentences"]) == ("one", 1, "many", 30)
    assert one["ratio"] > 0
    assert many["ratio"] is None
    assert 1 <= one["tokens"] <= 6
    assert 30 <= many["tokens"] <= 30 * 19
    assert re.search(r"^many +\d+\.\d\d +[\d,.]+ +[\d,]+ +–$", said(capsys, "bench --decoding"), re.MULTILINE)


def test_without_pytorch(capsys, monkeypatch):
    monkeypatch.setattr(compare, "find_spec", lambda name: None)
    assert "pip install torch" in refused(capsys, "bench --against torch")


# The picture.


def panels(values):
    return cost_panels({"seconds size": {"f": values}}, {"size": [1, 2, 4]}, panels=[[("seconds", "size")]])


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 0.0, 2.0]])
def test_numbers_that_cannot_be_drawn(values):
    with pytest.raises(UserError, match="f needs 3 numbers above 0, one for each size"):
        panels(values)
