"""Recorded pages: their steps, computed again by PyTorch, their names in the cache tree, and bad input."""

import base64
import re

import numpy as np
import pytest
from marian_folders import marian_folder, sentences
from page_steps import Steps
from tiny_runs import bert_checkpoint, gpt_checkpoint
from word_translator import word_translator

import npformer
from npformer.errors import UserError
from npformer.explorer import explore, recorded
from npformer.explorer.recorded import recorded_data
from npformer.explorer.steps import data as steps_data
from npformer.models.universal import UniversalConfig, UniversalTransformer
from npformer.storage.checkpoint import save_checkpoint

DOG = "the dog is tired"
PRE = {"norm": "pre", "final_norm": True}


@pytest.fixture
def loaded(tmp_path):
    """Return a function that loads a tiny model of some kind with some settings."""

    def load(kind, **changes):
        if kind == "translator":
            return word_translator(**changes)
        if kind == "marian":
            return npformer.load(marian_folder(tmp_path / "marian"), dtype="float64")
        make = {"gpt": gpt_checkpoint, "bert": bert_checkpoint}[kind]
        save_checkpoint(make(**changes), tmp_path / "run.safetensors")
        return npformer.load(tmp_path / "run.safetensors")

    return load


TEXTS = {"marian": sentences(5)[4], "translator": DOG, "gpt": "the cat ate", "bert": "the [MASK] sees a dog"}
MODELS = {
    "post-norm": ("translator", {}),
    "pre-norm": ("translator", {**PRE, "label_smoothing": 0.2, "tied": "none", "output_bias": True}),
    "fused": ("translator", {**PRE, "fused_projections": True, "activation": "gelu", "d_value": 5}),
    "sequence": ("translator", {"norm": "n-dan", "activation": "gelu_tanh", "positions": "learned"}),
    "relative": ("translator", {"positions": "relative", "projection_activation": "relu"}),
    "added mask": ("translator", {"masking_how": "add", "mask_fill": -1e9, "attention_output": False}),
    "swish projections": ("translator", {"projection_activation": "swish", "zero_padding": True}),
    "gpt": ("gpt", {}),
    "untied gpt": ("gpt", {"tied": False, "window": 3, "activation": "gelu"}),
    "llama": ("gpt", {"norm": "rms", "positions": "rotary", "activation": "swiglu", "n_kv_heads": 1}),
    "interleaved": ("gpt", {"positions": "rotary", "rotary_layout": "interleaved"}),
    "shared heads": ("gpt", {"n_heads": 4, "n_kv_heads": 2, "activation": "swish"}),
    "geglu": ("gpt", {"activation": "geglu", "bias": False}),
    "bert": ("bert", {}),
    "marian": ("marian", {}),
    "distilbert": ("bert", {"n_segments": 0, "activation": "gelu_tanh"}),
}


def split(x, note, shape):
    heads, length, width = shape
    part = x[:, note["start"] : note["start"] + heads * width]
    return part.reshape(length, heads, width).transpose(0, 1)


def rearranged(torch, x, note, shape):
    """Return the numbers of x at other places, as the kind of the note says."""
    return {
        "split_heads": lambda: split(x, note, shape),
        "merge_heads": lambda: x.transpose(0, 1).reshape(shape),
        "repeat_heads": lambda: x.repeat_interleave(note["repeats"], 0),
        "spread_by_distance": lambda: torch.einsum("htr,tsr->hts", x, at_distance(torch, x, note)),
    }[note["kind"]]()


def at_distance(torch, x, note):
    """Return which distance r each key s has from query t, as ones and zeros of shape (T, S, R)."""
    length, most = x.shape[1], note["maxDistance"]
    distance = (torch.arange(length) - torch.arange(length)[:, None]).clamp(-most, most) + most
    return torch.nn.functional.one_hot(distance, 2 * most + 1).to(x.dtype)


