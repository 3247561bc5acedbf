"""What looks into a model, for every family of Hugging Face folders: it works, or says what is missing."""

import pytest
from family_models import CONFIGS, random_model
from refused import refused

from npformer.data.encoding import Encoding
from npformer.models.transformer import Transformer
from npformer.models.vit import ViT
from npformer.pretrained.images import ImageModel
from npformer.pretrained.loaded import GapFiller, Translator, loaded_text_model

MASK = 9


class Letters:
    """A tokenizer of the letters a to h, with # as the mask."""

    mask_id, unknown_id, special_ids = MASK, None, frozenset([MASK])

    def __init__(self, end=None):
        self.end = [] if end is None else [end]

    def encode(self, text):
        ids = [MASK if letter == "#" else "abcdefgh".index(letter) for letter in text] + self.end
        places = [(i, i + 1) for i in range(len(text))] + [(0, 0)] * len(self.end)
        return Encoding(ids, [self.piece(i) for i in ids], places)

    def decode(self, ids):
        return "".join(map(self.piece, ids))

    def piece(self, index):
        return "abcdefgh"[index] if index < 8 else f"<{index}>"


def loaded_of(family):
    """Return a small random model of a family, with a tokenizer, as npformer.load returns it."""
    model = random_model(CONFIGS[family])
    if isinstance(model, ViT):
        return ImageModel(family, model, (), None)
    if isinstance(model, Transformer):
        end = Letters(model.config.end_id)
        return Translator(family, model, lambda: (end, end))
    return loaded_text_model(family, model, Letters, [f"class {i}" for i in range(9)])


CALLS = {
    "lens": lambda loaded, text, _: loaded.lens(text),
    "attribution": lambda loaded, text, _: loaded.attribution(text),
    "patch": lambda loaded, text, other: loaded.patch(text, other),
    "saliency": lambda loaded, text, _: loaded.saliency(text, tolerance=1e9),
    "explore": lambda loaded, text, _: loaded.explore(text).html,
}


# what cannot be said of some models: a part of the name of the configuration, the functions, and the sentence
REFUSED = [
    ("without a head", ("lens", "attribution", "patch"), "which cannot predict tokens"),
    ("without a head", ("saliency",), "which predicts no token to explain"),
    ("classes", ("lens", "attribution", "patch"), "is a classifier, which cannot predict tokens"),
    ("vit", CALLS, "reads images, and .* is for models of texts"),
    ("gemma2", ("attribution",), "the logits of this model are capped"),
]


@pytest.mark.parametrize("family", CONFIGS)
def test_what_looks_into_a_model(family):
    loaded = loaded_of(family)
    texts = ("ab#d", "ac#d") if loaded.kind is GapFiller.kind else ("abcd", "abed")
    for name, call in CALLS.items():
        said = [each for part, names, each in REFUSED if part in family and name in names]
        if said:
            with refused(said[-1]):
                call(loaded, *texts)
        else:
            assert call(loaded, *texts), name
    if loaded.kind is GapFiller.kind:  # a text without a gap needs a position where one is asked for, only
        assert loaded.lens("abcd")
        assert loaded.attribution("abcd", position=1)
        assert loaded.patch("abcd", "abed", position=1)
        with refused("'abcd' has no <9>: write it in place of a word, or give a position"):
            loaded.attribution("abcd")
