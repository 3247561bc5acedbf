"""F44 and F45: decoding step by step, from the encoders' keys and values to the end symbol."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from npformer.decoding.rules import forbidden_words
from npformer.figures.decoding_panel import Panel, draw_panel
from npformer.figures.entry import Drawing, figure
from npformer.figures.studio import Look
from npformer.figures.trained_heads import unknown_words
from npformer.functional import softmax
from npformer.models import attention_layers
from npformer.plots import Figure, key_frames
from npformer.plots.layout import MAX_SIDE, PAD

STUDENT = "je suis étudiant"
LIKELIEST = 3  # words shown beside the softmax
STAGES = ("the encoders read", "K and V for every decoder", "the decoder asks", "a word")


class Step(NamedTuple):
    """What one step of decoding did."""

    read: list[str]  # the words so far, the start symbol first
    written: list[str]  # the words so far, this step's word last
    looks: Any  # (S,) the last decoder layer's weights over the source, mean over its heads
    likeliest: list[tuple[str, float]]  # words and their probabilities, best first


def steps_of(seen: Look, translator) -> list[Step]:
    """Every step of a greedy translation, from the cache of one pass over the whole of it.

    The causal mask makes row t of that pass what step t computes.
    """
    probabilities, _ = softmax(seen.logits[0])  # (T, V)
    probabilities[:, forbidden_words(translator.model.config)] = 0  # as decoding does: it never writes <UNK>
    looks = attention_layers(seen.cache, "cross")[-1][0].mean(0)  # (T, S)
    words = translator.target_codec.vocabulary.words
    steps = []
    for t, row in enumerate(probabilities):
        best = np.argsort(-row, kind="stable")[:LIKELIEST]
        likeliest = [(words[word], float(row[word])) for word in best]
        steps.append(Step(seen.target[: t + 1], seen.predicted[: t + 1], looks[t], likeliest))
    return steps


@figure("F44", "Decoding, the first step", source="S2", data="TR")
def first_step(studio, *, sentence: str = STUDENT) -> Drawing:
    """A French sentence enters the encoders; their output is K and V for every decoder; a word comes out."""
    panels, steps = _panels(studio, sentence)
    stages = [panels[0]._replace(stage=stage) for stage in range(1, len(STAGES) + 1)]
    picture = key_frames(draw_panel, stages, names=_numbered(STAGES), columns=_columns(panels[0]))
    word, probability = steps[0].likeliest[0]
    caption = (
        f"“{sentence}”, step 1 of {len(steps)}: the encoders read all words at once, and the output of the "
        f"last one becomes keys and values (K, V) for each decoder. The decoders read <S> alone and look "
        f"most at “{panels[0].source[int(steps[0].looks.argmax())]}” (orange, {steps[0].looks.max():.2f}); "
        f"linear + softmax gives “{word}” a probability of {probability:.2f}."
    )
    return Drawing(picture, caption + about_model(studio, sentence), frames_of(stages))


@figure("F45", "Decoding, the other steps, up to the end symbol", source="S2", data="TR")
def other_steps(studio, *, sentence: str = STUDENT) -> Drawing:
    """Each word written is read in the next step; the encoders' K and V stay as they are."""
    panels, steps = _panels(studio, sentence)
    shown = panels[1:] or panels
    names = [f"step {panel.number}" for panel in shown]
    few = _few(shown, _columns(shown[0]))
    picture = key_frames(
        draw_panel, [shown[i] for i in few], names=[names[i] for i in few], columns=_columns(shown[0])
    )
    words = ", ".join(f"“{step.written[-1]}” {step.likeliest[0][1]:.2f}" for step in steps[1:])
    caption = (
        f"“{sentence}”, steps 2 to {len(steps)}: each word that was written is embedded and read in the next "
        f"step, while K and V stay; the likeliest word comes next, with its probability: {words}. The end "
        f"symbol </S> ends it."
    )
    return Drawing(picture, caption + about_model(studio, sentence), frames_of(panels))


def frames_of(panels: list[Panel]) -> list[Callable[[], Figure]]:
    """What draws each panel, for an animation."""
    return [partial(draw_panel, panel) for panel in panels]


def _panels(studio, sentence) -> tuple[list[Panel], list[Step]]:
    """One finished panel for each step."""
    translator = studio.from_french
    seen = studio.look(sentence, translator=translator)
    steps = steps_of(seen, translator)
    layers = len(seen.cache.encoder), len(seen.cache.decoder)
    panels = [
        Panel(seen.source, seen.target, seen.predicted, number, *layers, step.looks, step.likeliest)
        for number, step in enumerate(steps, 1)
    ]
    return panels, steps


def about_model(studio, sentence) -> str:
    """Which model a caption speaks of, and which words it does not know."""
    return (
        f" (By a second model, French to English, trained here for {studio.french_training.steps} steps.)"
        + unknown_words(studio.from_french, sentence)
    )


def _numbered(names):
    return [f"{number}. {name}" for number, name in enumerate(names, 1)]


def _columns(panel: Panel) -> int:
    """Two beside each other where they fit."""
    width = draw_panel(panel).get_size_inches()[0]
    return 2 if 2 * width + 3 * PAD <= MAX_SIDE else 1


def _few(shown, columns) -> list[int]:
    """The numbers of at most four key frames, or three in one column: the first ones and the last."""
    most = 4 if columns == 2 else 3
    if len(shown) <= most:
        return list(range(len(shown)))
    return [*range(most - 1), len(shown) - 1]