def rotated(torch, x, table, layout):
    """Return x (H, T, K), whose pairs are complex numbers, times the rotations of its positions (T, K)."""
    cos, sin = table.chunk(2, -1)
    pairs = x.unflatten(-1, (-1, 2)) if layout == "interleaved" else torch.stack(x.chunk(2, -1), -1)
    y = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.complex(cos, sin))
    return y.flatten(-2) if layout == "interleaved" else torch.cat(y.unbind(-1), -1)


def masked(torch, x, note):
    allowed = torch.tensor(note["allowed"], dtype=torch.bool).reshape(x.shape[-2:])
    fill = float(note["fill"])
    return x + torch.where(allowed, 0.0, fill) if note["how"] == "add" else x.masked_fill(~allowed, fill)


def embedded(torch, table, note):
    y = table[note["ids"]] * note["scale"]
    zero = torch.tensor([index == note["zeroId"] for index in note["ids"]])
    return y.masked_fill(zero[:, None], 0)


def losses(log_probs, note):
    at_target = log_probs[range(len(note["targets"])), note["targets"]]
    return -(1 - note["smoothing"]) * at_target - note["smoothing"] * log_probs.mean(-1)


def operations(torch):
    """Return what each operation computes, as a function of its inputs, its note and its shape."""
    scalars = {
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "normal_cdf": lambda x: (1 + torch.erf(x / 2**0.5)) / 2,
        "tanh": lambda x: torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)),
    }
    return {
        "embed": lambda table, n, s: embedded(torch, table, n),
        "add_positions": lambda x, p, n, s: x + p[: len(x)],
        "linear": lambda x, w, n, s: x @ w,
        "add_bias": lambda x, b, n, s: x + b,
        "transpose": lambda x, n, s: x.T,
        "add": lambda x, h, n, s: x + h,
        "rearrange": lambda x, n, s: rearranged(torch, x, n, s),
        "scores": lambda q, k, n, s: q @ k.transpose(-1, -2) * n["scale"],
        "mask": lambda x, n, s: masked(torch, x, n),
        "softmax": lambda x, n, s: torch.softmax(x, -1),
        "weighted_sum": lambda w, v, n, s: w @ v,
        "scalar": lambda x, n, s: scalars[n["name"]](x),
        "gate": lambda x, inner, n, s: x * (inner + n["shift"]) * n["factor"],
        "mean": lambda x, n, s: x.mean(-1, keepdim=True),
        "rstd": lambda x, m, n, s: 1 / torch.sqrt(((x - m) ** 2).mean(-1, keepdim=True) + n["eps"]),
        "normalize": lambda x, m, r, n, s: (x - m) * r,
        "scale_and_shift": lambda x, gain, *rest: gain * x + (rest[0] if len(rest) == 3 else 0),
        "rrms": lambda x, n, s: 1 / torch.sqrt((x * x).mean(-1, keepdim=True) + n["eps"]),
        "scale_rows": lambda x, r, n, s: x * r,
        "rotate": lambda x, table, n, s: rotated(torch, x, table, n["layout"]),
        "factor": lambda x, n, s: x * n["factor"],
        "collect_by_distance": lambda x, n, s: torch.einsum("hts,tsr->htr", x, at_distance(torch, x, n)),
        "log_softmax": lambda x, n, s: torch.log_softmax(x, -1),
        "losses": lambda x, n, s: losses(x, n),
        "cross_entropy": lambda x, n, s: (x * torch.tensor(n["real"])).sum() / n["tokens"],
    }


