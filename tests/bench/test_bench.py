"""The benchmark: its setups, its floor, its measurements and the rows of results."""

import functools
import itertools
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import strict_cupy
from paths import ORACLE

from npformer.bench import compare, floor, machine, measure
from npformer.bench.costs import AttentionPass, cost, measure_costs, slope
from npformer.bench.measure import KINDS, LEAST, Task, time_steps
from npformer.bench.own_step import gpu_peak, own_step
from npformer.bench.profile import COMPONENTS, FUNCTIONS, REST, Stopwatch, component_of, profile
from npformer.bench.setups import DROPOUT, SETUPS, Setup, choose_setups
from npformer.data.loader import split_batch
from npformer.errors import UserError
from npformer.functional import cross_entropy_backward
from npformer.kernels import plain_pairs
from npformer.models.transformer import Transformer
from npformer.training import step as training_step

TOY = Setup("toy", 8, 12, 2, 2, 30, 4, 7, tied=False)  # with fewer tokens in its sources than targets
TIED = replace(TOY, tied=True)


# parameters as PyTorch counts them, number of target tokens, sums of all source and target ids
@pytest.mark.parametrize(
    ("name", "parameters", "tokens", "sources", "targets"),
    [
        ("tiny", 5175568, 1757, 1816570, 1876940),
        ("small", 11682624, 1734, 1505786, 1535429),
        ("base8k", 48236544, 859, 832235, 723195),
        ("base37k", 63084544, 855, 2850760, 2746427),
    ],
)
def test_setups_have_known_sizes_and_data(name, parameters, tokens, sources, targets):
    setup = SETUPS.find(name)
    batch = setup.batch()
    assert counted(setup) == parameters
    assert (batch.tokens, batch.source.sum(), batch.target_out.sum()) == (tokens, sources, targets)
    assert batch.source.shape == batch.target_in.shape == (setup.sentences, setup.length)
    np.testing.assert_array_equal(batch.target_in[:, 1:], batch.target_out[:, :-1])
    lengths = (batch.source != 0).sum(1)
    assert lengths.max() == setup.length
    assert lengths.min() >= int(0.7 * setup.length)


def test_dropout_is_applied_at_the_same_places_as_in_pytorch():
    for setup in (TOY, TIED):
        config = setup.config()
        rates = (config.dropout, config.input_dropout, config.attention_dropout, config.feed_forward_dropout)
        assert rates == (DROPOUT,) * 4 == (0.1,) * 4
        assert (config.label_smoothing, config.norm, config.fused_projections) == (0.1, "post", True)


def counted(setup):
    """Return the number of parameters, extrapolated from small models: linear in vocabulary and layers."""
    base, word, layer = count(setup, 10, 1), count(setup, 11, 1), count(setup, 10, 2)
    return base + (setup.vocab_size - 10) * (word - base) + (setup.n_layers - 1) * (layer - base)


def count(setup, vocab_size, n_layers):
    return built(replace(setup, name="", vocab_size=vocab_size, n_layers=n_layers)).count_parameters()


@functools.cache
def built(setup):
    return Transformer(setup.config())


