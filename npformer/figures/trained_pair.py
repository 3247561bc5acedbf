"""Attention between the words of a sentence and of its translation, and how training brought it about."""

from collections.abc import Callable
from functools import partial

from npformer.figures.entry import Drawing, figure
from npformer.figures.studio import as_translator, look
from npformer.figures.trained_heads import check_number, unknown_words
from npformer.models import attention_layers
from npformer.plots import Figure, attention_map, word_lines
from npformer.plots.compose import beside

PAIR = "the black cat drinks some milk"


@figure("F07", "Attention as relevance between the words of a sentence pair", source="S0", data="TR")
def sentence_pair(
    studio, *, sentence: str = PAIR, translation: str | None = None, layer: int = -1
) -> Drawing:
    """Encoder-decoder attention of one layer, mean over its heads: as a map, and as lines.

    layer counts from the end where negative. The frames are the map over the steps of the training.
    """
    seen = studio.look(sentence, translation)
    weights, number = _mean_over_heads(seen.cache, layer)  # (T, S)

    words = seen.predicted, seen.source
    picture = beside(
        [
            lambda ax=None: attention_map(weights, *words, numbers=True, largest=1.0, ax=ax),
            lambda ax=None: word_lines(weights, *words, ax=ax),
        ]
    )
    best = zip(seen.predicted, weights.argmax(1), strict=True)
    looks = [f"{word} at {seen.source[key]}" for word, key in best]
    caption = (
        f"A row, or a word at the left, is the step that writes that French word: how much it looks at each "
        f"English word, as the mean of the heads in decoder layer {number} of the model trained here. "
        f"The strongest looks: {', '.join(looks)}."
    )
    caption += unknown_words(studio.translator, sentence)
    return Drawing(picture, caption, _over_training(studio, sentence, seen, layer))


def _mean_over_heads(cache, layer):
    """Shapes: -> (T, S), and the layer's number."""
    layers = attention_layers(cache, "cross")
    number = layer + len(layers) if layer < 0 else layer
    check_number("layer", number, len(layers))
    return layers[number][0].mean(0), number


def _over_training(studio, sentence, seen, layer) -> list[Callable[[], Figure]]:
    """A frame for each checkpoint that training kept: the same words, the weights of that moment."""
    checkpoints = studio.snapshots()
    translation = studio.translator.target_codec.decode(seen.batch.target_out[0])

    def frame(checkpoint):
        then = look(as_translator(checkpoint), sentence, translation)
        weights, _ = _mean_over_heads(then.cache, layer)
        title = f"after {checkpoint.step} steps"
        words = seen.predicted, seen.source
        return attention_map(weights, *words, numbers=True, largest=1.0, title=title)

    if len(checkpoints) < 2:
        return []
    return [partial(frame, checkpoint) for checkpoint in checkpoints]
