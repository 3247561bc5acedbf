"""Translator: the order of sentences, its options, and the texts that it refuses."""

import itertools

import numpy as np
import pytest
from decoding_models import SMALL, random_model

from npformer.data import END, LANGUAGES, TextCodec
from npformer.data.moses import tokenised
from npformer.errors import UserError
from npformer.generation import Hypothesis, beam_search, greedy
from npformer.models.transformer import TransformerConfig
from npformer.pretrained import Translator, loaded

ENGLISH = ["The dog runs.", "A man sleeps.", "The man and a dog run.", "Dogs sleep"]
FRENCH = ["Le chien court.", "L'homme dort.", "Un homme et un chien courent.", "Les chiens dorment"]


@pytest.fixture(scope="module")
def translator():
    source = TextCodec.from_lines(ENGLISH, language=LANGUAGES["en"])
    target = TextCodec.from_lines(FRENCH, language=LANGUAGES["fr"])
    sizes = {"source_vocab": len(source.vocabulary), "target_vocab": len(target.vocabulary)}
    config = TransformerConfig(**(SMALL | sizes), tied="none", max_length=12)
    return Translator.of_codecs(random_model(config, 1), source, target)


def alone(translator, text, **settings):
    """Translate one sentence without the Translator."""
    source = np.array([[*translator.codec.source.encode(text), END]])
    if settings:
        ids = beam_search(translator.model, source, min_length=1, **settings)[0][0].ids
    else:
        (ids,) = greedy(translator.model, source, min_length=1)
    return translator.codec.target.decode(ids)


def test_order_and_batches_do_not_matter(translator):
    texts = [ENGLISH[2], "dog", *ENGLISH, "a man", ENGLISH[2]]
    expected = [alone(translator, text) for text in texts]
    assert len(set(expected)) > 3
    for batch_tokens, threads in itertools.product((1, 12, 30, 4096), (1, 2)):
        found = translator.translate(texts, beam=1, batch_tokens=batch_tokens, threads=threads)
        assert found == expected
    assert translator.translate(tuple(texts), beam=1, cached=False) == expected
    searched = [alone(translator, text, beam=4, length_penalty=0.6) for text in texts]
    assert translator.translate(texts) == searched
    assert translator.translate([]) == []


def test_unknown_words(translator):
    assert translator.unknown_words("The zebra, a dog and ZEBRA giraffes") == ["zebra", ",", "giraffes"]
    assert translator.unknown_words("the DOG") == []
    assert translator.translate(["zebra"]) == translator.translate(["giraffes"])
    assert "<UNK>" not in translator.translate(["zebra zebra giraffes"])[0]


def test_the_error_for_sentences_that_are_too_long_names_them(translator):
    assert translator.translate(["dog " * 11])
    with pytest.raises(UserError, match=r"line 2 has 13 tokens, .* and the model's limit is 12"):
        translator.translate(["dog", "dog " * 12])
    stream = translator.translate_stream(["dog", "dog " * 12], first_line=100)
    assert next(stream) == [translator.translate("dog")]
    with pytest.raises(UserError, match="line 101 has 13 tokens"):
        next(stream)


def test_the_form_of_a_translation(translator, monkeypatch):
    ids = translator.codec.target.encode(FRENCH[1])
    found = [Hypothesis(ids, 0.0, 0.0)]
    monkeypatch.setattr(
        loaded, "search_in_parts", lambda model, sources, *n, **settings: [[found] * len(sources)]
    )
    assert translator.translate("dog") == translator.text_of(ids) == "l'homme dort."
    assert translator.translate(["dog"], form="tokenised") == [tokenised(FRENCH[1], "fr")]
    with pytest.raises(UserError, match="form is 'lower': choose one of raw, tokenised"):
        translator.translate("dog", form="lower")
