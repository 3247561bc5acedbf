"""F21: the model's output, a dense layer and a softmax over the vocabulary."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.codecs import TextCodec
from npformer.data.loader import make_batch
from npformer.errors import UserError
from npformer.functional import softmax
from npformer.learn.figures.jianshu_example import SEED, SENTENCE, at_least, dataset, listed
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.plots import Grid
from npformer.plots.board import new_board, numbered
from npformer.plots.cells import CELL
from npformer.plots.style import TEXT, widest


class Output(NamedTuple):
    """The top of a model for one sentence."""

    read: list[str]  # T tokens, the input of the decoder
    words: list[str]  # V tokens, the vocabulary
    r: Any  # (T, D) the decoder's output
    weight: Any  # (D, V)
    bias: Any  # (1, V)
    logits: Any  # (T, V)


def output_of(
    sentence: str = SENTENCE, *, translation: str = "Je suis étudiant", d_model: int = 6, seed: int = SEED
) -> Output:
    """Run a small untrained model whose vocabularies are the words of the two sentences.

    Args:
        sentence, translation: An English sentence, and the translation whose words are the vocabulary.
        d_model, seed: The width of the vectors, and the seed of the random weights.
    """
    at_least(0, seed=seed)
    if not dataset().target.words(translation):
        raise UserError(f"the translation {translation!r} is empty: write at least one word")
    source = TextCodec.from_lines([sentence], language=dataset().source.language)
    target = TextCodec.from_lines([translation], language=dataset().target.language)
    config = TransformerConfig(
        source_vocab=len(source.vocabulary),
        target_vocab=len(target.vocabulary),
        d_model=d_model,
        d_ff=4 * d_model,
        n_heads=1,
        n_layers=1,
        tied="none",
        output_bias=True,
    )
    model = Transformer(config, rng=np.random.default_rng(seed))
    batch = make_batch([(source.encode(sentence, strict=True), target.encode(translation))])
    logits, cache = model.forward(batch.source, batch.target_in)
    read = [target.vocabulary.words[index] for index in batch.target_in[0]]
    assert model.output.bias is not None
    of_dense = (cache.output.x[0], cache.output.weight, model.output.bias.value[None])
    return Output(read, list(target.vocabulary.words), *of_dense, logits[0])


@figure("F21", "Dense layer and softmax over the vocabulary", "jianshu", "FW", "12.1", output_of)
def output_layer(top: Output) -> Drawing:
    """Draw the decoder's output times W plus b, and its softmax, for an untrained model.

    The vocabulary of the model has only the words of the translation.
    """
    p, _ = softmax(top.logits)  # (T, V)
    best = p.argmax(-1)
    with new_board(
        top.words,
        top.read,
        matrices=[top.r, top.weight, top.bias, top.logits, p],
        title="The output layer of an untrained model: all weights are random",
    ) as board:
        band = widest(top.words, TEXT) + 0.4  # height of the upright column labels and the name above them
        low = -max(top.r.shape) * CELL / 2 - 1.05 - band
        dense: list[Grid | str] = [
            numbered(top.r, "decoder's output", "z", rows=top.read, show_shape=True),
            "×",
            _over_words(top.weight, "$W$", "weight", top),
            "+",
            _over_words(top.bias, "$b$", "weight", top),
        ]
        of_output, of_weight, of_bias = board.product(dense, 0, 0)
        left = board.grid(_over_words(top.logits, "logits", "linear", top, rows=top.read), 0, low)
        chosen = [("position", np.arange(len(top.words)) == best[:, None])]
        share = _over_words(p, "probabilities", "r", top, rows=top.read, shade=True, painted=chosen)
        right = board.grid(share, of_bias.right - board.size(share)[0], low)
        y = left.centre[1]
        box = board.box("softmax", (left.right + right.left) / 2 - 0.3, y, 0.95, colour="softmax")
        board.arrow((left.right + 0.06, y), box.left)
        board.arrow(box.right, (right.left - widest(top.read, TEXT) - 0.12, y))
        # from the whole sum down to the logits
        under, to = of_weight.bottom - 0.38, left.centre[0]
        board.arrow((of_output.left, under), (of_bias.right, under), head=False)
        board.arrow((to, under), (to, left.top + band))
    t = len(top.read) - 1
    return Drawing(
        board.figure,
        f"A dense layer turns each of the decoder's {len(p)} vectors into {len(top.words)} logits, one for "
        "each token of the vocabulary; the softmax makes each row sum to 1. The model is untrained: after "
        f"“{top.read[t]}” the most probable token (yellow) is “{top.words[best[t]]}” with "
        f"{listed(p[t, best[t]])} by chance.",
    )


def _over_words(values: Array, label: str, role: str, top: Output, **more: Any) -> Grid:
    """Return a grid with a column for each token of the vocabulary."""
    return numbered(values, label, role, "r", columns=top.words, show_shape=True, **more)
