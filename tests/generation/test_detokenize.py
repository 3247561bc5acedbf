"""Detokenization: the forms of a translation, and the labels of subwords."""

from toy_pretrained import PIECES, toy_codec

from npformer.data import LANGUAGES, TextCodec
from npformer.data.moses import tokenised
from npformer.generation.detokenize import detokenize, in_form, labels

RAW = "Zwei Hunde laufen, ein Kind lacht."
TOKENISED = "zwei hunde laufen , ein kind lacht ."


def test_the_forms_of_a_translation():
    subwords = toy_codec("de")
    assert in_form(subwords, TOKENISED, "tokenised") == TOKENISED
    assert in_form(subwords, TOKENISED, "raw") == detokenize(subwords, TOKENISED)
    assert detokenize(subwords, TOKENISED).lower() == RAW.lower()
    whole = TextCodec.from_lines([RAW], language=LANGUAGES["de"])
    assert (
        in_form(whole, "ein kind lacht.", "raw") == detokenize(whole, "ein kind lacht.") == "ein kind lacht."
    )
    assert in_form(whole, "Ein Kind lacht.", "tokenised") == tokenised("Ein Kind lacht.", "de")


def test_the_labels_of_subwords_in_a_picture():
    codec = toy_codec("en", ["▁&apos;s", *PIECES])
    shown = {"▁photo": "photo", "graph": "·graph", "▁&apos;s": "'s", "▁": "▁", "é": "·é", "▁.": "."}
    assert labels(codec, list(shown)) == list(shown.values())
    whole = TextCodec.from_lines([RAW], language=LANGUAGES["de"])
    assert labels(whole, ["ein", "▁", "kind"]) == ["ein", "▁", "kind"]
