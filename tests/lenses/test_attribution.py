"""Direct logit attribution: the parts add up to the logit, and each is what the formula says."""

from dataclasses import replace

import numpy as np
import pytest
from lens_models import GPT_SIZES, MODELS, ids_of

from npformer import UserError
from npformer.lenses.attribution import LogitAttribution, Part, attribution_of
from npformer.lenses.taps import Output
from npformer.models.gemma2 import Gemma2, Gemma2Config
from npformer.models.transformer import Transformer
from npformer.plots import text_problems
from npformer.pretrained.saliency import Saliency

every_model = pytest.mark.parametrize("name", MODELS)
OUTPUT = Output(3, 7)


@every_model
@pytest.mark.parametrize("versus", [None, 9])
def test_the_parts_add_up(name, versus):
    model = MODELS[name]()
    ids = ids_of(model)
    found = attribution_of(model, ids, OUTPUT, "seven", versus=versus)
    assert found.sum == pytest.approx(found.total, abs=1e-10)
    row = model.astype(np.float64)(*ids)[0, 3]
    logit = row[7] - (0 if versus is None else row[versus])
    assert found.logit == pytest.approx(logit, abs=1e-12)
    if name != "bert":
        assert found.total == found.logit
    n_heads, n_layers = model.config.n_heads, model.config.n_layers
    attentions = 2 if isinstance(model, Transformer) else 1
    assert len(found.parts) == 1 + n_layers * (attentions * n_heads + 2) + (name != "bert")


def test_each_part_of_a_gpt_is_its_vector_seen_through_the_last_norm():
    """Computed from the caches of the forward pass, without any backward pass."""
    model = MODELS["gpt"]().astype(np.float64)
    (ids,) = ids_of(model)
    _, cache = model.forward(ids)
    x, _ = model.embedding.forward(ids)
    direction, rstd = model.norm.gain.value * model.output.weight.value[7], cache.norm.rstd[0, 3, 0]

    def seen(vector):  # (D,)
        return float((vector - vector.mean()) * rstd @ direction)

    expected = {"embedding": seen(x[0, 3])}
    for index, (layer, parts) in enumerate(zip(model.layers, cache.layers, strict=True)):
        attention = layer.self_attention
        z = parts.self_attention.output.x[0, 3].reshape(4, -1)  # (H, L)
        wo = attention.output.weight.value.reshape(4, -1, 16)  # (H, L, D)
        for head in range(4):
            expected[f"layer {index} head {head}"] = seen(z[head] @ wo[head])
        outer = layer.feed_forward.outer
        h = parts.feed_forward.outer.x[0, 3]  # (F,)
        expected[f"layer {index} feed-forward"] = seen(h @ outer.weight.value)
        expected[f"layer {index} biases"] = seen(attention.output.bias.value) + seen(outer.bias.value)
    expected["biases of the output"] = float(model.norm.bias.value @ model.output.weight.value[7])
    found = attribution_of(model, [ids], OUTPUT, "seven")
    assert {part.label: pytest.approx(part.value, abs=1e-12) for part in found.parts} == expected


@pytest.mark.parametrize(
    ("output", "versus", "message"),
    [
        (Output(6, 7), None, "^position is 6: there are 6 positions, counted from 0$"),
        (Output(-1, 7), None, "^position is -1: there are 6 positions, counted from 0$"),
        (Output(3, 17), None, "^token is 17: there are 17 tokens, counted from 0$"),
        (Output(3, 7), 99, "^token is 99: there are 17 tokens, counted from 0$"),
        (Output(3.0, 7), None, r"^position is 3\.0: there are 6"),
    ],
)
def test_there_is_no_such_output(output, versus, message):
    with pytest.raises(UserError, match=message):
        attribution_of(MODELS["gpt"](), ids_of(MODELS["gpt"]()), output, "seven", versus=versus)


FOUND = LogitAttribution(
    explained=" a",
    position=0,
    logit=1.5,
    parts=[
        Part(None, "embedding", 0.25),
        Part(0, "head 0", -0.5),
        Part(0, "feed-forward", 2.0),
        Part(0, "biases", -0.25),
    ],
    total=1.5,
)


def test_the_table_has_the_largest_parts_in_the_order_of_the_model():
    assert FOUND.table(2).splitlines() == [
        "logit +1.5000 of ' a'",
        f"  layer 0 head 0          -0.5000  {'█' * 5:>20}│",
        f"  layer 0 feed-forward    +2.0000  {'':20}│{'█' * 20}",
        "  2 others                +0.0000",
        "sum +1.5000",
    ]
    dollars = replace(FOUND, explained="$$ − $_$")
    assert not text_problems(dollars.plot())
    saliency = Saliency("$$", 0, "logit", "gradient", 1.0, None, {"text": ["a"]}, {"text": np.ones(1)})
    assert not text_problems(saliency.plot())


def test_capped_logits_are_refused():
    model = Gemma2(Gemma2Config(**GPT_SIZES, logit_cap=3.0))
    with pytest.raises(UserError, match="the logits of this model are capped"):
        attribution_of(model, ids_of(model), OUTPUT, "seven")
