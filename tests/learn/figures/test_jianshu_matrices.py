"""Tests of the matrices as drawn in F05, F08 to F12, F17, F19 and F21."""

import numpy as np
import pytest
from figures_jianshu_oracle import DATA, WORDS, softmax, story
from figures_jianshu_reading import grids, same, texts

from npformer import functional as F
from npformer.errors import UserError
from npformer.learn.figures import draw
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn import AddNorm

OTHER = "the key is old"  # another sentence


def read(id, **changes):
    """Return the grids of a figure."""
    return grids(draw(id, **changes).figure)


# F05


def padded(rows, length=10):
    return np.array([row[:length] + [0] * (length - len(row)) for row in rows])


def test_f05_shows_the_batch_with_x_above_y():
    x, y = (grid for grid in read("F05") if grid.values.size > 1)
    assert x.bottom > y.top
    fitting = [(s, t) for s, t in DATA.train if len(s) <= 9 and len(t) <= 9][:10]
    sources, targets = [[*s, 3] for s, _ in fitting], [[2, *t] for _, t in fitting]
    np.testing.assert_array_equal(x.values, padded(sources))
    np.testing.assert_array_equal(y.values, padded(targets))
    for grid in (x, y):
        np.testing.assert_array_equal(grid.painted("padding"), grid.values == 0)
    np.testing.assert_array_equal(y.painted("position"), y.values == 2)
    np.testing.assert_array_equal(x.painted("k"), x.values == 3)


def test_f05_names_the_four_special_ids():
    drawing = draw("F05")
    assert {"<PAD>", "<UNK>", "<S>", "</S>"} <= set(texts(drawing.figure))
    specials = [grid.values.item() for grid in grids(drawing.figure) if grid.values.size == 1]
    assert sorted(specials) == [0, 1, 2, 3]


def test_f05_of_the_users_sentences_has_unknown_words():
    x, y = (
        g
        for g in read("F05", pairs=[("I am a zebra", "Je suis zèbre"), (OTHER, "la clé")])
        if g.values.size > 1
    )
    encode = DATA.source.vocabulary.id
    assert x.values[0].tolist() == [encode("i"), encode("am"), encode("a"), 1, 3] + [0] * 5
    assert y.values[1].tolist() == [2, *(DATA.target.vocabulary.id(w) for w in ("la", "clé"))] + [0] * 7
    np.testing.assert_array_equal(x.painted("weight"), x.values == 1)


# F10 to F12 and F17, which use the same tensors


@pytest.mark.parametrize("changes", [{}, {"sentence": OTHER}, {"length": 9, "d_model": 4, "seed": 8}])
def test_f10_rows_are_the_rows_of_the_table(changes):
    s = oracle(changes)
    ids, x = read("F10", **changes)
    np.testing.assert_array_equal(ids.values[:, 0], s.ids)
    same(x.values, s.x)
    np.testing.assert_array_equal(x.painted("padding").all(1), s.pad)
    assert (x.values[s.pad] == 0).all()
    assert x.painted("x")[~s.pad].all()


def test_f10_says_that_padding_is_not_0():
    drawing = draw("F10", positions="interleaved")
    assert grids(drawing.figure)[1].values[-1].any()
    assert "no longer 0" in drawing.caption
    assert "all 0" in draw("F10").caption


def oracle(changes):
    names = {"d_model": "d", "n_heads": "heads"}
    return story(**{names.get(name, name): value for name, value in changes.items()})


@pytest.mark.parametrize("changes", [{}, {"sentence": OTHER}, {"bias": 0.5}, {"d_model": 4}])
def test_f11_x_times_three_weights(changes):
    s = oracle(changes)
    found = read("F11", **changes)
    by_place = sorted(found, key=lambda g: (g.left > 3, -round(g.top + g.bottom, 1), g.left))
    x, wq, q, wk, k, wv, v = by_place
    same(x.values, s.x)
    for grid, name in ((wq, "query"), (wk, "key"), (wv, "value")):
        same(grid.values, s.state[f"{name}.weight"])
    for grid, values, role in ((q, s.q, "q"), (k, s.k, "k"), (v, s.v, "v")):
        same(grid.values, values)
        assert grid.painted(role)[~s.pad].all()
        assert grid.painted("padding")[s.pad].all()
        assert (grid.values[s.pad] == changes.get("bias", 0)).all()


