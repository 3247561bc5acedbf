"""Converting text to the form of tokenised corpora and back."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import SHARED

from npformer.data.moses import moses_detokenize, tokenised

CORPUS = SHARED / "multi30k"

EXAMPLES = [
    ("en", "The dog's asleep.", "the dog &apos;s asleep ."),
    ("en", 'He said "no," and left; I don\'t.', "he said &quot; no , &quot; and left ; i don &apos;t ."),
    ("en", "The dogs' bowl (red) is 1,000.50 or 5%!", "the dogs &apos; bowl ( red ) is 1,000.50 or 5 % !"),
    ("en", "R&B <b> [x] a|b a_b", "r &amp; b &lt; b &gt; &#91; x &#93; a &#124; b a _ b"),
    ("en", "Wait... St. Mary of the U.S.", "wait ... st. mary of the u.s."),
    ("en", "the 1980's – a known T-shirt — ’tis", "the 1980 &apos;s - a known t-shirt - &apos; tis"),
    ("en", "Ｆｕｌｌ\u00a0width…", "full width ..."),
    ("de", "„Wir“, sagt er, „sind da.“", "&quot; wir &quot; , sagt er , &quot; sind da &quot; ."),
    ("de", "Joe's Bar, ca. 3 km weit, die Nummer 10.", "joe &apos; s bar , ca. 3 km weit , die nummer 10."),
    ("fr", "L’homme qu'elle voit, aujourd'hui.", "l&apos; homme qu&apos; elle voit , aujourd&apos; hui ."),
    ("fr", "« Non » : dit-il ?", "&quot; non &quot; : dit-il ?"),
    ("plain", "", ""),
]


@pytest.mark.parametrize(("language", "text", "expected"), EXAMPLES)
def test_text_is_converted_to_the_form_of_a_tokenised_corpus(language, text, expected):
    assert tokenised(text, language) == expected
    assert tokenised(expected, language) == expected


SIGNS = ["a", "B", "s", "st", "1", "22", ".", "..", ",", "'", "’", '"', "-", "—", "%", "&", "_", " "]
SIGNS += ["&apos;", "&quot;", "&amp;", "amp", ";", "é", "İ", "ß", "´", "\u00a0", "\ue000", "\ufeff"]
marks = st.lists(st.sampled_from(SIGNS), max_size=12).map("".join)


@given(text=marks | st.text(), language=st.sampled_from(["en", "de", "fr", "plain"]))
def test_tokenised_text_stays_as_it_is(text, language):
    once = tokenised(text, language)
    assert tokenised(once, language) == once
    assert once == " ".join(once.split())


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("the dog &apos;s asleep .", "the dog's asleep."),
        ("he said &quot; no , &quot; and left ; she didn &apos;t !", 'he said "no," and left; she didn\'t!'),
        ("l&apos; homme ( qu&apos; elle voit ) ?", "l'homme (qu'elle voit)?"),
        ("r &amp; b &lt; 3 &#91; x &#93; 5 % t-shirt ...", "r & b < 3 [x] 5% t-shirt ..."),
        ("&apos;s", "'s"),
        ("", ""),
    ],
)
def test_detokenized_text_is_written_as_people_write(tokens, expected):
    assert moses_detokenize(tokens) == expected


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_multi30k_is_tokenised_as_by_its_makers(language):
    for part in ("val", "test_2016_flickr"):
        raw = gzip.decompress((CORPUS / f"raw/{part}.{language}.gz").read_bytes()).decode().split("\n")
        tokens = (CORPUS / f"tok/{part}.lc.norm.tok.{language}").read_bytes().decode().split("\n")
        same = sum(tokenised(line, language) == made.strip() for line, made in zip(raw, tokens, strict=True))
        assert same >= 0.998 * len(raw)
        assert all(tokenised(line, language) == line.strip() for line in tokens)