@pytest.mark.torch
@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_pytorchs_model_is_the_same_model(tied, monkeypatch):
    """Both models have the same parameters and, with equal values and no dropout, the same logits."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ORACLE)
    from oracle_models import D_MODEL, npformer_names

    from npformer.bench.torch_step import Translator

    setup = replace(TOY, d_model=D_MODEL, tied=tied)
    theirs, ours, batch = Translator(setup).train(), Transformer(setup.config()), setup.batch()
    for layer in theirs.modules():
        for name in ("dropout", "p"):
            if isinstance(getattr(layer, name, None), float):
                assert getattr(layer, name) == DROPOUT
                setattr(layer, name, 0.0)
    named = npformer_names(theirs, lambda parameter: parameter if parameter is None else parameter.detach())
    ours.load_state_dict({name: value.numpy() for name, value in named if value is not None})
    assert ours.count_parameters() == sum(parameter.numel() for parameter in theirs.parameters())
    logits, _ = ours.forward(*batch.inputs)
    expected = theirs(*map(torch.from_numpy, batch.inputs)).detach().numpy()
    words = batch.target_in != 0
    np.testing.assert_allclose(logits[words], expected[words], rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_pytorchs_step_makes_an_update():
    pytest.importorskip("torch")
    from npformer.bench.torch_step import torch_peak, torch_step

    step = torch_step(TIED, threads=1, device="cpu", tf32=False)
    losses = [step() for _ in range(100)]
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) - 0.01
    assert torch_peak("cpu") is None


def test_choosing_setups():
    assert [setup.name for setup in choose_setups(None)] == ["tiny", "small", "base8k", "base37k"]
    assert [setup.name for setup in choose_setups(["small", "tiny", "small"])] == ["small", "tiny"]
    with pytest.raises(UserError, match="unknown setup 'base': did you mean base8k"):
        choose_setups(["base"])


# The floor.


class Recorded(np.ndarray):
    """An array that records every matrix product in which it is a factor."""

    products: ClassVar[list] = []

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **settings):
        plain = [x.view(np.ndarray) if isinstance(x, Recorded) else x for x in inputs]
        if out is not None:
            settings["out"] = tuple(x.view(np.ndarray) if isinstance(x, Recorded) else x for x in out)
        if ufunc is np.matmul:
            self.products.append(tuple(x.shape for x in plain))
        made = getattr(ufunc, method)(*plain, **settings)
        return made.view(Recorded) if isinstance(made, np.ndarray) else made

    def __array_function__(self, function, types, args, settings):  # np.where would return a plain array
        made = super().__array_function__(function, types, args, settings)
        return made.view(Recorded) if isinstance(made, np.ndarray) else made


def recorded_products(setup, batch, packed):
    """Return the shapes of all products of the model with the plain pairs, forward and backward."""
    model = Transformer(setup.config())
    model._convert(lambda array: array.view(Recorded))
    Recorded.products.clear()
    with plain_pairs():
        logits, cache = model.forward(*batch.inputs, train=True, rng=np.random.default_rng(0), packed=packed)
        model.backward(np.ones_like(logits), cache)
    return Counter(map(normal_form, Recorded.products))


def normal_form(shapes):
    """Return batch axes, then sorted extents: equal for a product, its transpose and flattened rows."""
    left, right = shapes
    if len(right) == 2:  # all axes before the last are rows
        left = (int(np.prod(left[:-1])), left[-1])
    return (*left[:-2], *sorted((left[-2], left[-1], right[-1])))


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("setup", [TOY, TIED], ids=["untied", "tied"])
def test_the_floor_makes_the_products_of_the_step_and_no_other(setup, packed):
    batch = setup.batch()
    counted = Counter(
        normal_form((product.left, product.right))
        for product in floor.products(setup, batch, packed=packed)
        if not (packed and len(product.left) > 2)  # unpacking makes plain arrays, which do not record
    )
    made = recorded_products(setup, batch, packed)
    assert made == Counter({form: 3 * n for form, n in counted.items()})


def test_packed_products_have_a_row_for_each_real_token():
    batch = TOY.batch()
    rows = {product.left[0] for product in floor.products(TOY, batch, packed=True) if len(product.left) == 2}
    assert rows == {(batch.source != 0).sum(), (batch.target_in != 0).sum()}
    padded = sum(product.operations for product in floor.products(TOY, batch))
    assert sum(product.operations for product in floor.products(TOY, batch, packed=True)) < padded


def test_operations_of_a_product():
    product = floor.Product((2, 3, 5, 7), (2, 3, 7, 4))
    assert product.operations == 3 * sum(
        2 for _ in itertools.product(range(2), range(3), range(5), range(7), range(4))
    )


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("outer", [(), (2, 3)])
def test_the_floor_computes_what_it_should(turned, outer):
    product = floor.Product((*outer, 5, 7), (*outer, 7, 4), turned)
    part = floor.Part([product], "numpy")
    a, b, dy = (part.arrays[key].copy() for key in part.keys(product)[:3])
    part.multiply()
    y, da, db = (part.arrays[key] for key in part.keys(product)[3:])
    b, db = (b.swapaxes(-1, -2), db.swapaxes(-1, -2)) if turned else (b, db)
    np.testing.assert_allclose(y, a @ b, rtol=1e-5)
    np.testing.assert_allclose(da, dy @ b.swapaxes(-1, -2), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(db, a.swapaxes(-1, -2) @ dy, rtol=1e-5, atol=1e-6)


def test_workers_share_the_products():
    whole = sum(product.operations for product in floor.products(TOY, TOY.batch()))
    parts = [floor.products(TOY, share) for share in split_batch(TOY.batch(), 2)]
    shared = [sum(product.operations for product in part) for part in parts]
    assert len(shared) == 2
    assert 0.8 * whole < sum(shared) <= whole  # a share has no columns of padding beyond its longest sentence
    for packed in (False, True):
        floor.floor_step(TOY, workers=2, backend="numpy", packed=packed)()


# Processes that take measure.


def test_a_task_travels_as_text():
    task = Task("torch", TIED, 3, 0.5, "cupy", tf32=True)
    assert Task.from_json(task.to_json()) == task


def test_steps_are_timed_until_the_time_is_over(monkeypatch):
    times, value = time_steps(itertools.count().__next__, 0.0)
    assert len(times) == LEAST
    assert value == LEAST - 1
    clock = Clock()
    monkeypatch.setattr("npformer.bench.measure.time", clock)

    def step():
        clock.now += 0.25

    times, _ = time_steps(step, 2.0)
    assert times == [0.25] * 8


def test_measurements_take_turns(monkeypatch):
    said, measured = [], []
    monkeypatch.setattr(measure, "run_child", lambda task: measured.append(task.kind) or {"n": len(measured)})
    tasks = [Task(kind, TOY) for kind in ("npformer", "torch")]
    found = measure.take_turns(tasks, 3, lambda task: said.append(task.kind))
    assert measured == said == ["npformer", "torch"] * 3
    assert found == [[{"n": 1}, {"n": 3}, {"n": 5}], [{"n": 2}, {"n": 4}, {"n": 6}]]


@pytest.mark.parametrize("kind", ["npformer", pytest.param("torch", marks=pytest.mark.torch), "floor"])
def test_a_process_measures(kind):
    if kind == "torch":
        pytest.importorskip("torch")
    ballast = np.ones(50_000_000)  # 400 MB of this process, not of the child
    found = measure.run_child(Task(kind, TOY, seconds=0.0))
    assert found["steps"] == LEAST
    assert found["seconds"] > 0
    assert 0 <= found["above_import"] < found["peak"]
    assert kind == "torch" or found["peak"] < ballast.nbytes / 2
    assert found["gpu_peak"] is None
    assert found["loss"] is None if kind == "floor" else 0.1 < found["loss"] < 20


def test_on_a_gpu(monkeypatch):
    """All measurements run on the stand-in for CuPy, and they wait for the device."""
    cupy, waits = strict_cupy.install(monkeypatch), []
    monkeypatch.setattr(cupy.cuda.Device, "synchronize", lambda device: waits.append(device))
    settings = {"workers": 1, "backend": "cupy"}
    assert 1 < own_step(TOY, **settings)() < 10
    assert len(waits) == 1
    floor.floor_step(TOY, packed=False, **settings)()
    assert len(waits) == 2
    assert gpu_peak("cupy") == 0  # the stand-in's pool is empty
    assert sum(line.seconds for line in profile(TOY, backend="cupy", seconds=0.0)) > 0
    assert len(waits) > 500


def test_the_error_of_a_failed_process():
    broken = replace(TOY, d_model=9)
    with pytest.raises(UserError, match=r"of npformer with toy failed: .*d_model 9 is not divisible"):
        measure.run_child(Task("npformer", broken, seconds=0.0))


@pytest.mark.skipif(os.name == "nt", reason="needs a shell and signals")
def test_the_error_of_a_killed_process(monkeypatch, tmp_path):
    shell = tmp_path / "python"
    shell.write_text("#!/bin/sh\nkill -9 $$\n")
    shell.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(shell))
    with pytest.raises(UserError, match="of floor with toy was killed, probably for lack of memory"):
        measure.run_child(Task("floor", TOY, seconds=0.0))


@pytest.mark.skipif(not machine.STATUS.exists(), reason="needs /proc")
def test_peak_and_resident_memory():
    # in a process of its own, since this one keeps freed memory once workers have run in it
    code = """if True:
        import numpy as np
        from npformer.bench import machine

        before = machine.resident()
        block = np.ones(20_000_000)  # 160 MB
        assert machine.resident() > before + 0.9 * block.nbytes
        del block
        assert machine.peak() > before + 100_000_000
        assert machine.resident() < before + 100_000_000
    """
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(os.name == "nt", reason="needs the module resource")
def test_memory_where_the_system_has_no_proc(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "STATUS", tmp_path / "none")
    assert machine.resident() is None
    assert machine.peak() > 10_000_000  # ru_maxrss


# The rows of results.


def results(*seconds, peak=100, above=50):
    """Return the results of the rounds of one measurement."""
    return [{"seconds": s, "peak": peak, "above_import": above, "gpu_peak": None} for s in seconds]


def test_a_row_has_medians_of_ratios_not_ratios_of_medians():
    found = {
        "npformer": results(2.0, 4.0, 1.0),
        "torch": results(4.0, 4.0, 3.0, peak=250, above=200),
        "floor": results(1.0, 1.0, 0.8),
        "packed floor": results(0.5, 2.0, 0.4),
    }
    row = compare.make_row(TOY, found)
    assert row["name"] == "toy"
    assert row["ratio"] == 2.0
    assert row["ratio_spread"] == [1.0, 3.0]
    assert row["step_seconds"] == 2.0
    assert row["torch_step_seconds"] == 4.0
    assert row["tokens_per_second"] == TOY.batch().tokens / 2.0
    assert row["positions_per_second"] == 4 * 7 / 2.0
    assert row["peak_memory"] == 100
    assert row["peak_memory_ratio"] == 0.4
    assert row["above_import_memory_ratio"] == 0.25
    assert row["floor_seconds"] == 1.0
    assert row["over_floor"] == 2.0
    assert row["over_packed_floor"] == 2.5
    assert row["packed"] is Transformer.supports_packing is True
    assert row["share_in_products"] == 0.4
    assert "ratio_tf32" not in row


def test_a_row_without_pytorch():
    found = {kind: results(1.0) for kind in ("npformer", "floor", "packed floor")}
    row = compare.make_row(TOY, found)
    assert row["ratio"] is None
    assert not [key for key in row if key.startswith("torch") or key.endswith("memory_ratio")]


def test_a_row_of_a_gpu():
    found = {kind: results(2.0) for kind in ("npformer", "torch", "torch tf32", "floor", "packed floor")}
    found["torch tf32"][0]["seconds"] = 1.0
    for kind, size in (("npformer", 30), ("torch", 60)):
        found[kind][0]["gpu_peak"] = size
    row = compare.make_row(TOY, found)
    assert (row["ratio"], row["ratio_tf32"]) == (1.0, 0.5)
    assert row["gpu_peak_memory_ratio"] == 0.5


def test_the_tasks_that_are_compared(monkeypatch):
    seen = []

    def take_turns(tasks, repeats, report):
        seen.extend((task.kind, task.backend, task.tf32) for task in tasks)
        return [results(1.0) * repeats for _ in tasks]

    monkeypatch.setattr(compare, "take_turns", take_turns)
    settings = {"against": True, "workers": 2, "repeats": 2, "seconds": 1.0, "report": print}
    row = compare.compare(TOY, backend="numpy", **settings)
    assert [kind for kind, _, _ in seen] == list(KINDS)
    assert (row["repeats"], row["workers"], row["backend"]) == (2, 2, "numpy")
    seen.clear()
    row = compare.compare(TOY, backend="cupy", **settings)
    assert "ratio_tf32" in row
    assert row["workers"] == 1
    assert [(kind, tf32) for kind, backend, tf32 in seen if kind == "torch"] == [("torch", 0), ("torch", 1)]


def test_pytorch_is_found_without_being_imported(monkeypatch):
    monkeypatch.setattr(compare, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs PyTorch, which is not installed: pip install torch"):
        compare.require_torch()
    code = (
        "import sys, npformer.cli.bench, npformer.bench.compare as c; c.find_spec and None; "
        "print(sorted({'torch', 'matplotlib', 'cupy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_machine():
    about = machine.describe()
    assert about["machine"]["cores"] >= 1
    assert about["machine"]["cpu"]
    assert about["versions"]["numpy"] == np.__version__
    assert about["date"].startswith("20")
    assert machine.is_busy({"load": 2.0, "cores": 2})
    assert not machine.is_busy({"load": 0.1, "cores": 2})
    assert not machine.is_busy({"load": None, "cores": 2})


# The profile.


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def test_a_stopwatch_counts_nested_time_only_once(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("npformer.bench.profile.time", clock)
    stopwatch = Stopwatch(lambda: None)

    def wait(seconds):
        clock.now += seconds

    inner = stopwatch.watch(lambda: wait(3), "inner", "forward")
    middle = stopwatch.watch(lambda: (wait(1), inner(), inner()), "middle", "backward")
    outer = stopwatch.watch(lambda: (wait(5), middle(), inner(), wait(2)), "outer", "forward")
    outer()
    assert dict(stopwatch.seconds) == {
        ("inner", "forward"): 9,
        ("middle", "backward"): 1,
        ("outer", "forward"): 7,
    }


def test_components_of_a_profile():
    lines = profile(TOY, backend="numpy", seconds=0.0)
    names = {line.component for line in lines}
    known = {component for _, component in COMPONENTS} | set(FUNCTIONS.values())
    assert names == known | {REST, "Adam", "attention: scores, softmax, values"}
    assert [line.seconds for line in lines] == sorted((line.seconds for line in lines), reverse=True)
    both_passes = {"logits", "cross-entropy", "residual, dropout, norm", "attention: scores, softmax, values"}
    assert both_passes <= {line.component for line in lines if line.forward and line.backward}
    assert training_step.cross_entropy_backward.__wrapped__ is cross_entropy_backward  # as it was before


@pytest.mark.parametrize(
    ("path", "method", "component"),
    [
        ("source.tokens", "forward", "embeddings"),
        ("encoder.layers.0.self_attention.query_key_value", "forward", "attention: queries, keys and values"),
        ("decoder.layers.3.cross.output", "backward", "attention: heads, joined by Wo"),
        ("decoder.layers.3.cross", "attend_backward", "attention: scores, softmax, values"),
        ("decoder.layers.3.cross_residual.norm", "forward", "residual, dropout, norm"),
        ("encoder.layers.0.feed_forward", "forward", "feed-forward: ReLU, dropout"),
        ("encoder.layers.0.feed_forward_residual", "forward", "residual, dropout, norm"),
        ("decoder.norm", "forward", "final norms"),
        ("output", "forward", "logits"),
        ("", "forward", "stacks of layers"),
    ],
)
def test_the_component_of_a_method(path, method, component):
    assert component_of(path, method) == component


# Costs against size.


def test_memory_includes_only_arrays_made_during_the_run():
    def prepare():
        weights = np.ones(1_000_000)  # 8 MB that existed before

        def run():
            y = weights * 2  # 8 MB
            return (y + 1).sum()  # 8 MB more

        return run

    seconds, most = cost(prepare, 0.0)
    assert seconds > 0
    assert 16_000_000 <= most < 16_100_000


def test_memory_of_plain_attention_grows_with_the_square_of_the_length():
    lengths = (128, 256, 512)
    plain = [cost(AttentionPass(length, plain=True).prepare, 0.0)[1] for length in lengths]
    assert 1.7 < slope(lengths, plain) < 2.1


def test_the_kernels_attention_needs_memory_in_proportion_to_the_length():
    lengths = (256, 512, 1024)
    blocked = [cost(AttentionPass(length, plain=False).prepare, 0.0)[1] for length in lengths]
    assert slope(lengths, blocked) < 1.2


def test_every_cost_is_measured():
    said = []

    def report(what, size):
        said.append((what, size))

    costs = list(measure_costs(report, lengths=(4, 8), batches=(2,), setup=TOY, seconds=0.0))
    assert [(c.name, c.against, c.size) for c in costs] == [
        ("step", "length", 4),
        ("attention", "length", 4),
        ("plain attention", "length", 4),
        ("step", "length", 8),
        ("attention", "length", 8),
        ("plain attention", "length", 8),
        ("step", "batch", 2),
    ]
    assert said[0] == ("step against length", 4)
    assert all(c.seconds > 0 and c.bytes > 0 for c in costs)


def test_a_slope_is_the_power():
    sizes = np.array([1.0, 2, 4, 8, 16])
    assert slope(sizes, 3 * sizes**2) == pytest.approx(2)
    assert slope(sizes, sizes + 0 * sizes) == pytest.approx(1)
