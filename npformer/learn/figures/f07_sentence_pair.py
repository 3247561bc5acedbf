"""F07: attention between a sentence and its translation, and its development during training."""

from collections.abc import Callable
from functools import partial
from typing import Any

from npformer.backend import Array
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.learn.figures.trained_heads import check_number, unknown_words
from npformer.models.registry import attention_layers
from npformer.plots import Figure, attention_map, word_lines
from npformer.plots.composition import beside
from npformer.pretrained import Translator
from npformer.pretrained.attention import ForwardPass, forward_pass
from npformer.storage.checkpoint import Checkpoint

PAIR = "the black cat drinks some milk"


@figure("F07", "Attention as relevance between the words of a sentence pair", "jianshu", "TR", "15.1")
def sentence_pair(
    studio: Studio, *, sentence: str = PAIR, translation: str | None = None, layer: int = -1
) -> Drawing:
    """Draw the encoder-decoder attention of one layer, averaged over its heads, as a heat map and as lines.

    The frames of the animation are the heat map at several steps of training.

    Args:
        studio: The source of the trained model.
        sentence, translation: An English sentence, and its translation; by default that of the model.
        layer: The decoder layer. A negative number counts from the last layer.
    """
    forward = studio.forward_pass(sentence, translation)
    weights, number = _mean_over_heads(forward.cache, layer)  # (T, S)

    words = forward.predicted, forward.source
    picture = beside(
        [
            partial(attention_map, weights, *words, numbers=True, largest=1.0),
            partial(word_lines, weights, *words),
        ]
    )
    best = zip(forward.predicted, weights.argmax(1), strict=True)
    largest = [f"{word} → {forward.source[key]}" for word, key in best]
    caption = (
        "Each row of the map, and each word at the left of the lines, is the step that writes this French "
        "word, with its weights over the English words: the mean over the heads of decoder layer "
        f"{number} of a model trained here. The largest weights: {', '.join(largest)}."
    )
    caption += unknown_words(studio.translator, sentence)
    return Drawing(picture, caption, _over_training(studio, sentence, forward, layer))


def _mean_over_heads(cache: Any, layer: int) -> tuple[Array, int]:
    """Return the mean weights, (T, S), and the number of the layer."""
    layers = attention_layers(cache, "cross")
    number = layer + len(layers) if layer < 0 else layer
    check_number("layer", number, len(layers))
    return layers[number][0].mean(0), number


def _over_training(
    studio: Studio, sentence: str, forward: ForwardPass, layer: int
) -> list[Callable[[], Figure]]:
    """Return a frame for each checkpoint kept by training, with the weights of that step."""
    checkpoints = studio.snapshots()
    translation = studio.translator.codec.target.decode(forward.predicted_ids[0])

    def frame(checkpoint: Checkpoint) -> Figure:
        then = forward_pass(Translator.from_checkpoint(checkpoint), sentence, translation)
        weights, _ = _mean_over_heads(then.cache, layer)
        title = f"after {checkpoint.step} steps"
        words = forward.predicted, forward.source
        return attention_map(weights, *words, numbers=True, largest=1.0, title=title)

    if len(checkpoints) < 2:
        return []
    return [partial(frame, checkpoint) for checkpoint in checkpoints]
