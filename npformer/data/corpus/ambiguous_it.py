"""Sentences such as "the animal didn't cross the street because it was too tired", where `it` is il or elle.

Two nouns come before or after `it`. The adjective alone decides between them: adjectives of ANIMAL_STATES and
MACHINE_STATES never describe a street or a field, and those of PLACE_STATES never an animal or a machine.
So the translator must find the noun that the adjective fits, and know its French gender. With plurals, `they`
is ils or elles. Where one of the two nouns is plural, the number decides as well.

A sentence is composed of constructions from five axes:

    connective   because; since; but: "the animal wanted to cross the street but it was too wide"; and reasons
                 that come first: "as it was too tired the animal didn't cross the street"
    wrapper      yesterday; "i think that ..."; "the girl said that ..."; a question (see constructions.py)
    distractor   words that name what `it` cannot stand for: a person, or buildings of the other number
    number       which of the two nouns are plural
    form         the form of the verb: "avoids", "couldn't cross", "is going to avoid"
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from npformer.data.corpus import lexicon
from npformer.data.corpus.constructions import FORMS, WRAPPERS, frame, somebody, wrapper
from npformer.data.corpus.draws import chance, pick
from npformer.data.corpus.entries import Adjective, Noun, Verb, table_rows
from npformer.data.corpus.lexicon import VERBS
from npformer.data.corpus.pairs import Pair, Reference
from npformer.data.corpus.phrases import (
    AS,
    BECAUSE,
    BUT,
    NOTHING,
    PAST,
    PRESENT,
    SINCE,
    SO,
    TOO,
    VERY,
    NounPhrase,
    Phrase,
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
    negative: bool  # "didn't cross", not "avoided"
    animal_states: tuple[str, ...]
    places: dict[str, tuple[str, ...]]  # for each adjective, the places it fits
    by_machines: bool


# The verb, whether it is negated, who acts, and the adjectives that explain why an animal does so; below, the
# adjectives of a place that explain it, and the places that they fit.
_ACTIONS = """
    cross | didn't | anyone | tired hungry scared ill injured young shy nervous lazy cautious slow
        wide     : street road river field stream avenue square lake
        long     : bridge tunnel beach
        narrow   : bridge tunnel
        deep     : river stream lake
        high     : bridge
        deserted : forest park beach square street
        slippery : bridge road street square
        flooded  : street road field garden park tunnel courtyard square avenue
        crowded  : street square beach park avenue bridge
        closed   : bridge park garden tunnel road street avenue
    avoid | did | anyone | tired scared ill injured young shy nervous cautious
        narrow   : bridge path tunnel street
        long     : path road tunnel
        steep    : path street road hill
        deserted : forest tunnel park street path beach
        slippery : bridge road street path rock
        flooded  : street road field garden park tunnel path cave
        crowded  : street square beach park avenue bridge courtyard
    leave | did | animals | hungry scared nervous shy ill
        deserted : beach park courtyard square cave forest
        flooded  : field garden park cave courtyard square beach tunnel
        crowded  : square beach park courtyard garden street
        narrow   : cave tunnel path
    enter | didn't | anyone | tired scared ill injured young shy nervous lazy cautious
        deserted : forest tunnel cave park courtyard
        deep     : river lake stream cave
        narrow   : tunnel cave courtyard
        flooded  : garden park tunnel cave field courtyard
        crowded  : park courtyard garden
        closed   : park garden tunnel courtyard
    follow | didn't | anyone | tired hungry scared ill injured young nervous lazy cautious slow
        narrow   : path street stream
        long     : path road street river stream avenue
        steep    : path street road
        deserted : path street avenue
        slippery : path road street
        flooded  : path road street avenue
        crowded  : street avenue path
        closed   : path road street avenue
    climb | didn't | animals | tired hungry scared ill injured young nervous lazy cautious slow
        high     : wall rock hill mountain fence
        steep    : rock hill mountain
        slippery : wall rock hill
