"""Sentences such as "i arrived at the bank after crossing the river", in which bank is rive, not banque.

Other words of the sentence, the clues, decide between rive (of a river) and banque (of money). There are six
kinds. If the clues of a sentence disagree, the kind that comes first in this list decides:

    owner      i saw the bank of the stream
    purpose    he ran to the bank to cash a cheque
    cause      he waited near the bank because the boat was so slow
    tool       she walked to the bank with her fishing rod; we took our money and we walked to the bank
    person     the fisherman waited near the bank
    crossing   i arrived at the bank after crossing the river

So "the cashier walked to the bank to watch the ducks" is about a rive. A clue may come first, as in "to cash
a cheque he ran to the bank", or in a clause of its own, "he took his money and he ran to the bank". Bridges,
parks and squares fit both senses and do not decide. Neither does a person who only speaks ("the cashier said
that ...") or what only describes the subject ("the woman who saw the cashier ...", "the man from the lake").

Besides its clues, a sentence is composed of constructions from four axes:

    wrapper     yesterday; "i think that ..."; "the cashier said that ..."; a question (see constructions.py)
    form        the form of the verb: "reaches", "didn't reach", "wanted to reach"
    modifier    words that describe the subject: a relative clause, or "from the village"
    middle      words between bank and the clue
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from random import Random
from typing import Literal

from npformer.data.corpus import lexicon
from npformer.data.corpus.bank_clues import BANKS, CLUES, SENSES, Clues, Sense
from npformer.data.corpus.constructions import FORMS, WRAPPERS, frame, wrapper
from npformer.data.corpus.draws import chance, pick, weighted
from npformer.data.corpus.lexicon import PLACE_STATES, VERBS
from npformer.data.corpus.pairs import Pair, Reference
from npformer.data.corpus.phrases import (
    AS,
    BECAUSE,
    HE,
    NOTHING,
    OWNERS,
    PAST,
    PRESENT,
    PRONOUNS,
    SHE,
    SO,
    TOO,
    VERY,
    Form,
    I,
    NounPhrase,
    Phrase,
    is_adjective,
    noun_phrase,
    words,
)
from npformer.data.tokens import tokenize

Kind = Literal["owner", "purpose", "cause", "tool", "person", "crossing"]
PRIORITY: tuple[Kind, ...] = ("owner", "purpose", "cause", "tool", "person", "crossing")

# A clue construction is a kind of clue and its place: after bank, first in the sentence, or before "and".
CLUE_CONSTRUCTIONS = (
    "owner",
    "owner of subject",  # the bank of the river was crowded
    "purpose",
    "purpose first",
    "cause",
    "cause first",
    "tool",
    "tool first",
    "tool and",
    "person",
    "crossing",
    "crossing first",
    "crossing and",
)
BANK_FORMS = ("present", "going to", "want", "had to", "couldn't", "didn't")
MODIFIERS = ("who saw", "who is liked", "who wanted", "who found", "from")
_OFTEN_MODIFIERS = (*MODIFIERS, *MODIFIERS[2:])

# The constructions of each axis.
BANK_AXES = {
    "clue": CLUE_CONSTRUCTIONS,
    "wrapper": WRAPPERS,
    "form": BANK_FORMS,
    "modifier": MODIFIERS,
    "middle": ("middle",),
}

# These may be crossed on the way to either kind of bank, so they do not decide the sense.
_NEUTRAL_GROUNDS = ("bridge", "park", "garden", "field", "square")
_NEUTRAL_PEOPLE = tuple(noun_phrase("the", lexicon.PEOPLE[name]) for name in ("man", "woman", "boy", "girl"))
_CLUE_PEOPLE = tuple(noun_phrase("the", noun) for clues in CLUES.values() for noun in clues.people.values())
_SPEAKERS = (*(person for person in _CLUE_PEOPLE if person.english[-1] != "duck"), *_NEUTRAL_PEOPLE)

_LONGEST = 18  # English words

_WAITING = ("wait near", "stay near")
_MOVING = ("arrive at", "walk to", "run to")
_SEEING = ("see", "look for", "find")


@cache
def kind_of(construction: str) -> Kind:
    """Return the kind of a clue construction: tool for "tool first"."""
    return next(kind for kind in PRIORITY if construction.startswith(kind))


@cache
def bank_compatible(one: str, other: str) -> bool:
    """Return whether a sentence may have both constructions."""
    both = {one, other}
    if both <= set(CLUE_CONSTRUCTIONS):
        kinds = {kind_of(name) for name in both}
        places = [name.split()[-1] for name in both if name.split()[-1] in ("first", "and")]
        return len(kinds) == 2 and "owner of subject" not in both and len(set(places)) == len(places)
    if "owner of subject" in both:
        return both <= {"owner of subject", "present", "didn't", *WRAPPERS[:-1]}
    # the person who acts before "and" is the one who acts after it, and does not want to
    return not (both & {"tool and", "crossing and"} and both & {"question", "couldn't", "didn't"})


@dataclass(frozen=True)
class _Clue:
    """A clue in a sentence: its construction, its sense, its words, and what it adds to the sentence."""

    construction: str
    sense: Sense
    words: tuple[str, ...]  # the English words that decide
    phrase: Phrase = NOTHING

    @property
    def rank(self) -> int:
        """The position of the clue's kind in PRIORITY."""
        return PRIORITY.index(kind_of(self.construction))


