"""Tests of pictures of any model's attention: they show the given numbers, pool exactly, and are legible."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.image import AxesImage

from npformer.backend import to_backend
from npformer.errors import UserError
from npformer.functional import attention_rollout
from npformer.plots import attention, text_problems
from npformer.plots.attention_arrays import pooled, top_k_mask

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WORDS = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", ",", "an", "elixir", "."]


def tokens(count):
    return (WORDS * (count // len(WORDS) + 1))[:count]


def random_weights(*shape, dtype=np.float64, seed=0):
    x = np.exp(2 * np.random.default_rng(seed).standard_normal(shape))
    return (x / x.sum(-1, keepdims=True)).astype(dtype)


def images(figure, shape):
    """Return the heat maps of a figure, without the colour bar."""
    found = [image for ax in figure.axes for image in ax.images if isinstance(image, AxesImage)]
    return [image for image in found if image.get_array().shape == shape]


def title(figure):
    """Return the text at the upper edge, its lines joined."""
    return figure.texts[0].get_text().replace("\n", " ")


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def lines(figure):
    """Return the number of lines of each head."""
    found = (c for ax in figure.axes for c in ax.collections if isinstance(c, LineCollection))
    return [len(collection.get_segments()) for collection in found]


# The forms of weights.

ARRAY = random_weights(3, 1, 2, 5, 5, dtype=np.float32)  # (L, B, H, T, S)
BROUGHT = torch.from_numpy(ARRAY)

FORMS = {
    "a tuple of tensors": tuple(BROUGHT),
    "a list of arrays": list(ARRAY),
    "without a batch axis": list(ARRAY[:, 0]),
    "one array": ARRAY,
    "one tensor": BROUGHT,
    "requiring gradients": tuple(layer.clone().requires_grad_() for layer in BROUGHT),
    "float64": tuple(BROUGHT.double()),
    "a batch of two": np.concatenate([np.full_like(ARRAY, 0.2), ARRAY], 1),
    "not contiguous": tuple(layer.mT.contiguous().mT for layer in BROUGHT),
    "(B, H, T, S)": ARRAY[0],
    "(H, T, S)": ARRAY[0, 0],
    "(T, S)": ARRAY[0, 0, 0],
    "lists": ARRAY[0, 0, 0].tolist(),
}
FEWER = {"(B, H, T, S)": 2, "(H, T, S)": 2, "(T, S)": 1, "lists": 1}  # the number of maps, 6 otherwise


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_weights_gives_the_same_maps(form):
    example = 1 if form == "a batch of two" else None
    before = ARRAY.copy()
    figure = attention(FORMS[form], WORDS[:5], example=example)
    assert np.array_equal(ARRAY, before)
    maps = images(figure, (5, 5))
    assert len(maps) == FEWER.get(form, 6)
    for index, image in enumerate(maps):
        layer, head = divmod(index, 2)
        assert np.array_equal(image.get_array(), ARRAY[layer, 0, head])


def test_arrays_of_cupy(device):
    for weights in (to_backend(ARRAY, "cupy"), tuple(to_backend(ARRAY, "cupy"))):
        maps = images(attention(weights, top_k=2), (5, 5))
        assert [image.get_array().max() for image in maps] == ARRAY[:, 0].max((-2, -1)).ravel().tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    """Rows that add up to 1 only up to the rounding of the dtype are accepted."""
    weights = torch.from_numpy(random_weights(1, 2, 9, 300)).to(dtype)
    assert (weights.double().sum(-1) - 1).abs().max() > 1e-5
    figure = attention((weights,), layer=0, head=1)
    assert np.array_equal(images(figure, (9, 300))[0].get_array(), weights[0, 1].double().numpy())


def test_a_model_of_hugging_face():
    """Its weights are drawn as they are, and the default attention, which returns none, is refused."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=30, **sizes)).eval()
    ids = torch.arange(7)[None]
    model.set_attn_implementation("eager")
    output = model(ids, output_attentions=True)
    maps = images(attention(output.attentions, WORDS[:7]), (7, 7))
    assert len(maps) == 8
    assert np.array_equal(maps[6].get_array(), output.attentions[1][0, 2].detach().numpy())
    model.set_attn_implementation("sdpa")
    for inputs in ({"input_ids": ids}, (ids,), ids):  # the same from the model in memory
        same = images(attention(model, WORDS[:7], inputs=inputs), (7, 7))
        assert len(same) == 8
        np.testing.assert_allclose(same[6].get_array(), maps[6].get_array(), atol=1e-6)
    (one,) = images(attention(model, inputs=ids, only="layer.1", head=2), (7, 7))
    np.testing.assert_allclose(one.get_array(), maps[6].get_array(), atol=1e-6)
    for given in (model(ids, output_attentions=True), model(ids, output_attentions=True).attentions):
        with pytest.raises(UserError, match='attn_implementation="eager"'):
            attention(given)


