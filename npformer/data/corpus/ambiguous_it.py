"""Sentences such as "the animal didn't cross the street because it was too tired", where `it` is il or elle.

Two nouns come before `it`. The adjective alone decides between them: adjectives of ANIMAL_STATES and
MACHINE_STATES never describe a street or a field, and those of PLACE_STATES never an animal or a machine.
So the translator must find the noun that the adjective fits, and know its French gender.
"""

from dataclasses import dataclass
from random import Random

from npformer.data.corpus import lexicon
from npformer.data.corpus.draws import chance, pick
from npformer.data.corpus.entries import Adjective, Noun, Verb
from npformer.data.corpus.pairs import Pair, Reference
from npformer.data.corpus.phrases import (
    BECAUSE,
    NOTHING,
    SO,
    TOO,
    VERY,
    NounPhrase,
    Phrase,
    Tense,
    conjugate,
    is_adjective,
    it_for,
    noun_phrase,
    words,
)
from npformer.data.tokens import tokenize

# A truck can be wide or long itself, and an engine flooded. So these adjectives do not decide between a
# machine and a place.
_ALSO_OF_MACHINES = frozenset({"wide", "long", "high", "flooded"})

# Pairs of an adjective and a noun that it also fits, although it is meant for the other noun of the sentence.
# No sentence contains such a pair.
_COULD_BE_EITHER = frozenset(
    {("slow", "river"), ("slow", "stream"), ("slow", "lake"), ("young", "forest"), ("slippery", "frog")}
    | {("overloaded", place) for place in ("bridge", "road", "street", "tunnel", "avenue")}
)


@dataclass(frozen=True)
class Action:
    """An action on a place, with the reasons that make sense for it."""

    verb: Verb
    negative: bool
    animal_states: tuple[str, ...]
    places: dict[str, tuple[str, ...]]  # for each adjective, the places it fits
    by_machines: bool = True


def _action(verb: str, negative: bool, states: str, places: str, by_machines: bool = True) -> Action:
    """Read an action from text. Each line of places is an adjective, a colon, and the nouns that it fits."""
    fits = {}
    for line in places.strip().splitlines():
        adjective, nouns = line.split(":")
        fits[adjective.strip()] = tuple(nouns.split())
    return Action(lexicon.VERBS[verb], negative, tuple(states.split()), fits, by_machines)


ACTIONS = (
    _action(
        "cross",
        True,
        "tired hungry scared ill injured young shy nervous lazy cautious slow",
        """
        wide     : street road river field stream avenue square lake
        long     : bridge tunnel beach
        narrow   : bridge tunnel
        deep     : river stream lake
        high     : bridge
        deserted : forest park beach square street
        slippery : bridge road street square
        flooded  : street road field garden park tunnel courtyard square avenue
        crowded  : street square beach park avenue bridge
        closed   : bridge park garden tunnel road
        """,
    ),
    _action(
        "avoid",
        False,
        "tired scared ill injured young shy nervous cautious",
        """
        narrow   : bridge path tunnel street
        long     : path road tunnel
        steep    : path street road hill
        deserted : forest tunnel park street path beach
        slippery : bridge road street path rock
        flooded  : street road field garden park tunnel path cave
        crowded  : street square beach park avenue bridge courtyard
        """,
    ),
    _action(
        "leave",
        False,
        "hungry scared nervous shy ill",
        """
        deserted : beach park courtyard square cave forest
        flooded : field garden park cave courtyard square beach tunnel
        crowded : square beach park courtyard garden street
        narrow  : cave tunnel path
        """,
        by_machines=False,
    ),
    _action(
        "enter",
        True,
        "tired scared ill injured young shy nervous lazy cautious",
        """
        deserted : forest tunnel cave park courtyard
        deep    : river lake stream cave
        narrow  : tunnel cave courtyard
        flooded : garden park tunnel cave field courtyard
        crowded : park courtyard garden
        closed  : park garden tunnel courtyard
        """,
    ),
    _action(
        "follow",
        True,
        "tired hungry scared ill injured young nervous lazy cautious slow",
        """
        narrow   : path street stream
        long     : path road street river stream avenue
        steep    : path street road
        deserted : path street avenue
        slippery : path road street
        flooded  : path road street avenue
        crowded  : street avenue path
        closed   : path road street avenue
        """,
    ),
    _action(
        "climb",
        True,
        "tired hungry scared ill injured young nervous lazy cautious slow",
        """
        high     : wall rock hill mountain fence
        steep    : rock hill mountain
        slippery : wall rock hill
        """,
        by_machines=False,
    ),
)