def draw_bank(rng: Random) -> Pair:
    """Draw a sentence with bank, in both senses with the same probability."""
    if chance(rng, 0.05):
        return _about_a_bank(rng)
    names = _draw_clue_constructions(rng)
    form, wrapped, modifier, middle = _draw_choices(rng, names)
    decider = min(names, key=lambda name: PRIORITY.index(kind_of(name)))
    sense = pick(rng, SENSES)
    conflict = chance(rng, 0.75)
    senses = {name: sense if name == decider or not conflict else _other(sense) for name in names}
    return _sentence(rng, senses, form, wrapped, modifier, middle) or draw_bank(rng)


def _other(sense: Sense) -> Sense:
    return "banque" if sense == "rive" else "rive"


_ONE_CLUE: tuple[tuple[float, str], ...] = (
    (2.5, "person"),
    (1.5, "crossing"),
    (1.5, "crossing first"),
    (1, "crossing and"),
    (2, "purpose"),
    (1.5, "purpose first"),
    (1.5, "tool"),
    (1, "tool first"),
    (1, "tool and"),
    (1.5, "cause"),
    (1, "cause first"),
    (1.5, "owner"),
)


def _draw_clue_constructions(rng: Random) -> tuple[str, ...]:
    """Draw one or two clue constructions that go together."""
    first = weighted(rng, _ONE_CLUE)
    if chance(rng, 0.35):
        return (first,)
    second = weighted(rng, _ONE_CLUE)
    return (first, second) if bank_compatible(first, second) else _draw_clue_constructions(rng)


def _draw_choices(rng: Random, clues: Sequence[str]) -> tuple[str, str, str, bool]:
    """Draw the form, the wrapper, the modifier and the middle, so that all go together."""
    form = pick(rng, BANK_FORMS) if chance(rng, 0.5) else ""
    wrapped = pick(rng, WRAPPERS) if chance(rng, 0.45) else ""
    modifier = pick(rng, _OFTEN_MODIFIERS) if chance(rng, 0.45) else ""
    middle = chance(rng, 0.2)
    chosen = (*clues, *frame(form, wrapped, modifier, "middle" if middle else ""))
    if all(bank_compatible(one, other) for one, other in combinations(chosen, 2)):
        return form, wrapped, modifier, middle
    return _draw_choices(rng, clues)


def famous_bank() -> tuple[Pair, Pair]:
    """Return the two sentences by which this ambiguity is usually explained."""
    arrived = I.clause(VERBS["arrive at"], PAST)
    over_river = arrived + noun_phrase("the", BANKS["rive"]) + _after_crossing("river")
    over_road = arrived + noun_phrase("the", BANKS["banque"]) + _after_crossing("road")
    money = CLUES["banque"].purposes["money"]
    return (
        _with_reference(over_river, ("river",), "rive", ("crossing",)),
        _with_reference(over_road + money, ("road", "money"), "banque", ("crossing", "purpose")),
    )


def _with_reference(
    phrase: Phrase, deciders: Sequence[str], sense: Sense, constructions: tuple[str, ...]
) -> Pair:
    """Return the pair, with the places of bank, of the words that decide, and of rive or banque."""
    english, french = phrase.join()
    in_english = english.split()
    reference = Reference(
        word=in_english.index("bank"),
        deciders=tuple(in_english.index(word) for word in deciders),
        right=sense,
        wrong=_other(sense),
        answer=tokenize(french, elision=True).index(sense),
    )
    return Pair(english, french, "bank", reference, constructions)