def test_f11_with_the_documents_relu_and_its_caption():
    same(sorted(read("F11", activation="relu"), key=lambda g: g.left)[-1].values, story(relu=True).v)
    assert "only as long as the bias is 0" in draw("F11").caption
    assert "does not stay 0: its keys are 0.50" in draw("F11", bias=0.5).caption


@pytest.mark.parametrize("changes", [{}, {"sentence": OTHER, "seed": 5}])
def test_f12_q_times_k_transposed(changes):
    s = oracle(changes)
    q, k, product = sorted(read("F12", **changes), key=lambda g: g.left)
    same(q.values, s.q)
    same(k.values, s.k.T)
    same(product.values, s.raw)
    np.testing.assert_array_equal(k.painted("padding"), np.broadcast_to(s.pad, k.values.shape))
    np.testing.assert_array_equal(product.painted("padding"), s.pad | s.pad[:, None])


@pytest.mark.parametrize("changes", [{}, {"causal": True}, {"sentence": OTHER, "length": 6}])
def test_f17_weights_times_v_and_the_residual(changes):
    s = oracle(changes)
    weights, v, z, x, again, total = read("F17", **changes)
    for grid, values in (
        (weights, s.weights),
        (v, s.v),
        (z, s.z),
        (x, s.x),
        (again, s.z),
        (total, s.x + s.z),
    ):
        same(grid.values, values)
    np.testing.assert_array_equal(weights.painted("masked"), ~s.may & ~s.pad[:, None])
    assert weights.painted("padding")[s.pad].all()
    assert (z.values[s.pad] == 0).all()


def test_f17_the_sum_is_what_a_residual_normalizes():
    total = read("F17")[-1].values
    s = story()
    y, _ = AddNorm(6, dtype=np.float64).forward(s.x, s.z)
    words = ~s.pad
    expected, _ = F.layer_norm(total[words], np.ones(6), np.zeros(6))
    np.testing.assert_allclose(y[words], expected, atol=0.03)  # computed from numbers with two decimals


# F08 and F09


def similarity_oracle(name, q, k, rng):
    """Compute the four similarities of one query by loops over the keys, with weights in the same order."""
    d = len(q)

    def drawn(*shape):
        return rng.standard_normal(shape) / np.sqrt(d)

    if name == "dot":
        return np.array([q @ key for key in k])
    if name == "general":
        w = drawn(d, d)
        return np.array([q @ w @ key for key in k])
    if name == "concat":
        w = drawn(2 * d)
        return np.array([w @ np.concatenate([q, key]) for key in k])
    w, u, v = drawn(d, d), drawn(d, d), drawn(d) * np.sqrt(d)
    return np.array([v @ np.tanh(w.T @ q + u.T @ key) for key in k])


@pytest.mark.parametrize(("sentence", "word"), [("i am a student", 3), (OTHER, 0)])
def test_f08_four_similarities_on_the_same_query_and_keys(sentence, word):
    s = story(sentence=sentence, length=len(sentence.split()) + 1)
    found = read("F08", sentence=sentence, word=word)
    by_size = [g for g in found if g.values.shape[0] > 1]
    k, v = sorted(by_size, key=lambda g: g.left)
    same(k.values, s.k)
    same(v.values, s.v)
    q, *rest = [g for g in found if g.values.shape[0] == 1]
    same(q.values[0], s.q[word])
    rng = np.random.default_rng(3)
    for index, name in enumerate(("dot", "general", "concat", "perceptron")):
        scores, weights, z = rest[3 * index : 3 * index + 3]
        expected = similarity_oracle(name, s.q[word], s.k, rng)
        same(scores.values[0], expected)
        same(weights.values[0], softmax(expected))
        same(z.values[0], softmax(expected) @ s.v)


