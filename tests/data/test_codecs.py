"""Codecs of both kinds, recognized by their JSON text."""

import pytest

from npformer import UserError
from npformer.data import SPECIALS, SubwordCodec, TextCodec, Vocabulary, codec_from_json
from npformer.data.codecs import require_fit

CODECS = [
    TextCodec.from_lines(["the dog"]),
    SubwordCodec(Vocabulary((*SPECIALS, "▁dog", "▁the", *"▁dogthe"))),
]


@pytest.mark.parametrize("codec", CODECS)
def test_a_codec_is_restored_as_the_same_kind(codec):
    again = codec_from_json(codec.to_json())
    assert type(again) is type(codec)
    assert again == codec


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "npformer vocabulary", "words": []}', '{"kind": []}'])
def test_other_texts_are_refused(text):
    with pytest.raises(UserError, match="npformer text codec or npformer subword codec"):
        codec_from_json(text)


@pytest.mark.parametrize("codec", CODECS)
def test_a_codec_must_fit_its_model(codec):
    size = len(codec.vocabulary)
    require_fit(codec, size, "source")
    with pytest.raises(UserError, match=f"the target vocabulary has {size} entries and the model 99: use"):
        require_fit(codec, 99, "target")
