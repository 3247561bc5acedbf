"""The JSON of vocabularies and codecs: they come back as they were, and other texts are refused."""

import dataclasses
import json
import re

import pytest

from npformer import UserError
from npformer.data import LANGUAGES, SPECIALS, Language, SubwordCodec, TextCodec, Vocabulary, codec_from_json
from npformer.data.codecs import require_fit
from npformer.data.sentences import with_mask
from npformer.data.text_codecs import ByteCodec
from npformer.models.bert import BertConfig
from npformer.models.gpt import GPTConfig
from npformer.models.transformer import TransformerConfig

SUBWORDS = SubwordCodec(Vocabulary((*SPECIALS, "▁dog", "▁the", *"▁dogthe")))
LINES = ["L'animal dort.", "L’homme qu'il voit dort (aujourd'hui)."]
WORDS = [
    TextCodec.from_lines(LINES, language=language, lowercase=lowercase)
    for language in (*LANGUAGES.values(), Language("it", elision=True))
    for lowercase in (True, False)
]
CODECS = [
    *WORDS,
    SUBWORDS,
    dataclasses.replace(SUBWORDS, lowercase=False, language=Language("it", elision=True)),
    dataclasses.replace(SUBWORDS, text="tokenised", language=LANGUAGES["de"]),
]
OF_WORDS = json.loads(WORDS[0].to_json())


@pytest.mark.parametrize("codec", CODECS)
def test_a_codec_is_restored_as_the_same_kind(codec):
    for again in (codec_from_json(codec.to_json()), type(codec).from_json(codec.to_json())):
        assert type(again) is type(codec)
        assert again == codec
        assert again.encode("the dogs dort") == codec.encode("the dogs dort")


OTHER_KIND = '{"kind": "npformer vocabulary"}'


def with_words(*words, first=SPECIALS):
    return json.dumps(OF_WORDS | {"words": [*first, *words]})


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        *((codec_from_json, text, "npformer text codec or npformer subword codec") for text in ("", "[]")),
        (codec_from_json, OTHER_KIND, "npformer text codec or npformer subword codec"),
        (codec_from_json, '{"kind": []}', "npformer text codec or npformer subword codec"),
        (TextCodec.from_json, OTHER_KIND, "its \"kind\" is 'npformer vocabulary'"),
        (TextCodec.from_json, "", "is not JSON"),
        (SubwordCodec.from_json, SUBWORDS.to_json().replace("▁the", "▁dog"), "has '▁dog' twice"),
        (TextCodec.from_json, "{", "the text of the npformer text codec is not JSON"),
        (TextCodec.from_json, "[1, 2]", "the npformer text codec is a list and not a JSON object"),
        (
            TextCodec.from_json,
            json.dumps(OF_WORDS | {"words": "abc"}),
            "'words' of the text codec is 'abc', not a",
        ),
        (TextCodec.from_json, with_words("a", 7), "'words' of the text codec is"),
        (TextCodec.from_json, with_words("<PAD>", "a", first=()), "starts with the words"),
        (TextCodec.from_json, with_words("a", "b", "a"), "has 'a' twice, at 4 and 6"),
        (TextCodec.from_json, with_words("<S>"), "has '<S>' twice, at 2 and 4"),
    ],
)
def test_other_texts_are_refused(read, text, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        read(text)


@pytest.mark.parametrize("codec", [WORDS[0], SUBWORDS])
def test_codecs_must_fit_their_translator(codec):
    size = len(codec.vocabulary)
    config = TransformerConfig(source_vocab=size, target_vocab=size, tied="output")
    codecs = {"source": codec, "target": codec}
    require_fit(config, codecs)
    for role in codecs:
        other = config.replace(**{f"{role}_vocab": 99})
        message = f"the {role} vocabulary has {size} entries and the model 99: use"
        with pytest.raises(UserError, match=message):
            require_fit(other, codecs)
    with pytest.raises(UserError, match="pad, start and end ids are 0, 1 and 3"):
        require_fit(config.replace(start_id=1), codecs)


MASKED = with_mask(TextCodec.from_lines(["the cat crossed the street"]))
N = len(MASKED.tokens)
SIZES = {"d_model": 4, "n_heads": 1, "n_layers": 1}


@pytest.mark.parametrize(
    ("config", "role", "codec", "message"),
    [
        (
            BertConfig(vocab_size=N, pad_id=1, **SIZES),
            "sentences",
            MASKED,
            "the model's pad id is 1, and a vocabulary's 0: give another model",
        ),
        (
            BertConfig(vocab_size=N + 1, **SIZES),
            "sentences",
            MASKED,
            f"the sentences vocabulary has {N} entries and the model {N + 1}",
        ),
        (
            BertConfig(vocab_size=N, **SIZES),
            "sentences",
            TextCodec.from_lines(["the cat crossed the wide street"]),
            r"the last word of the vocabulary is 'wide' and not \[MASK\]: use the codec",
        ),
        (
            GPTConfig(vocab_size=N, context=4, **SIZES),
            "sentences",
            MASKED,
            "the model reads text, and a masked language model reads sentences: give another model",
        ),
        (
            BertConfig(vocab_size=256, **SIZES),
            "text",
            ByteCodec(),
            "the model reads sentences, and a language model reads text: give another model",
        ),
        (
            GPTConfig(vocab_size=255, context=4, **SIZES),
            "text",
            ByteCodec(),
            "the text vocabulary has 256 entries and the model 255: use the vocabulary",
        ),
    ],
)
def test_codecs_of_language_models_must_fit(config, role, codec, message):
    with pytest.raises(UserError, match=message):
        require_fit(config, {role: codec})