def _sentence(
    rng: Random, senses: dict[str, Sense], form_name: str, wrapped: str, modifier: str, middle: bool
) -> Pair | None:
    """Return a sentence with these constructions, or None if it would be too long or mention a clue twice.

    Args:
        rng: The generator of the choices within the constructions.
        senses: The clue constructions, and the sense to which each of them points.
        form_name: The name of the form of the verb.
        wrapped: The name of the words around the sentence, or "".
        modifier: The name of the words that describe the subject, or "".
        middle: Put words between bank and the clues after it.
    """
    form = FORMS[form_name]
    who, owner = _someone(rng, noun=bool(modifier))
    clues: list[_Clue] = []
    if "person" in senses:
        name = pick(rng, tuple(CLUES[senses["person"]].people))
        who, owner = _named(noun_phrase("the", CLUES[senses["person"]].people[name]))
        clues.append(_Clue("person", senses["person"], (name,)))
    clues += [
        _draw_clue(rng, name, sense, who, owner, form) for name, sense in senses.items() if name != "person"
    ]
    pronoun = who if who in PRONOUNS else HE if who.gender == "m" else SHE

    decisive = min(clues, key=lambda clue: clue.rank)
    subject = _modified(rng, who, owner, modifier, decisive.sense)
    bank = noun_phrase("the", BANKS[decisive.sense])
    by_place = {place: [c for c in clues if c.construction.endswith(place)] for place in ("first", "and")}
    first = wrapper(rng, wrapped, form.tense, _SPEAKERS)
    for clue in by_place["first"]:
        first += clue.phrase
    for clue in by_place["and"]:
        first += subject + clue.phrase + words("and", "et")
        subject = pronoun
    verb = VERBS[pick(rng, _verbs(senses, form))]
    did = subject.clause(verb, replace(form, question=wrapped == "question"))
    after = {clue.construction: clue.phrase for clue in clues}
    phrase = first + did + bank + after.pop("owner", NOTHING)
    if middle:
        phrase += _neutral(rng, beside_similar="tool" in after or "crossing" in after)
    for name in _AFTER:
        phrase += after.get(name, NOTHING)

    deciders = [word for clue in clues if clue.sense == decisive.sense for word in clue.words]
    mentioned = [word for clue in clues for word in clue.words]
    if len(phrase.english) > _LONGEST or any(phrase.english.count(word) > 1 for word in mentioned):
        return None
    middle_name = "middle" if middle else ""
    constructions = (*sorted(senses), *frame(wrapped, form_name, modifier, middle_name))
    return _with_reference(phrase, deciders, decisive.sense, constructions)


# The order of the clues that stand after bank, other than the owner.
_AFTER = ("tool", "crossing", "purpose", "cause")


def _verbs(constructions: Sequence[str] | dict[str, Sense], form: Form) -> tuple[str, ...]:
    """Return the verbs that make sense with these clues."""
    kinds = {kind_of(name) for name in constructions}
    if "cause" in kinds:
        return ("wait near", "stay near", "reach", "find", "arrive at") if form.negative else _WAITING
    if "purpose" in kinds:
        return (*_MOVING, "wait near", "stay near", "look for")
    if "tool" in kinds:
        return (*_MOVING, *_WAITING, "reach", "leave")
    if "crossing" in kinds:
        return (*_MOVING, *_WAITING, *_SEEING, "reach")
    return (*_MOVING, *_WAITING, *_SEEING, "reach", "leave")


def _someone(rng: Random, *, noun: bool) -> tuple[NounPhrase, str]:
    """Return a subject that does not decide the sense, and its possessive: my, his, her ..."""
    if not noun and chance(rng, 0.6):
        pronoun = pick(rng, PRONOUNS)
        return pronoun, OWNERS[pronoun.english[0]]
    return _named(pick(rng, _NEUTRAL_PEOPLE))


def _named(person: NounPhrase) -> tuple[NounPhrase, str]:
    """Return a person, and the possessive: his or her."""
    return person, OWNERS[(HE if person.gender == "m" else SHE).english[0]]


def _modified(rng: Random, who: NounPhrase, owner: str, modifier: str, decisive: Sense) -> NounPhrase:
    """Return the subject with words that belong to a sense of bank but do not decide, often the wrong one."""
    clues = CLUES[_other(decisive) if chance(rng, 0.75) else decisive]
    if modifier == "from":
        place = (lexicon.GROUNDS | lexicon.BUILDINGS)[pick(rng, clues.owners)]
        return who.modified(words("from", "de") + noun_phrase("the", place))
    if modifier == "who wanted":
        purpose = clues.purposes[pick(rng, tuple(clues.purposes))]
        aim = Phrase(purpose.english, purpose.french[1:])  # without pour
        return who.modified(words("who wanted", "qui a voulu") + aim)
    if modifier == "who found":
        thing = noun_phrase(owner, clues.tools[pick(rng, tuple(clues.tools))])
        return who.modified(words("who found", "qui a trouvé") + thing)
    names = [name for name in clues.people if name != who.english[-1]]
    other = noun_phrase("the", clues.people[pick(rng, names)])
    if modifier == "who saw":
        return who.modified(words("who", "qui") + who.conjugate(VERBS["see"], PAST) + other)
    if modifier == "who is liked":
        verb = VERBS[pick(rng, ("like", "look for"))]
        return who.modified(words("who", "que") + other.clause(verb, PRESENT))
    return who


