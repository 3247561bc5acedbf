"""The built-in English-French corpus: correct, a function in both directions, and correctly held out."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

from npformer.data.corpus import builtin_corpus
from npformer.data.corpus.lexicon import ANIMALS, GROUNDS, MACHINES, base_form
from npformer.data.tokens import tokenize

LEAST_OFTEN = 15  # every word occurs at least this often in training


@pytest.fixture(scope="module")
def corpus():
    return builtin_corpus()


@pytest.fixture(scope="module")
def pairs(corpus):
    return corpus.train + corpus.valid + corpus.test


def of_family(pairs, family):
    return [pair for pair in pairs if pair.family == family]


def test_sizes(corpus):
    assert len({pair.english for pair in corpus.train}) > 10_000
    assert len(corpus.valid) >= 500
    held_out = Counter((pair.family, pair.held_out) for pair in corpus.test)
    assert held_out == {
        ("simple", "words"): 500,
        ("it", "words"): 400,
        ("bank", "words"): 400,
        ("it", "frame"): 500,
        ("bank", "frame"): 500,
    }
    assert set(corpus.new_words) | set(corpus.new_frames) == set(corpus.test)
    assert len(corpus.new_words) + len(corpus.new_frames) == len(corpus.test)


def test_sentences_are_a_function_both_ways(pairs):
    for one, other in (("english", "french"), ("french", "english")):
        translation = {}
        for pair in pairs:
            sentence = getattr(pair, one)
            assert translation.setdefault(sentence, getattr(pair, other)) == getattr(pair, other), sentence


def test_the_parts_share_no_sentence(corpus):
    train, valid, test = ({pair.english for pair in part} for part in corpus)
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert len(valid) == len(corpus.valid)
    assert len(test) == len(corpus.test)


def test_held_out_words_never_occur_together_in_training(corpus):
    sentences_with: dict[str, set[int]] = {}
    for number, pair in enumerate(corpus.train + corpus.valid):
        assert pair.combination == ()
        assert pair.held_out is None
        for word in pair.english.split():
            sentences_with.setdefault(base_form(word), set()).add(number)
    for pair in corpus.new_words:
        first, second = pair.combination
        assert {first, second} <= {base_form(word) for word in pair.english.split()}
        assert not sentences_with[first] & sentences_with[second], pair
        # each of the two words is frequent in other sentences
        assert min(len(sentences_with[first]), len(sentences_with[second])) >= LEAST_OFTEN, pair


def test_held_out_constructions_never_occur_together_in_training(corpus):
    for family in ("it", "bank"):
        training = of_family(corpus.train + corpus.valid, family)
        sentences_with: dict[str, set[int]] = {}
        for number, pair in enumerate(training):
            for construction in pair.constructions:
                sentences_with.setdefault(construction, set()).add(number)
        held_out = of_family(corpus.new_frames, family)
        for pair in held_out:
            first, second = pair.combination
            assert {first, second} <= set(pair.constructions)
            assert not sentences_with[first] & sentences_with[second], pair
        # each construction is frequent in other sentences, and many pairs are held out
        assert min(map(len, sentences_with.values())) >= 100, {k: len(v) for k, v in sentences_with.items()}
        assert len({pair.combination for pair in held_out}) >= 25


def test_every_word_occurs_often_in_training(corpus):
    for of in (lambda p: tokenize(p.english), lambda p: tokenize(p.french, elision=True)):
        count = Counter(word for pair in corpus.train for word in of(pair))
        words = {word for part in corpus for pair in part for word in of(pair)}
        rare = {word: count[word] for word in words if count[word] < LEAST_OFTEN}
        assert not rare
        assert len(words) < 600


VOWEL = "[aàâeéèêiîoôuûœy]"
MUTE_H = "(?:homme|hôtel|hôpital)"
NEVER = [
    rf"\b(?:le|la|de|je|ne|que|jusque|ce) {VOWEL}",
    rf"\b(?:le|la|de|que|ce) {MUTE_H}",
    r"\b[ld]'h(?:ibou|érisson|aut)",
    r"\bde les?\b",
    r"\bà les?\b",
    r"\bsi ils?\b",
    r"\b(?:puisque|est-ce que) (?:ils?|elles?)\b",
    r"\b(?:ai|a|avons|ont)(?: pas)? (?:allé|arrivé|entré|resté)",  # these take être
    r"\b(?:n'|ne )(?!y )\w+ (?!pas\b)",  # pas follows the auxiliary: n'a pas voulu
    r"\bpas (?:traversé|évité|pu|voulu|dû)[es]",  # avoir: no agreement with the subject
    r"\b(?:ils|elles) (?:a|est|va|était|peut|veut|doit)\b",
    r"\b(?:il|elle) (?:ont|sont|vont|étaient)\b",
    r"\b(?:ma|sa|cette|la) (?:beau|vieux|nouveau|bel|vieil|nouvel)\b",
    rf"\b(?:beau|vieux|nouveau|ce) (?:animal|âne|arbre|{MUTE_H})\b",
    rf"\b(?:ma|sa) {VOWEL}",
    r"\b(?:les|des|ces|mes|ses|nos|leurs|deux|trois|cinq|dix) (?:chat|chien|cheval|animal|clé|homme|femme)\b",
    r"\b(?:le|ce|un) (?:rue|route|vache|souris|voiture|banque|rive)\b",
    r"\b(?:la|une|cette) (?:pont|chat|chien|camion|lac|champ)\b",
    r"\belles? (?:est|était|sont) (?:\w+ )?(?:fatigué|allé|arrivé|entré|resté|heureux|lent|haut)s?\b",
    r"\bils? (?:est|était|sont) (?:\w+ )?(?:\w+ée|heureuse|lente|haute)s?\b",
    r"\b(?:ils|elles|nous sommes) (?:étaient |sont )?(?:\w+ )?(?:fatiguée?|alléee?|arrivée?)\b",
]


@pytest.mark.parametrize("mistake", NEVER)
def test_mistakes_that_french_never_makes(pairs, mistake):
    pattern = re.compile(mistake)
    assert [pair.french for pair in pairs if pattern.search(pair.french)] == []


PRONOUNS = {("m", "it"): "il", ("f", "it"): "elle", ("m", "they"): "ils", ("f", "they"): "elles"}


def test_the_noun_that_it_refers_to(pairs):
    genders = {name: noun.gender for table in (ANIMALS, MACHINES, GROUNDS) for name, noun in table.items()}
    ambiguous = of_family(pairs, "it")
    for pair in ambiguous:
        reference, english = pair.reference, pair.english.split()
        pronoun, antecedent = english[reference.word], english[reference.antecedent]
        assert genders[base_form(antecedent)] == reference.gender
        assert (antecedent == base_form(antecedent)) == (pronoun == "it"), pair  # a plural is they
        assert reference.right == PRONOUNS[reference.gender, pronoun]
        assert {reference.right, reference.wrong} in ({"il", "elle"}, {"ils", "elles"})
        assert tokenize(pair.french, elision=True)[reference.answer] == reference.right
        # the other noun occurs as well: without the adjective, either of them is a possible antecedent
        assert sum(base_form(word) in genders for word in english) == 2
    for gender in ("m", "f"):
        assert sum(pair.reference.gender == gender for pair in ambiguous) > len(ambiguous) / 3


def test_the_sense_of_bank(pairs):
    """The deciding words belong to one sense, and the French side has the word of this sense."""
    ambiguous = of_family(pairs, "bank")
    for pair in ambiguous:
        reference, english = pair.reference, pair.english.split()
        french = tokenize(pair.french, elision=True)
        assert english[reference.word] == "bank"
        assert reference.deciders
        assert reference.word not in reference.deciders
        assert french[reference.answer] == reference.right
        assert {reference.right, reference.wrong} == {"rive", "banque"}
        assert reference.wrong not in french
    assert 0.4 < sum(pair.reference.right == "rive" for pair in ambiguous) / len(ambiguous) < 0.6


FAMOUS = {
    "the animal didn't cross the street because it was too tired": (
        "l'animal n'a pas traversé la rue parce qu'il était trop fatigué"
    ),
    "the animal didn't cross the street because it was too wide": (
        "l'animal n'a pas traversé la rue parce qu'elle était trop large"
    ),
    "i arrived at the bank after crossing the river": (
        "je suis arrivé à la rive après avoir traversé la rivière"
    ),
    "i arrived at the bank after crossing the road to get some money": (
        "je suis arrivé à la banque après avoir traversé la route pour retirer de l'argent"
    ),
}


def famous_and_held_out(corpus):
    return {pair.english: pair.french for pair in corpus.test if pair.english in FAMOUS}


def test_the_famous_sentences_are_held_out(corpus):
    assert famous_and_held_out(corpus) == FAMOUS


def test_a_seed_always_gives_the_same_corpus_which_is_made_once(corpus):
    assert builtin_corpus(seed=0) is corpus
    text = "\n".join(f"{pair.english}\t{pair.french}" for part in corpus for pair in part)
    # neither Python's version nor its string hashes may change it; a change of the grammar does change it
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "06e6248a74d7e2fe"


def test_the_probes_are_known_words_in_unknown_sentences(corpus):
    """probes.txt is read by hand: its sentences measure how far a model gets outside the corpus."""
    lines = (Path(__file__).parent / "probes.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if not line.startswith("#")]
    known_words = {word for pair in corpus.train for word in tokenize(pair.english)}
    sentences = {pair.english for part in corpus for pair in part}
    rights = {pair.reference.right for pair in corpus.train if pair.reference}
    assert len(rows) >= 60
    for _, english, right in rows:
        assert set(english.split()) <= known_words, english
        assert english not in sentences
        assert right in rights
