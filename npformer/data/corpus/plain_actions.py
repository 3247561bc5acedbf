"""Plain sentences about what someone does, likes, has, or gives thanks for."""

from random import Random

from npformer.data.corpus import lexicon
from npformer.data.corpus.draws import chance, pick
from npformer.data.corpus.entries import Adjective
from npformer.data.corpus.lexicon import QUALITIES, VERBS
from npformer.data.corpus.phrases import (
    NOTHING,
    TOO,
    VERY,
    WE,
    I,
    Phrase,
    be,
    conjugate,
    noun_phrase,
    predicate,
    words,
)
from npformer.data.corpus.plain_parts import (
    DESTINATIONS,
    MASS,
    OBJECTS,
    OWNED,
    SEEN,
    adjectives,
    definite,
    either_tense,
    indefinite,
    owners,
    person,
    somewhere,
)

_THINKING = Adjective("thinking", "pensant")
_THINKERS = (lexicon.MACHINES["machine"], lexicon.MACHINES["machine"], lexicon.MACHINES["robot"])
# Which animals eat or drink what.
_EATERS = {
    "meat": ("dog", "cat", "animal", "owl"),
    "cheese": ("mouse", "dog", "animal", "goat", "ant"),
    "bread": ("hen", "goose", "mouse", "ant", "donkey", "dog"),
    "milk": ("cat", "dog", "hedgehog", "animal", "goat"),
    "water": tuple(lexicon.ANIMALS),
}


def action(rng: Random) -> Phrase:
    """The girl didn't find my key; she drinks some water."""
    verb = pick(rng, ("see", "find", "look for", "buy", "eat", "eat", "drink", "drink"))
    who = person(rng)
    noun = pick(rng, OBJECTS[verb])
    if noun.english in _EATERS and chance(rng, 0.5):
        who = definite(rng, lexicon.ANIMALS[pick(rng, _EATERS[noun.english])])
    elif noun in MASS and chance(rng, 0.3):
        who = pick(rng, (I, WE))  # the only subjects of "bois" and "buvons"
    negative = chance(rng, 0.25)
    if chance(rng, 0.55):
        what: Phrase = definite(rng, noun, owners(who))
    else:
        what = indefinite(rng, noun, negative=negative)
    if noun in MASS and chance(rng, 0.4):
        what += somewhere(rng)
    sentence = who + conjugate(who, VERBS[verb], tense := either_tense(rng), negative=negative) + what
    return words("yesterday", "hier") + sentence if tense == "past" and chance(rng, 0.1) else sentence


def liking(rng: Random) -> Phrase:
    """I like small cats; she doesn't like bread. Never "the cats": French could not tell it from "cats"."""
    who = person(rng)
    noun = pick(rng, SEEN + MASS * 2)
    if noun in MASS:
        what = noun_phrase("", noun)
    elif noun in OWNED and chance(rng, 0.4):
        many = noun.counted and chance(rng, 0.6)
        what = noun_phrase(pick(rng, owners(who)), noun, *adjectives(rng, noun), plural=many)
    elif noun.counted and chance(rng, 0.6):
        what = noun_phrase("", noun, *adjectives(rng, noun), plural=True)
    else:
        what = noun_phrase(pick(rng, ("the", "this")), noun, *adjectives(rng, noun))
    return who + conjugate(who, VERBS["like"], "present", negative=chance(rng, 0.3)) + what


def having(rng: Random) -> Phrase:
    """She has two black cats; we don't have any boats."""
    who = person(rng)
    negative = chance(rng, 0.3)
    what = indefinite(rng, pick(rng, OWNED), negative=negative)
    return who + conjugate(who, VERBS["have"], "present", negative=negative) + what


def going(rng: Random) -> Phrase:
    """She went to the market; the boys didn't arrive at the station."""
    # i and we are the only subjects of their verb forms
    who = pick(rng, (I, WE)) if chance(rng, 0.15) else person(rng)
    verb = VERBS[pick(rng, ("go to", "arrive at", "stay near"))]
    where = pick(rng, DESTINATIONS)
    place = noun_phrase("the", where, *adjectives(rng, where, 0.15))
    sentence = who + conjugate(who, verb, tense := either_tense(rng), negative=chance(rng, 0.25)) + place
    return words("yesterday", "hier") + sentence if tense == "past" and chance(rng, 0.15) else sentence


def thanks(rng: Random) -> Phrase:
    """Thanks for the bread."""
    noun = pick(rng, OWNED + MASS)
    return words("thanks for", "merci pour") + definite(rng, noun)


def thinking(rng: Random) -> Phrase:
    """We like thinking machines; this thinking robot is old."""
    noun = pick(rng, _THINKERS)
    many = noun.counted and chance(rng, 0.5)
    if chance(rng, 0.5):
        who = person(rng)
        verb = conjugate(who, VERBS["like"], "present", negative=chance(rng, 0.3))
        determiner = "" if many else pick(rng, ("the", "this"))
        return who + verb + noun_phrase(determiner, noun, _THINKING, plural=many)
    determiner = pick(rng, ("the", "these" if many else "this", pick(rng, ("my", "our", "their"))))
    what = noun_phrase(determiner, noun, _THINKING, plural=many)
    quality = pick(rng, tuple(QUALITIES[name] for name in ("big", "small", "old", "beautiful")))
    return what + be(what, either_tense(rng)) + predicate(what, quality, pick(rng, (NOTHING, VERY, TOO)))