def near(actual, expected):
    """Check that arrays are equal up to rounding, relative to their largest entry.

    A gradient that is 0 in exact arithmetic, as that of a bias of keys, consists of rounding errors alone.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    largest = np.abs(expected[finite]).max(initial=0)
    assert np.abs(actual[finite] - expected[finite]).max(initial=0) <= 1e-11 * largest + 1e-15


@pytest.mark.torch
@pytest.mark.parametrize("name", MODELS)
def test_pytorch_computes_the_same_values_and_gradients(name, loaded):
    """PyTorch computes each step from its inputs, and each gradient from those of the steps made of it."""
    torch = pytest.importorskip("torch")
    kind, changes = MODELS[name]
    steps = Steps(recorded_data(loaded(kind, **changes), TEXTS[kind]))
    compute = operations(torch)
    sums, is_known = [0.0] * len(steps.all), [True] * len(steps.all)
    for step, value, grad in steps.all:
        if step["op"] not in compute:
            assert step["op"] in ("parameter", "constant", "recorded")
            for index in step["inputs"]:
                is_known[index] = False
            continue
        arrays = [steps.all[index][1] for index in step["inputs"]]
        inputs = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in arrays]
        y = compute[step["op"]](*inputs, step["note"], step["shape"])
        near(y.detach(), value)
        for index, dx in zip(step["inputs"], torch.autograd.grad(y, inputs, torch.tensor(grad)), strict=True):
            sums[index] = sums[index] + dx.numpy()
    sums[-1] = np.ones(())  # the loss
    checked = 0
    for (_, value, grad), total, known in zip(steps.all, sums, is_known, strict=True):
        if known and grad is not None:
            near(total + np.zeros(value.shape), grad)
            checked += 1
    assert checked > len(steps.all) / 2


def test_the_gradient_of_weights_with_relative_positions(loaded):
    """A weight multiplies the value of its key, to which the vector of the key's distance is added."""
    steps = Steps(recorded_data(loaded("translator", positions="relative", max_distance=2), DOG))
    at = "encoder.1.self_attention"
    v, dz = steps.value(f"{at}.attention.v"), steps.grad(f"{at}.attention.z")  # (H, S, L), (H, T, L)
    vectors = steps.value(f"{at}.value_positions")  # (5, L)
    length = v.shape[1]
    expected = np.zeros((2, length, length))
    for t in range(length):
        for s in range(length):
            value = v[:, s] + vectors[max(-2, min(2, s - t)) + 2]
            expected[:, t, s] = (dz[:, t] * value).sum(-1)
    near(steps.grad(f"{at}.attention.weights"), expected)


@pytest.mark.parametrize("name", MODELS)
def test_no_step_is_only_recorded(name, loaded):
    kind, changes = MODELS[name]
    data = recorded_data(loaded(kind, **changes), TEXTS[kind])
    found = {step["path"].rpartition(".")[2] for step in data.head["steps"] if step["op"] == "recorded"}
    assert not found
    assert {step["line"] for step in data.head["steps"]} <= data.head["lines"].keys()
    assert len({step["path"] for step in data.head["steps"]}) == len(data.head["steps"])


@pytest.mark.parametrize("name", ["post-norm", "fused", "gpt", "bert"])
def test_the_arrays_are_those_of_the_cache_under_their_names(name, loaded):
    kind, changes = MODELS[name]
    model = loaded(kind, **changes)
    model.model.astype(np.float64)
    steps = Steps(recorded_data(model, TEXTS[kind]))
    cache = model.attention(TEXTS[kind], **(model.search_settings() if kind == "translator" else {})).cache
    found = 0
    for path in steps.by_path:
        array = in_cache(cache, path)
        if array is not None:
            near(
                np.float64(array[0]) if array.ndim == steps.value(path).ndim + 1 else array, steps.value(path)
            )
            found += 1
    assert found > 25


def in_cache(cache, path):
    """Return the array of floats under a name in the cache tree, or None if there is none."""
    for part in path.split("."):
        if part.isdigit() and hasattr(cache, "__getitem__"):
            cache = cache[int(part)] if int(part) < len(cache) else None
        else:
            cache = getattr(cache, part, None)
    return cache if isinstance(cache, np.ndarray) and cache.dtype.kind == "f" else None


def test_a_whole_recorded_page_carries_its_numbers(loaded):
    page = explore(loaded("bert"), "the cat sees")
    numbers = np.frombuffer(base64.b64decode(re.search(r'id="weights">([^<]*)<', page.html)[1]), "<f4")
    wanted = np.concatenate([array.ravel() for array in recorded_data(loaded("bert"), "the cat sees").arrays])
    np.testing.assert_array_equal(numbers, wanted.astype("f4"))
    assert page.kind == "recorded"
    assert page.head["architecture"] == "bert"


