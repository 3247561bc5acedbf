"""Numbers 13 to 17 that the documents give: whole models. Numbers 1 to 12 are in tests/functional/."""

import functools

import pytest

from npformer.models.transformer import (
    DecoderLayer,
    EncoderLayer,
    Transformer,
    TransformerConfig,
)
from npformer.training.optimizer import warmup

# --- 13 and 17: parameters ---


def test_13_parameters_of_the_base_layers():
    """13: 3,152,384 and 4,204,032 with all biases, and 44,138,496 for six of each."""
    config = TransformerConfig(n_layers=6, d_model=512, n_heads=8, d_ff=2048, attention_bias=True)
    encoder, decoder = (make(config).count_parameters() for make in (EncoderLayer, DecoderLayer))
    assert encoder == 3_152_384
    assert decoder == 4_204_032
    assert config.n_layers * (encoder + decoder) == 44_138_496


@functools.cache
def count(name, vocabulary, **changes):
    """Return the number of parameters of a preset with a tied vocabulary, from a small model.

    Every further layer adds as many parameters as the first, and every further token adds d_model.
    """
    config = TransformerConfig.architecture(name, **changes)
    small = Transformer(config.replace(n_layers=1, source_vocab=4, target_vocab=4, max_length=1))
    layers = small.encoder[0].count_parameters() + small.decoder[0].count_parameters()
    return small.count_parameters() + (config.n_layers - 1) * layers + (vocabulary - 4) * config.d_model


def test_17_the_extrapolated_count_is_exact():
    """17: it is exact for a model that is small enough to be built as a whole."""
    sizes = {"d_model": 16, "d_ff": 24, "n_heads": 2, "n_layers": 3}
    whole = Transformer(
        TransformerConfig.architecture("paper-base", **sizes, source_vocab=50, target_vocab=50)
    )
    assert count("paper-base", 50, **sizes) == whole.count_parameters()


VOCABULARY = 41_096
TABLE_3 = {  # exact millions to two digits, and the number that the paper prints
    "paper-base": (65.14, 65),
    "paper-B-dk16": (58.06, 58),
    "paper-B-dk32": (60.42, 60),
    "paper-C-N2": (35.74, 36),
    "paper-C-N4": (50.44, 50),
    "paper-C-N8": (79.84, 80),
    "paper-C-d256": (27.87, 28),
    "paper-C-d1024": (168.01, 168),
    "paper-C-ff1024": (52.55, 53),
    "paper-C-ff4096": (90.33, 90),
}


@pytest.mark.parametrize(("name", "millions"), TABLE_3.items(), ids=TABLE_3)
def test_17_a_row_of_table_3(name, millions):
    """17: in millions, to two digits and as printed."""
    parameters = count(name, VOCABULARY)
    assert (round(parameters / 1e6, 2), round(parameters / 1e6)) == millions


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("paper-B-dk16", -7_077_888),
        ("paper-B-dk32", -4_718_592),
        *[(f"paper-A-h{heads}", 0) for heads in (1, 4, 16, 32)],
    ],
)
def test_17_differences_from_base(name, difference):
    """17: the differences do not depend on the vocabulary; rows (A) change only the number of heads."""
    assert count(name, 1000) - count("paper-base", 1000) == difference


# --- 14: the first document's demo (its optimizer settings belong to training) ---


def test_14_the_demos_model():
    """14: it has at most 10 tokens, dropout .1 and start symbol 2."""
    config = TransformerConfig.architecture("jianshu-demo")
    assert (config.max_length, config.start_id, config.pad_id) == (10, 2, 0)
    assert (config.input_dropout, config.attention_dropout) == (0.1, 0.1)


# --- 16: the schedule ---


@pytest.mark.parametrize(("step", "rate"), [(1, 1.746928e-7), (4000, 6.987712e-4), (100_000, 1.397542e-4)])
def test_16_the_papers_learning_rate(step, rate):
    """16: the schedule with d 512 and w 4000."""
    assert f"{warmup(512, 4000)(step):.6e}" == f"{rate:.6e}"


def test_16_the_peak():
    """16: the peak is at step w and nowhere else; it is 4.941059e-4 if d is 1024."""
    schedule = warmup(1024, 4000)
    rates = [schedule(step) for step in range(1, 8001)]
    assert max(rates) == rates[3999] == pytest.approx(4.941059e-4, rel=1e-6)
    assert rates[3998] < rates[3999] > rates[4000]