# The first action is drawn three times as often, so that every place occurs in enough sentences.
_OFTEN = (ACTIONS[0],) * 3 + ACTIONS[1:]
_ANIMALS = tuple(lexicon.ANIMALS.values())
_SUBJECTS = _ANIMALS + _ANIMALS + tuple(lexicon.MACHINES.values())
_LOOKS = tuple(lexicon.QUALITIES[name] for name in ("small", "black", "white"))


def draw_it(rng: Random) -> Pair:
    """Draw a sentence in which `it` refers to the subject or to the place, with the same probability."""
    action = pick(rng, _OFTEN)
    subject = pick(rng, _SUBJECTS if action.by_machines else _ANIMALS)
    # the place is drawn with an adjective that fits it, even if `it` then refers to the subject
    place_state = pick(rng, _place_states(action, subject))
    place = lexicon.GROUNDS[pick(rng, action.places[place_state])]
    if chance(rng, 0.5):
        adjective, antecedent, other = pick(rng, _subject_states(action, subject)), subject, place
    else:
        adjective, antecedent, other = lexicon.PLACE_STATES[place_state], place, subject
    if (adjective.english, other.english) in _COULD_BE_EITHER:
        return draw_it(rng)
    tense: Tense = "past" if chance(rng, 0.75) else "present"
    return _sentence(
        action,
        noun_phrase("the", subject, *((pick(rng, _LOOKS),) if chance(rng, 0.15) else ())),
        place,
        adjective,
        antecedent,
        tense=tense,
        degree=NOTHING if adjective.english in lexicon.WITHOUT_DEGREE else pick(rng, (TOO, TOO, SO, VERY)),
        when=words("yesterday", "hier") if tense == "past" and chance(rng, 0.12) else NOTHING,
    )


def famous_it() -> tuple[Pair, Pair]:
    """Return the two sentences by which this ambiguity is usually explained."""
    animal, street = lexicon.ANIMALS["animal"], lexicon.GROUNDS["street"]
    crosses, mover = ACTIONS[0], noun_phrase("the", animal)
    return (
        _sentence(crosses, mover, street, lexicon.ANIMAL_STATES["tired"], animal),
        _sentence(crosses, mover, street, lexicon.PLACE_STATES["wide"], street),
    )


def _place_states(action: Action, subject: Noun) -> tuple[str, ...]:
    """Return the adjectives that can describe the place and not the subject."""
    if subject.english in lexicon.MACHINES:
        return tuple(name for name in action.places if name not in _ALSO_OF_MACHINES)
    return tuple(action.places)


def _subject_states(action: Action, subject: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that can describe the subject and not the place."""
    if subject.english in lexicon.MACHINES:
        return tuple(lexicon.MACHINE_STATES.values())
    return tuple(lexicon.ANIMAL_STATES[name] for name in action.animal_states)


def _sentence(
    action: Action,
    mover: NounPhrase,
    place: Noun,
    adjective: Adjective,
    antecedent: Noun,
    *,
    tense: Tense = "past",
    degree: Phrase = TOO,
    when: Phrase = NOTHING,
) -> Pair:
    """Return a sentence that gives an adjective of `it` as the reason for an action."""
    phrase = (
        when
        + mover
        + conjugate(mover, action.verb, tense, negative=action.negative)
        + noun_phrase("the", place)
        + BECAUSE
        + is_adjective(it_for(antecedent), tense, adjective, degree)
    )
    return _with_reference(*phrase.join(), antecedent)


def _with_reference(english: str, french: str, antecedent: Noun) -> Pair:
    """Return the pair, with the places of `it`, of the antecedent, of the adjective, and of il or elle."""
    in_english = english.split()
    right, wrong = ("il", "elle") if antecedent.gender == "m" else ("elle", "il")
    reference = Reference(
        word=in_english.index("it"),
        deciders=(len(in_english) - 1,),  # the adjective ends the sentence
        right=right,
        wrong=wrong,
        answer=tokenize(french, elision=True).index(right),
        antecedent=in_english.index(antecedent.english),
        gender=antecedent.gender,
    )
    return Pair(english, french, "it", reference)