def test_the_caller_s_model_stays_as_it_is(loaded):
    model = loaded("gpt")
    before = model.model.state_dict()
    recorded_data(model, "the cat ate")
    assert not any(parameter.has_grad for parameter in model.model.parameters())
    assert all((before[name] == value).all() for name, value in model.model.state_dict().items())
    assert "forward" not in vars(model.model.layers[0])


# Examples and targets


def test_a_language_model_predicts_the_next_token(loaded):
    data = recorded_data(loaded("gpt"), "the cat")
    assert data.head["example"]["source_tokens"] == list("the cat")
    assert data.head["example"]["predicted_tokens"] == [*"he cat", ""]
    steps = Steps(data)
    _, cross_entropy, _ = steps.by_path["loss"]
    assert steps.by_path["loss"][0]["note"] == {"real": [True] * 6 + [False], "tokens": 6}
    assert float(cross_entropy) == pytest.approx(loaded("gpt").loss("the cat"), rel=1e-12)


def test_a_masked_model_predicts_its_gaps(loaded):
    model = loaded("bert")
    example = recorded_data(model, "the [MASK] sees a dog").head["example"]
    best = model.fill("the [MASK] sees a dog", k=1)[0].words[0]
    assert example["predicted_tokens"] == ["", best, "", "", "", ""]
    given = recorded_data(model, "the [MASK] sees a dog", "the cat sees a dog").head["example"]
    assert given["predicted_tokens"] == ["", "cat", "", "", "", ""]
    whole = recorded_data(model, "the cat sees").head["example"]
    assert whole["predicted_tokens"] == ["the", "cat", "sees", "</S>"]


def test_the_tokens_of_a_translator(loaded):
    example = recorded_data(loaded("translator"), DOG, "le chien").head["example"]
    assert example == {
        "source": DOG,
        "target": "le chien",
        "source_tokens": [*DOG.split(), "</S>"],
        "target_tokens": ["<S>", "le", "chien"],
        "predicted_tokens": ["le", "chien", "</S>"],
    }


