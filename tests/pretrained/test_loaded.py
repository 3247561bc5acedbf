"""What npformer.load returns for each kind of model: logits, attention, text, and models of another kind."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from tiny_runs import CHARACTERS, CHECKPOINTS

import npformer
from npformer import UserError
from npformer.data.sentences import MASK
from npformer.functional import log_softmax
from npformer.generation import sample_ids
from npformer.models.registry import model_from_checkpoint
from npformer.pretrained import GapFiller, TextGenerator, Translator
from npformer.pretrained.loading import load_as
from npformer.storage.checkpoint import save_checkpoint

CLASSES = {"translator": Translator, "gpt": TextGenerator, "bert": GapFiller}
GAP = f"the {MASK} sees a dog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    for name, make in CHECKPOINTS.items():
        (folder / name).mkdir()
        save_checkpoint(make(), folder / name / "best.safetensors")
    return folder


@pytest.fixture(autouse=True)
def place(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("name", CLASSES)
def test_each_kind_has_its_class_a_short_repr_and_the_dtype_that_was_asked_for(name):
    loaded = npformer.load(name)
    assert type(loaded) is CLASSES[name]
    assert repr(loaded).startswith(f"<{loaded.kind.noun} {name}: {type(loaded.model).__name__} with ")
    for dtype in ("float32", "float64"):
        inputs = ([[4, 5]], [[2, 6]]) if name == "translator" else ([[4, 5]],)
        assert npformer.load(name, dtype=dtype).logits(*inputs).dtype == dtype
    with pytest.raises(UserError, match="float16"):
        npformer.load(name, dtype="float16")


@pytest.mark.parametrize("name", CLASSES)
def test_a_model_of_another_kind_is_named_with_the_command_that_fits(name):
    kind = CLASSES[name].kind
    assert isinstance(load_as(CLASSES[name], name), CLASSES[name])
    for wanted in CLASSES.keys() - {name}:
        message = rf"^{name} is a {kind.noun}, which cannot .*: use it with {kind.command}"
        with pytest.raises(UserError, match=message):
            load_as(CLASSES[wanted], name)


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_logits_and_attention_of_ids_are_those_of_the_model(name):
    loaded = npformer.load(name)
    ids = np.array([[4, 5, 6], [7, 4, 5]])
    logits, cache = model_from_checkpoint(CHECKPOINTS[name]()).forward(ids)
    found = loaded.attention(ids)
    assert np.array_equal(loaded.logits(ids), logits)
    assert found.keys() == {"self"}
    assert found["self"].shape == (2, 2, 2, 3, 3)  # (L, B, H, T, T)
    layers = cache.layers if name == "gpt" else cache.encoder.layers
    for weights, layer in zip(found["self"], layers, strict=True):
        assert np.array_equal(weights, layer.self_attention.attention.weights)


@pytest.mark.parametrize(("name", "text"), [("gpt", "the cat"), ("bert", GAP)])
def test_the_attention_of_a_text_has_its_pieces_and_is_drawn(name, text):
    loaded = npformer.load(name)
    found = loaded.attention(text)
    encoding = loaded.tokenizer.encode(text)
    assert found.kinds == ["self"]
    assert found.tokens("self") == (encoding.pieces, encoding.pieces)
    assert np.array_equal(found.weights["self"], loaded.attention([encoding.ids])["self"][:, 0])
    assert repr(found).startswith(f"<attention for {text!r}: self (2, 2, ")
    assert found.cache[-1] is None  # nothing was computed after the layers
    for draw in (found.plot, found.plot_head, found.plot_lines):
        assert isinstance(draw(layer=0, head=1), Figure)
    assert isinstance(found.plot(), Figure)
    with pytest.raises(UserError, match="this model has no encoder-decoder attention: it has self"):
        found.plot("cross")


def test_texts_are_those_of_the_sampled_tokens():
    loaded, prompts = npformer.load("gpt"), ["the ", "a cat"]
    draws = {"temperature": 0.7, "top_k": 5}
    ids = sample_ids(loaded.model, map(CHARACTERS.encode, prompts), 20, rng=np.random.default_rng(3), **draws)
    drawn = map(CHARACTERS.decode, np.stack(list(ids), 1))
    expected = [prompt + text for prompt, text in zip(prompts, drawn, strict=True)]
    assert loaded.generate(prompts, 20, rng=np.random.default_rng(3), **draws) == expected
    greedy = loaded.generate("the ", 20)
    assert [greedy] == loaded.generate(["the "], 20, top_k=1, rng=np.random.default_rng(3))
    assert loaded.generate("the ", 20, stop=[greedy[10]]) in greedy[:10]
    assert loaded.generate("the ", 20, stop=greedy[5:7]) in greedy[:5]
    seeded = loaded.generate(prompts, 20, seed=3, **draws)
    assert seeded == expected
    assert len({loaded.generate("the ", 20, temperature=3.0) for _ in range(3)}) == 3
    assert ["".join(pieces) for pieces in zip(*loaded.stream("the ", 20), strict=True)] == [greedy[4:]]
    with pytest.raises(UserError, match="prompt 2: the text has the character 'z'"):
        loaded.generate(["the", "zoo"], 3)


def test_the_perplexity_is_that_of_each_token_in_its_window():
    loaded = npformer.load("gpt")
    text = "the cat and the dog sat on\nthe bench"  # three windows of 12 tokens, and a shorter one
    ids = np.array(CHARACTERS.encode(text))
    losses = []
    for start in range(0, len(ids) - 1, 12):
        window = ids[start : start + 13]
        log_p, _ = log_softmax(loaded.logits(window[None, :-1])[0])
        losses += [-log_p[place, token] for place, token in enumerate(window[1:])]
    assert len(losses) == len(ids) - 1
    assert loaded.loss(text) == pytest.approx(np.mean(losses), rel=1e-12)
    assert loaded.perplexity(text) == pytest.approx(np.exp(np.mean(losses)), rel=1e-12)
    with pytest.raises(UserError, match="the text has a single token, and nothing follows it"):
        loaded.perplexity("t")


LONG = "the cat and the dog " * 4


@pytest.mark.parametrize(
    ("name", "call", "words"),
    [
        ("translator", lambda m: m.attention("the cat", [[2, 4]]), "target_in_ids belongs to ids: leave it"),
        ("translator", lambda m: m.attention([[4, 5]]), "the ids have no target_in_ids: give those"),
        ("translator", lambda m: m.attention([[4]], [[2]], beam=3), "nothing is searched with ids: leave"),
        ("translator", lambda m: m.translate(np.array([4, 5])), r"the text is .*4.*: give a string"),
        ("translator", lambda m: m.translate(None), "the text is None: give a string"),
        ("translator", lambda m: m.translate(b"ab"), "the text is b'ab': give a string"),
        ("translator", lambda m: m.saliency(3), "the text is 3: give a string"),
        ("translator", lambda m: m.saliency("the cat", target=3), "the text is 3: give a string"),
        ("translator", lambda m: m.explore("the cat", 3), "the text is 3: give a string"),
        ("translator", lambda m: m.unknown_words(3), "the text is 3: give a string"),
        ("gpt", lambda m: m.unknown_words(3), "the text is 3: give a string"),
        ("gpt", lambda m: m.explore(3), "the text is 3: give a string"),
        ("gpt", lambda m: m.saliency("the", tolerance="1"), "tolerance is 1 and most_points 800: give a"),
        ("gpt", lambda m: m.lens("the").table("1"), "position is '1': there are "),
        ("gpt", lambda m: m.generate([3], 2), "the text is 3: give a string"),
        (
            "gpt",
            lambda m: m.generate("a", 2, temprature=2),
            "unknown setting of sampling 'temprature': did you",
        ),
        (
            "gpt",
            lambda m: m.generate("a", 2, ston="a"),
            "unknown setting of sampling 'ston': did you mean stop?",
        ),
        ("gpt", lambda m: m.generate("a", "2"), "n_tokens is '2': it must be a whole number, 1 or more"),
        ("gpt", lambda m: m.generate("a", True), "n_tokens is True: it must be a whole number, 1 or more"),
        ("gpt", lambda m: m.generate("a", 2, stop=3), "stop is 3: give a string, or a list of strings"),
        (
            "gpt",
            lambda m: m.generate("a", 2, stop=[3]),
            r"stop is \[3\]: give a string, or a list of strings",
        ),
        ("gpt", lambda m: m.saliency("the", position="1"), "position is '1': there are "),
        ("bert", lambda m: m.fill(GAP, k="3"), "k is '3': it must be a whole number, 1 or more"),
        ("gpt", lambda m: m.saliency([[3]]), r"the text is \[\[3\]\]: give a string"),
        ("gpt", lambda m: m.attention(""), "the text '' is empty: give at least one token"),
        ("gpt", lambda m: m.attention(LONG), r"the text has \d+ tokens, and the model reads 12 at most"),
        ("bert", lambda m: m.attention(LONG), r"the text has \d+ tokens, and the model reads 10 at most"),
        ("bert", lambda m: m.fill([GAP]), r"the text is \['the .*'\]: give a string"),
    ],
)
def test_arguments_that_a_model_cannot_read_are_refused(name, call, words):
    with pytest.raises(UserError, match=words):
        call(npformer.load(name))