"""


def _read_actions() -> tuple[Action, ...]:
    """Return the actions of the table."""
    actions: list[Action] = []
    for line in _ACTIONS.strip().splitlines():
        if "|" in line:
            ((verb, did, who, states),) = table_rows(line)
            action = Action(lexicon.VERBS[verb], did == "didn't", tuple(states.split()), {}, who == "anyone")
            actions.append(action)
        else:
            adjective, nouns = line.split(":")
            actions[-1].places[adjective.strip()] = tuple(nouns.split())
    return tuple(actions)


ACTIONS = _read_actions()

_LONGEST = 18  # English words

# The first action is drawn three times as often and "follow" twice, so that every place and adjective occurs
# in enough sentences.
_OFTEN = (ACTIONS[0],) * 3 + ACTIONS[1:] + (ACTIONS[4],)
_ANIMALS = tuple(lexicon.ANIMALS.values())
_MACHINES = tuple(lexicon.MACHINES.values())
_LOOKS = tuple(lexicon.QUALITIES[name] for name in ("small", "black", "white"))

# The basic case "because" is not in the list.
CONNECTIVES = ("since", "but", "because first", "since first", "as first")
_CONNECTIVE_WORDS = {"": BECAUSE, "since": SINCE, "but": BUT, "because": BECAUSE, "as": AS}
DISTRACTORS = ("of subject", "that saw", "that is liked", "subject near", "place near")
NUMBERS = ("both plural", "subject plural", "place plural")
IT_FORMS = ("present", "want", "going to", "had to", "couldn't", "try")

# The constructions of each axis.
IT_AXES = {
    "connective": CONNECTIVES,
    "wrapper": WRAPPERS,
    "distractor": DISTRACTORS,
    "number": NUMBERS,
    "form": IT_FORMS,
}


def it_compatible(one: str, other: str) -> bool:
    """Return whether a sentence may have both constructions, which come from different axes."""
    both = {one, other}
    if "question" in both and both & {"but", "because first", "since first", "as first", "try"}:
        return False
    if "but" in both:  # "wanted to cross the street but": the verb names what did not happen
        return not both & {"present", "going to", "had to", "couldn't"}
    # what somebody tried has no reason that explains why it did not happen
    return not ("try" in both and both & set(CONNECTIVES))


@dataclass(frozen=True)
class _Choices:
    """The constructions of a sentence, each "" in the basic case."""

    connective: str = ""
    wrapper: str = ""
    distractor: str = ""
    number: str = ""
    form: str = ""


def _draw_choices(rng: Random, action: Action, machine: bool) -> _Choices:
    """Draw the constructions of a sentence, so that they go together and with the action."""
    connective = pick(rng, CONNECTIVES) if chance(rng, 0.6) else ""
    if connective == "but" and not action.negative:
        connective = "because first"
    if connective == "but":
        form = "try" if machine or chance(rng, 0.4) else "want"
    else:
        forms = ("present", "going to", "couldn't" if action.negative else "had to")
        form = pick(rng, forms if machine else (*forms, "want")) if chance(rng, 0.55) else ""
    around = WRAPPERS if connective in ("", "since") else WRAPPERS[:-1]
    wrapped = pick(rng, around) if chance(rng, 0.5) else ""
    distractor = pick(rng, DISTRACTORS) if chance(rng, 0.5) else ""
    if machine and distractor == "that saw":
        distractor = "that is liked"
    return _Choices(connective, wrapped, distractor, pick(rng, NUMBERS) if chance(rng, 0.5) else "", form)


def draw_it(rng: Random) -> Pair:
    """Draw a sentence in which `it` refers to the subject or to the place, with the same probability."""
    action = pick(rng, _OFTEN)
    subject = pick(rng, _MACHINES if action.by_machines and chance(rng, 0.3) else _ANIMALS)
    # the place is drawn with an adjective that fits it, even if `it` then refers to the subject
    place_state = pick(rng, _place_states(action, subject))
    place = lexicon.GROUNDS[pick(rng, action.places[place_state])]
    of_subject = chance(rng, 0.5)
    if of_subject:
        adjective, other = pick(rng, _subject_states(action, subject)), place
    else:
        adjective, other = lexicon.PLACE_STATES[place_state], subject
    choices = _draw_choices(rng, action, subject.english in lexicon.MACHINES)
    if (adjective.english, other.english) in _COULD_BE_EITHER or not _have_plurals(choices, subject, place):
        return draw_it(rng)
    degree = NOTHING if adjective.english in lexicon.WITHOUT_DEGREE else pick(rng, (TOO, TOO, SO, VERY))
    looks = (pick(rng, _LOOKS),) if chance(rng, 0.1) else ()
    pair = _sentence(rng, action, (subject, place), of_subject, adjective, degree, choices, looks)
    return pair if len(pair.english.split()) <= _LONGEST else draw_it(rng)


def famous_it() -> tuple[Pair, Pair]:
    """Return the two sentences by which this ambiguity is usually explained."""
    nouns = (lexicon.ANIMALS["animal"], lexicon.GROUNDS["street"])
    tired, wide = lexicon.ANIMAL_STATES["tired"], lexicon.PLACE_STATES["wide"]
    crosses, basic, rng = ACTIONS[0], _Choices(), Random(0)  # basic constructions draw nothing
    return (
        _sentence(rng, crosses, nouns, True, tired, TOO, basic),
        _sentence(rng, crosses, nouns, False, wide, TOO, basic),
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


def _have_plurals(choices: _Choices, subject: Noun, place: Noun) -> bool:
    """Return whether sentences may use the plurals that the choices need."""
    need_subject = choices.number in ("both plural", "subject plural")
    need_place = choices.number in ("both plural", "place plural")
    return (subject.counted or not need_subject) and (place.counted or not need_place)


def _sentence(
    rng: Random,
    action: Action,
    nouns: tuple[Noun, Noun],
    of_subject: bool,
    adjective: Adjective,
    degree: Phrase,
    choices: _Choices,
    looks: Sequence[Adjective] = (),
) -> Pair:
    """Return a sentence that gives an adjective of `it` as the reason for an action.

    Args:
        rng: The generator of the choices within the constructions.
        action: The action.
        nouns: The subject and the place.
        of_subject: `it` refers to the subject, not to the place.
        adjective: The adjective of `it`.
        degree: A word such as too, or nothing.
        choices: The constructions.
        looks: An adjective of the subject, or none.
    """
    form = FORMS[choices.form]
    plurals = (
        choices.number in ("both plural", "subject plural"),
        choices.number in ("both plural", "place plural"),
    )
    subject, place = (
        noun_phrase("the", noun, plural=many) for noun, many in zip(nouns, plurals, strict=True)
    )
    if looks:
        subject = noun_phrase("the", nouns[0], *looks, plural=plurals[0])
    antecedent, many = (nouns[0], plurals[0]) if of_subject else (nouns[1], plurals[1])
    pronoun = it_for(antecedent, plural=many)
    subject, place = _with_distractor(rng, choices.distractor, subject, place, many)

    before = wrapper(rng, choices.wrapper, form.tense)
    connective = _CONNECTIVE_WORDS[choices.connective.removesuffix(" first")]
    negative = form.negative or (action.negative and choices.connective != "but")
    form = replace(form, negative=negative, question=choices.wrapper == "question")
    did = subject.clause(action.verb, form)
    reason = is_adjective(pronoun, form.tense, adjective, degree)
    if choices.connective.endswith(" first"):
        before, after = before + connective, did + place
    else:
        before, after = before + did + place + connective, NOTHING
    constructions = frame(*(getattr(choices, axis) for axis in IT_AXES))
    return _with_reference(before, reason, after, antecedent, pronoun, constructions)


def _with_distractor(
    rng: Random, name: str, subject: NounPhrase, place: NounPhrase, plural_pronoun: bool
) -> tuple[NounPhrase, NounPhrase]:
    """Return the subject and the place, one of them with a modifier that contains another noun.

    The other noun is a person, or a building whose number differs from that of the pronoun, so that the
    pronoun cannot stand for it.
    """
    if name in ("subject near", "place near"):
        in_english, in_french = pick(rng, (("near", "près de"), ("behind", "derrière")))
        building = lexicon.BUILDINGS[pick(rng, ("house", "school", "hotel", "station"))]
        near = words(in_english, in_french) + noun_phrase("the", building, plural=not plural_pronoun)
        return (subject.modified(near), place) if name == "subject near" else (subject, place.modified(near))
    person = somebody(rng)
    if name == "of subject":
        return subject.modified(words("of", "de") + person), place
    if name == "that saw":
        saw = subject.conjugate(VERBS["see"], PAST)
        return subject.modified(words("that", "qui") + saw + person), place
    if name == "that is liked":
        verb = VERBS[pick(rng, ("like", "look for"))]
        return subject.modified(words("that", "que") + person.clause(verb, PRESENT)), place
    return subject, place


def _with_reference(
    before: Phrase,
    reason: Phrase,
    after: Phrase,
    antecedent: Noun,
    pronoun: NounPhrase,
    constructions: tuple[str, ...],
) -> Pair:
    """Return the pair, with the places of the pronoun, of its antecedent, and of the adjective."""
    english, french = (before + reason + after).join()
    in_english = english.split()
    (right,) = pronoun.french
    wrong = {"il": "elle", "elle": "il", "ils": "elles", "elles": "ils"}[right]
    antecedent_form = noun_phrase("", antecedent, plural=pronoun.number == "plural").english[-1]
    reference = Reference(
        word=len(before.english),
        deciders=(len(before.english + reason.english) - 1,),  # the adjective ends the reason
        right=right,
        wrong=wrong,
        # elision and contraction before the pronoun do not depend on what follows it
        answer=len(tokenize((before + pronoun).join()[1], elision=True)) - 1,
        antecedent=in_english.index(antecedent_form),
        gender=antecedent.gender,
    )
    return Pair(english, french, "it", reference, constructions)