@pytest.mark.parametrize(
    ("kind", "source", "target", "message"),
    [
        ("gpt", "", None, "the text '' is empty: write at least one word"),
        ("gpt", "a", None, "the text has a single token, and nothing follows it"),
        ("gpt", "xyz", None, "the text has the character 'x', which the model has not seen"),
        ("gpt", "the cat", "the dog", "a language model reads one text"),
        ("gpt", "a" * 49, None, "the text has 49 tokens"),
        ("bert", "the zebra", None, "the model does not know 'zebra': use words of its vocabulary"),
        (
            "bert",
            "the [MASK]",
            "the cat sees",
            "the text has 3 tokens and the filled text 4: write one word for",
        ),
        ("translator", "the dgo", None, r"the model does not know 'dgo' \(did you mean dog\?\)"),
        ("translator", " ", None, "the sentence ' ' is empty"),
        ("translator", DOG, "", "the translation '' is empty"),
        ("translator", "the " * 60, None, "the sentence has 61 tokens"),
        ("translator", DOG, "le " * 60, "the translation has 61 tokens"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(kind, source, target, message, loaded, monkeypatch):
    monkeypatch.setattr("npformer.explorer.why_not_live", lambda loaded: "it is recorded")
    with pytest.raises(UserError, match=message):
        explore(loaded(kind), source, target)


# Large models


def test_of_a_large_vocabulary_the_page_carries_the_tokens_of_the_example(loaded, monkeypatch):
    model = loaded("translator", label_smoothing=0.0)
    whole = Steps(recorded_data(model, DOG, "le chien est"))
    monkeypatch.setattr(recorded, "LARGEST_VOCABULARY", 5)
    monkeypatch.setattr(recorded, "MOST_PROBABLE", 1)
    part = Steps(recorded_data(model, DOG, "le chien est"))
    labels = part.by_path["logits"][0]["note"]["labels"]
    words = list(model.translator.target_codec.tokens)
    columns = [words.index(label) for label in labels]
    assert {"le", "chien", "est", "</S>"} <= set(labels) < set(words)
    assert {words[index] for index in whole.value("logits").argmax(-1)} <= set(labels)
    for path in ("logits", "loss.log_probs"):
        near(part.value(path), whole.value(path)[:, columns])
        near(part.grad(path), whole.grad(path)[:, columns])
    assert not any(step["op"] == "recorded" for step, _, _ in part.all)
    near(part.value("output.weight"), whole.value("output.weight")[:, columns])
    near(part.grad("output.weight"), whole.grad("output.weight")[:, columns])
    table, value, _ = part.by_path["source.tokens.weight"]
    assert table["note"]["labels"] == sorted({*DOG.split(), "</S>"}, key=model.codec.source.tokens.index)
    assert value.shape == (5, 8)
    near(value[part.by_path["source.tokens.y"][0]["note"]["ids"]], whole.value("source.tokens.y") / 8**0.5)
    near(
        part.grad("encoder.0.self_attention.attention.q"), whole.grad("encoder.0.self_attention.attention.q")
    )


@pytest.mark.parametrize(
    ("room", "matrices", "gradients"), [(2.0, True, True), (1.0, True, False), (0.9, False, False)]
)
def test_parameters_that_have_no_room_are_left_out(room, matrices, gradients, loaded, monkeypatch):
    model = loaded("translator")
    monkeypatch.setattr(recorded, "LARGEST_PARAMETERS", room * model.model.count_parameters())
    steps = Steps(recorded_data(model, DOG))
    path = "encoder.0.feed_forward.inner"
    assert (f"{path}.weight" in steps.by_path) is matrices
    if matrices:
        assert (steps.grad(f"{path}.weight") is not None) is gradients
    assert steps.by_path[f"{path}.y"][0]["op"] == ("add_bias" if matrices else "recorded")
    assert (f"{path}.product" in steps.by_path) is matrices
    assert steps.grad(f"{path}.bias") is not None


def test_too_many_numbers_are_refused(loaded, monkeypatch):
    model = loaded("gpt")
    count = sum(array.size for array in recorded_data(model, "the cat ate").arrays)
    monkeypatch.setattr(steps_data, "LARGEST_PAGE", count)
    recorded_data(model, "the cat ate")
    monkeypatch.setattr(steps_data, "LARGEST_PAGE", count - 1)
    with pytest.raises(UserError, match=f"of this model have {count:,} numbers, and a page has room for"):
        recorded_data(model, "the cat ate")


def test_a_very_large_model_is_computed_without_gradients_of_parameters(loaded, monkeypatch):
    model = loaded("gpt")
    precise = Steps(recorded_data(model, "the cat ate"))
    monkeypatch.setattr(recorded, "LARGEST_PRECISE", 100)
    steps = Steps(recorded_data(model, "the cat ate"))
    parameters = [(value, grad) for step, value, grad in steps.all if step["op"] == "parameter"]
    assert parameters
    assert all(grad is None for _, grad in parameters)
    assert {value.ndim for value, _ in parameters} == {1, 2}  # the vectors, and the rows of the positions
    assert steps.by_path["layers.0.attention_residual.norm.y"][0]["op"] == "scale_and_shift"
    unknown = steps.by_path["layers.0.feed_forward.inner.y"][0]
    assert (unknown["op"], unknown["note"]) == ("recorded", {"missing": True})
    near(
        steps.grad("layers.0.self_attention.attention.weights"),
        precise.grad("layers.0.self_attention.attention.weights"),
    )
    assert not any(parameter.has_grad for parameter in model.model.parameters())


def test_a_universal_transformer_has_a_page(loaded):
    """It shares one layer over its steps, so a second call of a layer has a number behind its name."""
    translator = word_translator()
    config = UniversalConfig(**translator.model.config.to_dict() | {"norm": "post"})
    translator.translator.model = translator.model = UniversalTransformer(
        config, rng=np.random.default_rng(0)
    )
    steps = Steps(recorded_data(translator, DOG))
    weights = [
        path for path in steps.by_path if path.startswith("encoder") and path.endswith("attention.weights")
    ]
    assert weights
    assert any("@2" in step["path"] for step, _, _ in steps.all)