@pytest.mark.parametrize("settings", [{}, {"use_cache": False}, {"do_sample": True}], ids=str)
def test_the_nested_weights_of_generate(settings):
    """They are those of the forward pass of the whole text."""
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 4, "pad_token_id": 0}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=30, **sizes)).eval()
    model.set_attn_implementation("eager")
    settings |= {"max_new_tokens": 4, "output_attentions": True, "return_dict_in_generate": True}
    output = model.generate(torch.arange(1, 4)[None], eos_token_id=None, **settings)
    whole = model(output.sequences[:, :-1], output_attentions=True).attentions
    for nested, each in zip(
        images(attention(output.attentions), (6, 6)), images(attention(whole), (6, 6)), strict=True
    ):
        np.testing.assert_allclose(nested.get_array(), each.get_array(), atol=1e-5)


# Views.


def test_a_layer_and_a_head_are_one_map_with_labels():
    figure = attention(ARRAY, WORDS[:5], layer=2, head=1)
    (image,) = images(figure, (5, 5))
    assert np.array_equal(image.get_array(), ARRAY[2, 0, 1])
    assert ticks(image.axes.yaxis) == ticks(image.axes.xaxis) == WORDS[:5]
    assert title(figure) == "layer 2, head 1"
    assert title(attention(ARRAY, layer=2, head=1, title="mine")) == "mine"


def test_lines():
    figure = attention(ARRAY, WORDS[:5], view="lines", layer=1)
    assert lines(figure) == (ARRAY[1, 0] >= 0.01).sum((1, 2)).tolist()
    assert lines(attention(ARRAY, view="lines", layer=1, head=0)) == lines(figure)[:1]
    assert lines(attention(ARRAY, view="lines", layer=1, top_k=2)) == [
        int((top_k_mask(head, 2) & (head >= 0.01)).sum()) for head in ARRAY[1, 0]
    ]
    assert text_problems(figure) == []


def test_rollout():
    rollout = attention_rollout(ARRAY)
    (image,) = images(attention(ARRAY, WORDS[:5], view="rollout"), (5, 5))
    assert np.array_equal(image.get_array(), rollout[2])
    figure = attention(ARRAY, view="rollout", layer=1)
    assert np.array_equal(images(figure, (5, 5))[0].get_array(), rollout[1])
    assert title(figure) == "attention rollout, layers 0 to 1"


def test_a_mask_hides_what_is_not_attended_to():
    mask = np.tril(np.ones((4, 4), bool))
    weights = np.where(mask, 1.0, np.nan) / np.arange(1, 5)[:, None]  # NaN above the diagonal
    (image,) = images(attention(weights, mask=mask), (4, 4))
    assert np.array_equal(np.ma.getmaskarray(image.get_array()), ~mask)
    assert np.array_equal(image.get_array()[mask], weights[mask])
    (second,) = images(attention(weights, mask=mask, query=[2, 0]), (2, 4))
    assert np.array_equal(np.ma.getmaskarray(second.get_array()), ~mask[[2, 0]])
    fully = mask & (np.arange(4) != 2)[:, None]  # query 2 may attend to no key
    assert images(attention(weights, mask=fully), (4, 4))[0].get_array().mask[2].all()


# Long inputs.


def test_top_k_keeps_the_largest_weights_of_each_query():
    weights = random_weights(7, 9)
    weights[3] = 1 / 9  # of equal weights, the first keys count
    shown = images(attention(weights, top_k=3), (7, 9))[0].get_array()
    for row, given in zip(shown, weights, strict=True):
        largest = sorted(range(9), key=lambda s: (-given[s], s))[:3]
        assert np.flatnonzero(row).tolist() == sorted(largest)
        assert np.array_equal(row[largest], given[largest])


