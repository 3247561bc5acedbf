"""A direct computation of what a trained model does with a sentence, with which figures are compared."""

import math

import numpy as np
from matplotlib.collections import LineCollection

from npformer.pretrained import Translator
from npformer.storage.checkpoint import load_checkpoint

WIDEST, FAINTEST = 5.0, 0.01  # width in points of a weight of 1; lines below the second number are not drawn


def split(text):
    """Return the words of a sentence that can be split at spaces."""
    return text.split(" ")


# sentences of the figures, each with its translation
ANIMAL = split("the animal didn't cross the street because it was too tired")
ANIMAL_FR = split("l' animal n' a pas traversé la rue parce qu' il était trop fatigué")
BANK = split("i arrived at the bank after crossing the river")
BANK_FR = split("je suis arrivé à la rive après avoir traversé la rivière")


class Oracle:
    """The model of a run's last checkpoint; sentences are given as lists of words."""

    def __init__(self, folder, name="last"):
        self.checkpoint = load_checkpoint(folder / f"{name}.safetensors")
        self.translator = Translator.from_checkpoint(self.checkpoint)
        self.model = self.translator.model
        self.english = self.translator.codec.source.vocabulary.words
        self.target = self.translator.codec.target.vocabulary.words

    def forward(self, source, target):
        """Return (logits (T, V), cache): the source ends with </S>, the target starts with <S>."""
        ids = [[*map(self.english.index, source), 3]], [[2, *map(self.target.index, target)]]
        logits, cache = self.model.forward(*map(np.array, ids))
        return logits[0], cache

    def weights(self, source, target, where, layer):
        """Compute softmax(q kᵀ / √K) of every head, (H, T, S), from the queries and keys of the cache."""
        _, cache = self.forward(source, target)
        layer_cache = (cache.encoder if where == "encoder" else cache.decoder)[layer]
        cell = layer_cache.cross if where == "cross" else layer_cache.self_attention
        q, k = cell.attention.q[0].astype(float), cell.attention.k[0].astype(float)
        scores = np.einsum("htk,hsk->hts", q, k) / math.sqrt(q.shape[-1])
        if where == "decoder":
            scores = np.where(np.tri(scores.shape[1], dtype=bool), scores, -np.inf)
        return softmax(scores)

    def probabilities(self, source, target):
        """Return the probabilities of the next token at every position, (T, V)."""
        return softmax(self.forward(source, target)[0].astype(float))


def softmax(scores):
    """Compute the softmax over the last axis."""
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def line_weights(ax):
    """Return for each colour the weights (T, S) that the lines between two columns of words show."""
    places = {}
    for side in ("right", "left"):
        own = [t for t in ax.texts if t.get_ha() == side and is_word(ax, t)]
        places[side] = sorted((t.get_position()[1] for t in own), reverse=True)
    left, right = places["right"], places["left"]
    found = []
    for lines in ax.collections:
        if isinstance(lines, LineCollection):
            weights = np.zeros((len(left), len(right)))
            for ((_, y0), (_, y1)), width in zip(lines.get_segments(), lines.get_linewidths(), strict=True):
                weights[nearest(left, y0), nearest(right, y1)] = width / WIDEST
            found.append(weights)
    return found


def is_word(ax, text):
    """Return whether a text is a word of the columns: below their names, and not in the legend."""
    top = next(t.get_position()[1] for t in ax.texts if t.get_text() == "query")
    return text.get_position()[1] < top and text.get_gid() != "legend"


def legend(ax):
    """Return the texts of the legend, from the top."""
    own = [t for t in ax.texts if t.get_gid() == "legend"]
    return [t.get_text() for t in sorted(own, key=lambda t: -t.get_position()[1])]


def nearest(places, value):
    """Return the index of the position that is nearest to a value."""
    distance = np.abs(np.array(places) - value)
    assert distance.min() < 0.1
    return int(distance.argmin())


def drawn(weights):
    """Return the weights that are large enough to be drawn."""
    return np.where(weights >= FAINTEST, weights, 0)


def column(ax, side):
    """Return the words in the "right" column (the queries of an alignment) or the "left" one (the keys)."""
    words = [t for t in ax.texts if t.get_ha() == side and is_word(ax, t)]
    return [t.get_text() for t in sorted(words, key=lambda t: -t.get_position()[1])]


def close(shown, expected):
    """Return whether widths or colours show these weights."""
    return np.allclose(shown, expected, atol=2e-5)