def test_f08_concat_gives_every_query_the_same_weights():
    rows = [[g for g in read("F08", word=word) if g.values.shape[0] == 1][8].values for word in (0, 4)]
    np.testing.assert_array_equal(rows[0], rows[1])
    with pytest.raises(UserError, match=r"word is 5: the sentence has words 0 .. 4"):
        draw("F08", word=5)


@pytest.mark.parametrize("changes", [{}, {"causal": True, "sentence": OTHER}])
def test_f09_every_stage_with_its_matrix(changes):
    s = oracle(changes)
    weights = softmax(s.scores, s.may)  # without a query mask
    matrices = [weights @ s.v, weights, np.where(s.may, s.scores, -np.inf), s.scores, s.raw]
    found = read("F09", **changes)
    assert len(found) == 5
    for grid, values in zip(found, matrices, strict=True):
        same(grid.values, values)
    np.testing.assert_array_equal(found[2].painted("masked"), ~s.may)
    boxes = [t for t in texts(draw("F09").figure) if t in ("MatMul", "Scale", "Mask (opt.)", "SoftMax")]
    assert boxes == ["MatMul", "Scale", "Mask (opt.)", "SoftMax", "MatMul"]  # from the bottom up


# F19 and F21


@pytest.mark.parametrize(("d", "heads"), [(6, 3), (4, 2)])
def test_f19_heads_side_by_side_times_w_o(d, heads):
    s = story(d=d, heads=heads)
    wide = d // heads
    found = read("F19", d_model=d, n_heads=heads)
    maps, middle, last = found[:heads], found[heads : 3 * heads], found[3 * heads :]
    parts = []
    for head in range(heads):
        cut = slice(head * wide, (head + 1) * wide)
        weights = softmax(s.q[:, cut] @ s.k[:, cut].T / np.sqrt(wide), s.may)
        weights[s.pad] = 0
        parts.append(weights @ s.v[:, cut])
        same(maps[head].values, weights)
        same(middle[2 * head].values, s.v[:, cut])
        same(middle[2 * head + 1].values, parts[-1])
    concat, weight, output = last
    same(concat.values, np.concatenate(parts, 1))
    same(weight.values, s.state["output.weight"])
    same(output.values, np.concatenate(parts, 1) @ s.state["output.weight"])
    colours = [concat.faces[0, head * wide] for head in range(heads)]
    for head in range(heads):
        np.testing.assert_allclose(colours[head], middle[2 * head + 1].faces[0, 0])
    assert not np.allclose(colours[0], colours[1])


@pytest.mark.parametrize(("words", "seed"), [(["je", "suis", "étudiant"], 3), (["merci"], 7)])
def test_f21_dense_layer_and_softmax(words, seed):
    vocabulary = sorted(words)
    sizes = {"source_vocab": 8, "target_vocab": 4 + len(words), "d_model": 6, "d_ff": 24, "n_heads": 1}
    config = TransformerConfig(**sizes, n_layers=1, tied="none", output_bias=True)
    model = Transformer(config, rng=np.random.default_rng(seed))
    target_in = np.array([[2, *(4 + vocabulary.index(w) for w in words)]])
    english = ["i", "am", "a", "student"]
    source = np.array([[*(4 + sorted(english).index(word) for word in english), 3]])
    logits, cache = model.forward(source, target_in)
    found = read("F21", translation=" ".join(words), seed=seed)
    above, below = found[:-2], found[-2:]
    r, weight, bias = sorted(above, key=lambda g: g.left)
    same(r.values, cache.output.x[0])
    same(weight.values, model.output.weight.value)
    same(bias.values, np.zeros((1, 4 + len(words))))
    same(below[0].values, logits[0])
    p = softmax(logits[0])
    same(below[1].values, p)
    np.testing.assert_array_equal(below[1].painted("position"), p == p.max(-1, keepdims=True))


def test_words_are_beside_the_rows():
    """Check that the first column of labels is the sentence from top to bottom."""
    ax = draw("F17").figure.axes[0]
    left = min(text.get_position()[0] for text in ax.texts if text.get_text() == "student")
    beside = [t for t in ax.texts if t.get_position()[0] == left and t.get_rotation() == 0]
    beside.sort(key=lambda text: -text.get_position()[1])
    assert [text.get_text() for text in beside] == WORDS