def test_chosen_queries_with_their_largest_keys():
    weights = random_weights(2, 1, 3, 512, 512, dtype=np.float32)
    figure = attention(weights, tokens(512), layer=1, head=2, query=[400, 7], top_k=3)
    kept = np.flatnonzero(top_k_mask(weights[1, 0, 2][[400, 7]], 3).any(0))
    (image,) = images(figure, (2, len(kept)))
    assert ticks(image.axes.yaxis) == [f"{tokens(512)[t]} [{t}]" for t in (400, 7)]
    assert ticks(image.axes.xaxis) == [f"{tokens(512)[s]} [{s}]" for s in kept]
    assert image.get_array()[0].max() == weights[1, 0, 2, 400].max()
    assert "2 of 512 queries" in title(figure)
    assert f"{len(kept)} of 512 keys" in title(figure)
    assert text_problems(figure) == []
    many = attention(weights, tokens(512), view="lines", layer=1, query=list(range(0, 480, 4)), top_k=3)
    few = attention(weights, tokens(512), view="lines", layer=1, query=[10, 100, 400], top_k=60)
    assert "one label in" in title(few)
    labels = {text.get_text() for text in few.axes[0].texts}
    assert labels >= {f"{tokens(512)[t]} [{t}]" for t in (10, 100, 400)}  # all queries have labels
    assert text_problems(few) == text_problems(many) == []
    one = attention(weights, tokens(512), view="lines", layer=1, query=7, top_k=3)
    assert sum(lines(one)) == int((np.sort(weights[1, 0, :, 7])[:, -3:] >= 0.01).sum())
    assert text_problems(one) == []


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (4, 4), (7, 100)])
def test_pooling_is_exact(block):
    weights = random_weights(2, 11, 10)
    got = pooled(weights, block)
    rows, columns = -(-11 // block[0]), -(-10 // block[1])
    assert got.shape == (2, rows, columns)
    for (h, i, j), value in np.ndenumerate(got):
        part = weights[h, i * block[0] : (i + 1) * block[0], j * block[1] : (j + 1) * block[1]]
        assert value == pytest.approx(part.sum() / len(part), abs=1e-15)
    assert np.allclose(got.sum(-1), 1, rtol=0, atol=1e-14)


def test_a_grid_of_long_inputs_is_pooled_and_says_so():
    layers, heads = 4, 6
    weights = random_weights(layers, 1, heads, 450, 450, dtype=np.float32)
    figure = attention(weights, tokens(450))
    found = re.search(r"each cell: sum over (\d+) keys, mean over \1 queries", title(figure))
    block = int(found[1])
    assert block > 1
    count = -(-450 // block)
    maps = images(figure, (count, count))
    assert len(maps) == layers * heads
    assert np.array_equal(maps[-1].get_array(), pooled(weights[-1, 0, -1], (block, block)))
    panel = maps[-1].axes.get_window_extent()
    assert panel.width / figure.dpi / count >= 2 / 150 - 1e-9  # two pixels of a PNG
    assert "no labels" in title(figure)
    assert text_problems(figure) == []


# Errors.


NAN = ARRAY.copy()
NAN[1, 0, 1, 2, 3] = np.nan

WRONG = {
    r"Linear, a module of PyTorch: give the inputs=": lambda: attention(torch.nn.Linear(2, 2)),
    r"weights is none: leave them out": lambda: attention(ARRAY, inputs=ARRAY),
    r"layer 1\[1, 2, 3\] is nan": lambda: attention(NAN),
    r"layer 0\[0, 0\] adds up to 0": lambda: attention(ARRAY, mask=np.arange(5) > 0),
    r"queries has 4 labels: give 5": lambda: attention(ARRAY, WORDS[:4]),
    r"5 queries and 3 keys: give keys=": lambda: attention(random_weights(5, 3), WORDS[:5]),
    r"unknown view 'line': did you mean lines": lambda: attention(ARRAY, view="line"),
    r"layer is 3: there are 3 layers": lambda: attention(ARRAY, layer=3),
    r"head is 'a'": lambda: attention(ARRAY, head="a"),
    r"query is 5: there are 5 queries": lambda: attention(ARRAY, query=[0, 5]),
    r"query is an empty list": lambda: attention(ARRAY, query=[]),
    r"top_k is 0: it must be a whole number, 1 or more": lambda: attention(ARRAY, top_k=0),
    r"top_k is True: it must be a whole number": lambda: attention(ARRAY, top_k=True),
    r"top_k is 6: give a number from 1 to 5": lambda: attention(ARRAY, top_k=6),
    r"queries is 3: give a list of labels": lambda: attention(ARRAY, queries=3),
    r"lines are drawn for one layer": lambda: attention(ARRAY, view="lines"),
    r"lines between 2,000 tokens": lambda: attention(np.eye(2000), view="lines"),
    r"leave out head": lambda: attention(ARRAY, view="rollout", head=0),
    r"leave out normalized": lambda: attention(ARRAY, view="rollout", normalized=False),
    r"5 queries and 3 keys: rollout needs self-attention": lambda: attention(
        random_weights(5, 3), view="rollout"
    ),
    r"the mask holds int64": lambda: attention(ARRAY, mask=np.ones((5, 5), int)),
    r"40 × 60 heat maps .* do not fit": lambda: attention(random_weights(40, 1, 60, 2, 2)),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        WRONG[sentence]()
    assert "\n" not in str(caught.value)


def test_rows_are_not_checked_if_they_are_not_normalized():
    (image,) = images(attention(3 * ARRAY[0, 0, 0], normalized=False), (5, 5))
    assert image.get_array().max() == (3 * ARRAY[0, 0, 0]).max()
