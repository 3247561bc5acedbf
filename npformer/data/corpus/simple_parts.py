"""The parts of simple sentences: subjects, objects, places, and the adjectives that fit each noun."""

from random import Random

from npformer.data.corpus import lexicon
from npformer.data.corpus.draws import chance, pick
from npformer.data.corpus.entries import Adjective, Noun
from npformer.data.corpus.phrases import (
    HE,
    OWNERS,
    SHE,
    THEY,
    WE,
    Form,
    I,
    NounPhrase,
    Phrase,
    Tense,
    noun_phrase,
    words,
)

_ALL_NOUNS = (
    lexicon.PEOPLE
    | lexicon.ANIMALS
    | lexicon.MACHINES
    | lexicon.GROUNDS
    | lexicon.BUILDINGS
    | lexicon.THINGS
    | lexicon.FOOD
    | lexicon.DRINKS
)

# The adjectives that fit all nouns of a table of the lexicon, and those of single nouns, which replace them.
# "un vieux garçon" is a bachelor, "un grand homme" a great man, so that the boy is not old and the man not
# big.
_FITTING = """
    PEOPLE                  : young old
    boy girl                : small young
    woman                   : young old beautiful
    brother sister          : small big
    doctor                  : young old new
    ANIMALS                 : small beautiful old young black white
    animal dog horse donkey : big small beautiful old young black white
    cow                     : big beautiful old young black white
    MACHINES                : big small beautiful old new red white black
    GROUNDS                 : big small beautiful
    street road             : long small beautiful old new
    bridge                  : long small beautiful old new big
    avenue                  : long beautiful big
    path                    : long small beautiful old
    river beach             : long small beautiful big
    wall                    : long small old new white
    garden                  : big small beautiful old new
    BUILDINGS               : big small beautiful old new
    house                   : big small beautiful old new red white black
    village town            : big small beautiful old
    THINGS                  : big small beautiful old new red white black
    key                     : big small old new
    letter                  : long beautiful old
    flower                  : big small beautiful red white black
    tree                    : big small beautiful old
"""


def _fitting() -> dict[str, tuple[Adjective, ...]]:
    """Return the adjectives that fit each noun."""
    fitting: dict[str, tuple[Adjective, ...]] = {}
    for line in _FITTING.strip().splitlines():
        names, adjectives = line.split(":")
        fits = tuple(lexicon.QUALITIES[name] for name in adjectives.split())
        for name in names.split():
            fitting |= dict.fromkeys(getattr(lexicon, name) if name.isupper() else (name,), fits)
    return fitting


FITTING = _fitting()


def _named(names: str) -> tuple[Noun, ...]:
    """Return the nouns of these names."""
    return tuple(_ALL_NOUNS[name] for name in names.split())


# Women and girls twice as often, for the feminine plurals that only they bring: elles sont allées.
_PEOPLE = _named("man woman woman boy girl girl brother sister doctor")
_ANY_ANIMAL = tuple(lexicon.ANIMALS.values())
_ANY_MACHINE = tuple(lexicon.MACHINES.values())
_ANY_BUILDING = tuple(lexicon.BUILDINGS.values())
_ANY_THING = tuple(lexicon.THINGS.values())
_ANY_GROUND = tuple(lexicon.GROUNDS.values())
_ANYTHING = _ANY_ANIMAL + _ANY_MACHINE + _ANY_BUILDING + _ANY_THING + _ANY_GROUND
SEEN = _ANYTHING + _named("man woman boy girl doctor")
_PETS = _named("dog cat horse rabbit donkey cow goat hen goose turtle")
OWNED = _ANY_MACHINE + _ANY_THING + _PETS + _named("house garden")
LOST = _named("key book letter hat dog cat horse rabbit donkey cow goat turtle boat robot")

# The objects that fit each verb.
OBJECTS: dict[str, tuple[Noun, ...]] = {
    "see": SEEN,
    "find": LOST + _named("flower hotel station market path bridge tunnel cave beach owl frog mouse"),
    "look for": LOST + _named("hotel station hospital school market doctor man woman"),
    "buy": OWNED,
    "eat": tuple(lexicon.FOOD.values()),
    "drink": tuple(lexicon.DRINKS.values()),
}

# The places that fit each verb of movement.
PLACES: dict[str, tuple[Noun, ...]] = {
    "cross": _named("bridge field garden park stream lake street road river forest square beach courtyard"),
    "avoid": _named("path tunnel bridge street road forest square river hill village market"),
    "leave": _named("park garden beach forest cave village town house hotel hospital"),
    "enter": _named("garden park forest cave tunnel courtyard house station hotel"),
    "follow": _named("path street road river stream avenue"),
    "climb": _named("wall rock hill mountain fence tree"),
    "walk to": _named("bridge lake river forest beach station market village school square"),
    "run to": _named("bridge lake river forest beach station market house school door"),
    "wait near": _named("bridge fence wall door house station hotel school tree lake"),
    "reach": _named("bridge lake river forest beach station hotel village town hill mountain"),
    "take": _named("boat book key letter hat flower"),
}
MACHINE_VERBS = ("cross", "avoid", "follow", "reach", "leave")

MASS = OBJECTS["eat"] + OBJECTS["drink"]

