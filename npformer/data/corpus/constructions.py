"""Constructions that sentences of several families have in common: verb forms, and what surrounds a sentence.

A sentence is composed of constructions. An axis is a list of constructions that exclude each other, such as
the verb forms. The basic case of an axis, such as the past tense, has no name of its own: only what departs
from it counts as a construction. All constructions of a sentence together are its **frame**.
"""

from collections.abc import Sequence
from random import Random

from npformer.data.corpus.draws import chance, pick
from npformer.data.corpus.lexicon import MODALS, PEOPLE, TRADES, VERBS_OF_SPEECH
from npformer.data.corpus.phrases import (
    HE,
    NOTHING,
    PAST,
    PRESENT,
    SHE,
    WE,
    Form,
    I,
    NounPhrase,
    Phrase,
    Tense,
    noun_phrase,
    words,
)

# the forms of the verb by their names; "" is the simple past
FORMS = {
    "": PAST,
    "present": PRESENT,
    "want": Form(modal=MODALS["want to"]),
    "going to": Form("present", MODALS["be going to"]),
    "had to": Form(modal=MODALS["have to"]),
    "couldn't": Form(modal=MODALS["can"], negative=True),
    "try": Form(modal=MODALS["try to"]),
    "didn't": Form(negative=True),
}

# What surrounds a sentence
WRAPPERS = ("day", "think", "said", "question")

_DAYS = {
    "past": (words("yesterday", "hier"), words("yesterday", "hier"), words("this morning", "ce matin")),
    "present": (words("today", "aujourd'hui"),),
}
_THINKERS = (I, I, WE, WE, HE, SHE)
_SPEAKERS = tuple(
    noun_phrase("the", noun)
    for noun in (*(PEOPLE[name] for name in ("man", "woman", "boy", "girl", "doctor")), *TRADES.values())
)
_FAMILY = tuple(noun_phrase("my", PEOPLE[name]) for name in ("brother", "sister"))


def somebody(rng: Random) -> NounPhrase:
    """Draw a person who is neither animal nor machine: the girl, my brother."""
    return pick(rng, _FAMILY) if chance(rng, 0.2) else pick(rng, _SPEAKERS)


def wrapper(rng: Random, name: str, tense: Tense, speakers: Sequence[NounPhrase] = ()) -> Phrase:
    """Draw the words before a sentence: yesterday, "i think that" or "the girl said that".

    Args:
        rng: The generator of the choices.
        name: One of WRAPPERS, or "" for none. A question has no words before it.
        tense: The tense of the sentence.
        speakers: Those who may speak. By default, everybody.
    """
    if name == "day":
        return pick(rng, _DAYS[tense])
    if name == "think":
        who = pick(rng, _THINKERS)
        verb = VERBS_OF_SPEECH[pick(rng, ("think that", "think that", "know that"))]
        return who.clause(verb, PRESENT)
    if name == "said":
        who = pick(rng, speakers) if speakers else pick(rng, (HE, SHE)) if chance(rng, 0.3) else somebody(rng)
        return who.clause(VERBS_OF_SPEECH["say that"], PAST)
    return NOTHING


def frame(*constructions: str) -> tuple[str, ...]:
    """Return the names of the constructions, without the basic cases."""
    return tuple(name for name in constructions if name)