def _draw_clue(rng: Random, name: str, sense: Sense, who: NounPhrase, owner: str, form: Form) -> _Clue:
    """Draw the words of a clue construction other than a person."""
    clues, kind = CLUES[sense], kind_of(name)
    if kind == "owner":
        place = pick(rng, clues.owners)
        return _Clue(name, sense, (place,), _of_owner(place))
    if kind == "purpose":
        purpose = pick(rng, tuple(clues.purposes))
        return _Clue(name, sense, (purpose,), clues.purposes[purpose])
    if kind == "cause":
        noun, phrase = _cause(rng, clues, form, BECAUSE if name == "cause" or chance(rng, 0.5) else AS)
        return _Clue(name, sense, (noun,), phrase)
    before_and = PRESENT if form == PRESENT else PAST
    if kind == "tool":
        tool = pick(rng, tuple(clues.tools))
        thing = noun_phrase(owner, clues.tools[tool])
        took = who.conjugate(VERBS["take"], before_and)
        return _Clue(
            name, sense, tuple(tool.split()), (took if name == "tool and" else words("with", "avec")) + thing
        )
    ground = pick(rng, clues.crossed)
    crossed = who.conjugate(VERBS["cross"], before_and) + noun_phrase("the", lexicon.GROUNDS[ground])
    return _Clue(name, sense, (ground,), crossed if name == "crossing and" else _after_crossing(ground))


def _of_owner(place: str) -> Phrase:
    """Return a phrase such as "of the river"."""
    return words("of", "de") + noun_phrase("the", (lexicon.GROUNDS | lexicon.BUILDINGS)[place])


def _after_crossing(ground: str) -> Phrase:
    """Return a phrase such as "after crossing the river"."""
    return words("after crossing", "après avoir traversé") + noun_phrase("the", lexicon.GROUNDS[ground])


def _cause(rng: Random, clues: Clues, form: Form, connective: Phrase) -> tuple[str, Phrase]:
    """Draw a noun and a phrase about it such as "because the boat was so slow"."""
    noun, adjectives = pick(rng, clues.causes)
    adjective = pick(rng, adjectives)
    degree = NOTHING if adjective.english in lexicon.WITHOUT_DEGREE else pick(rng, (TOO, SO, VERY))
    return noun.english, connective + is_adjective(noun_phrase("the", noun), form.tense, adjective, degree)


def _neutral(rng: Random, *, beside_similar: bool) -> Phrase:
    """Draw words that do not decide the sense: "after crossing the park", "with my sister".

    Args:
        rng: The generator of the choices.
        beside_similar: Draw words that are neither a crossing nor begin with "with".
    """
    kind = "time" if beside_similar else pick(rng, ("crossing", "crossing", "company", "time"))
    if kind == "time":
        return words("in the morning", "le matin")
    if kind == "crossing":
        return _after_crossing(pick(rng, _NEUTRAL_GROUNDS))
    return words("with", "avec") + noun_phrase("my", lexicon.PEOPLE[pick(rng, ("brother", "sister"))])


def _about_a_bank(rng: Random) -> Pair:
    """Draw a sentence such as "the bank of the village was beautiful"."""
    sense = pick(rng, SENSES)
    place = pick(rng, CLUES[sense].owners)
    name = pick(rng, ("", "", "present", "didn't"))
    form = FORMS[name]
    wrapped = pick(rng, WRAPPERS[:-1]) if chance(rng, 0.4) else ""
    state = pick(rng, (lexicon.QUALITIES["beautiful"], PLACE_STATES["crowded"], PLACE_STATES["deserted"]))
    bank = noun_phrase("the", BANKS[sense]).modified(_of_owner(place))
    is_state = bank.be(form) + bank.predicate(state)
    phrase = wrapper(rng, wrapped, form.tense, _SPEAKERS) + bank + is_state
    return _with_reference(phrase, (place,), sense, ("owner of subject", *frame(wrapped, name)))


# The verbs of these sentences in their dictionary forms. The two verbs that take a cause are neighbours in
# the list. So a deciding word that is held out with one of them (see split.py) occurs in training with the
# other.
BANK_VERBS = tuple(
    dict.fromkeys(name.split()[0] for name in (*_WAITING, *_MOVING, *_SEEING, "reach", "leave"))
)