# English preposition, French preposition, and the places that they go with.
_OUTSIDE = (
    ("in", "dans", _named("garden field park forest street courtyard town village")),
    ("on", "sur", _named("bridge beach road square hill mountain path avenue")),
    ("behind", "derrière", _named("house tree wall school hill fence hotel station rock truck market")),
    ("in front of", "devant", _named("house school station hotel hospital market cave car tunnel tractor")),
    ("near", "près de", _ANY_BUILDING + _ANY_GROUND),
)
_FOR_SMALL_ONES = (
    ("in", "dans", _named("house car hotel cave tunnel boat truck")),
    ("on", "sur", _named("table rock wall boat")),
    ("under", "sous", _named("table tree bridge boat car window")),
    ("behind", "derrière", _named("door window table")),
    ("near", "près de", _named("tree door window table boat fence")),
)
_SMALL = _named("key book letter hat flower cat mouse hen frog ant hedgehog rabbit turtle owl goose dog")
PLACED = _SMALL + _ANY_ANIMAL + _ANY_MACHINE + _named("boat tree table")
DESTINATIONS = _named("school hospital market station hotel village park beach river lake mountain")


def either_tense(rng: Random) -> Tense:
    """Draw the present or the past."""
    return pick(rng, ("present", "present", "past"))


def either_form(rng: Random, negative: float) -> Form:
    """Draw the present or the past, with a negation with this probability."""
    return Form(either_tense(rng), negative=chance(rng, negative))


def adjectives(rng: Random, noun: Noun, probability: float = 0.4) -> tuple[Adjective, ...]:
    """Draw no, one or, rarely, two adjectives that fit a noun: one on each side of the French noun.

    Args:
        rng: The generator of the choices.
        noun: The noun.
        probability: The probability of an adjective.
    """
    fitting = FITTING.get(noun.english, ())
    if not fitting or not chance(rng, probability):
        return ()
    # new and red fit few nouns, and so come up three times as often
    first = pick(rng, fitting + 2 * tuple(a for a in fitting if a.english in ("new", "red")))
    colours = tuple(a for a in fitting if not a.before)
    if first.before and colours and chance(rng, 0.15):
        return (first, pick(rng, colours))
    return (first,)


def person(rng: Random) -> NounPhrase:
    """Draw a person: i, she, the old man, my sister, these girls."""
    if chance(rng, 0.6):
        # the French verb forms after i and we have no other subjects, so these two are drawn more often
        return pick(rng, (I, I, HE, SHE, WE, WE, WE, THEY))
    noun = pick(rng, _PEOPLE)
    if noun.english in ("brother", "sister"):
        return noun_phrase(pick(rng, ("my", "our", "their")), noun, *adjectives(rng, noun, 0.2))
    if noun.english == "doctor":
        return noun_phrase(pick(rng, ("the", "this", "my", "our", "their")), noun, *adjectives(rng, noun))
    plural = chance(rng, 0.6)
    determiner = pick(rng, ("the", "the", "these" if plural else "this"))
    return noun_phrase(determiner, noun, *adjectives(rng, noun, 0.25), plural=plural)


def owners(who: NounPhrase) -> tuple[str, ...]:
    """Return the possessives that may follow a subject. his and her only refer to it: both are son or sa."""
    everyone = ("my", "our", "their")
    if who.person != "he":
        return everyone
    return (*everyone, *(OWNERS["he" if who.gender == "m" else "she"],) * 6)


def definite(
    rng: Random, noun: Noun, possessives: tuple[str, ...] = (), probability: float = 0.4
) -> NounPhrase:
    """Draw a definite noun phrase: the cat, this old car, these keys, my school.

    Args:
        rng: The generator of the choices.
        noun: The noun.
        possessives: The possessives that may be used.
        probability: The probability of an adjective.
    """
    plural = noun.counted and chance(rng, 0.45)
    determiners = ["the", "the", "these" if plural else "this"]
    if possessives and noun in OWNED + LOST + _named("school"):
        determiners += [pick(rng, possessives)] * 3
    return noun_phrase(pick(rng, determiners), noun, *adjectives(rng, noun, probability), plural=plural)


def indefinite(rng: Random, noun: Noun, *, negative: bool = False) -> NounPhrase:
    """Draw an indefinite noun phrase: a cat, two cats, some bread; after a negation, any cats, any bread.

    Args:
        rng: The generator of the choices.
        noun: The noun.
        negative: The phrase follows a negation.
    """
    if noun in MASS:
        return noun_phrase("any" if negative else "some", noun, counted=False)
    if noun.counted and chance(rng, 0.45):
        several = "any" if negative else pick(rng, ("some", "two", "three", "five", "ten"))
        return noun_phrase(several, noun, *adjectives(rng, noun), plural=True)
    return noun_phrase("a-none" if negative else "a", noun, *adjectives(rng, noun))


def somewhere(rng: Random, what: Noun | None = None) -> Phrase:
    """Return a place for a thing or, without one, for a person: under the table, près de la gare."""
    small = what in _SMALL and chance(rng, 0.7)
    in_english, in_french, nouns = pick(rng, _FOR_SMALL_ONES if small else _OUTSIDE)
    noun = pick(rng, nouns)
    if noun == what:
        return somewhere(rng, what)
    return words(in_english, in_french) + noun_phrase("the", noun, *adjectives(rng, noun, 0.15))
