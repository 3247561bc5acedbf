"""Sentences such as "i arrived at the bank after crossing the river", in which bank is rive, not banque.

Other words of the sentence decide between rive (of a river) and banque (of money). They stand before bank or
after it, next to it or far from it:

    the fisherman waited near the bank               the person
    i arrived at the bank after crossing the river   the thing that was crossed
    he ran to the bank ... to cash a cheque          the purpose
    she walked to the bank with her fishing rod      the tool
    we took our money and we walked to the bank      the action before
    i saw the bank of the stream                     the owner of the bank
    he waited near the bank because the boat was so slow     the cause

No sentence has deciding words of both senses. Bridges, parks and squares fit both senses and do not decide.
"""

from collections.abc import Callable
from random import Random

from npformer.data.corpus import lexicon
from npformer.data.corpus.bank_clues import BANKS, CLUES, SENSES, Clues, Sense
from npformer.data.corpus.draws import chance, pick, weighted
from npformer.data.corpus.lexicon import PLACE_STATES, VERBS
from npformer.data.corpus.pairs import Pair, Reference
from npformer.data.corpus.phrases import (
    BECAUSE,
    HE,
    NOTHING,
    OWNERS,
    PRONOUNS,
    SHE,
    SO,
    TOO,
    VERY,
    I,
    NounPhrase,
    Phrase,
    be,
    conjugate,
    is_adjective,
    noun_phrase,
    predicate,
    words,
)
from npformer.data.tokens import tokenize

# These may be crossed on the way to either kind of bank, so they do not decide the sense.
_NEUTRAL_GROUNDS = ("bridge", "park", "garden", "field", "square")
_NEUTRAL_PEOPLE = tuple(noun_phrase("the", lexicon.PEOPLE[name]) for name in ("man", "woman", "boy", "girl"))

# The verbs that make sense with each kind of clue.
_VERBS_FOR_PEOPLE = (
    "arrive at",
    "walk to",
    "run to",
    "wait near",
    "reach",
    "leave",
    "see",
    "look for",
    "find",
)
_VERBS_AFTER_CROSSING = ("arrive at", "walk to", "run to", "wait near", "reach", "see", "look for", "find")
_VERBS_FOR_PURPOSE = ("arrive at", "walk to", "run to", "wait near", "look for")
_VERBS_WITH_TOOL = ("arrive at", "walk to", "run to", "wait near", "reach", "leave", "stay near")
_VERBS_WITH_CAUSE = ("wait near", "stay near")
_VERBS_WITH_OWNER = (
    "arrive at",
    "walk to",
    "run to",
    "wait near",
    "reach",
    "see",
    "look for",
    "find",
    "leave",
)
_VERBS_AFTER_AND = ("arrive at", "walk to", "run to", "wait near", "reach", "look for", "find")


def draw_bank(rng: Random) -> Pair:
    """Draw a sentence with bank, in both senses with the same probability."""
    sense = pick(rng, SENSES)
    builder = weighted(rng, _BUILDERS)
    phrase, deciders = builder(rng, sense, CLUES[sense])
    if chance(rng, 0.08):
        phrase = words("yesterday", "hier") + phrase
    return _with_reference(phrase, deciders, sense)


def famous_bank() -> tuple[Pair, Pair]:
    """Return the two sentences by which this ambiguity is usually explained."""
    arrived = I + conjugate(I, VERBS["arrive at"], "past")
    over_river = arrived + noun_phrase("the", BANKS["rive"]) + _after_crossing("river")
    over_road = arrived + noun_phrase("the", BANKS["banque"]) + _after_crossing("road")
    return (
        _with_reference(over_river, ("river",), "rive"),
        _with_reference(over_road + CLUES["banque"].purposes["money"], ("road", "money"), "banque"),
    )


def _with_reference(phrase: Phrase, deciders: tuple[str, ...], sense: Sense) -> Pair:
    """Return the pair, with the places of bank, of the words that decide, and of rive or banque."""
    english, french = phrase.join()
    in_english = english.split()
    reference = Reference(
        word=in_english.index("bank"),
        deciders=tuple(in_english.index(word) for word in deciders),
        right=sense,
        wrong="banque" if sense == "rive" else "rive",
        answer=tokenize(french, elision=True).index(sense),
    )
    return Pair(english, french, "bank", reference)


Built = tuple[Phrase, tuple[str, ...]]


def _someone(rng: Random) -> tuple[NounPhrase, str]:
    """Return a subject that does not decide the sense, and its possessive: my, his, her ..."""
    if chance(rng, 0.6):
        pronoun = pick(rng, PRONOUNS)
        return pronoun, OWNERS[pronoun.english[0]]
    person = pick(rng, _NEUTRAL_PEOPLE)
    return person, OWNERS[(HE if person.gender == "m" else SHE).english[0]]


def _at_bank(rng: Random, who: NounPhrase, verbs: tuple[str, ...], sense: Sense) -> Phrase:
    """Return the verb and the bank."""
    return conjugate(who, VERBS[pick(rng, verbs)], "past") + noun_phrase("the", BANKS[sense])


def _after_crossing(ground: str) -> Phrase:
    """Return a phrase such as "after crossing the river"."""
    return words("after crossing", "après avoir traversé") + noun_phrase("the", lexicon.GROUNDS[ground])


def _maybe_neutral_crossing(rng: Random) -> Phrase:
    """Return a phrase about crossing something that does not decide the sense, or no phrase."""
    return _after_crossing(pick(rng, _NEUTRAL_GROUNDS)) if chance(rng, 0.4) else NOTHING


def _by_person(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "The fisherman waited near the bank"."""
    name = pick(rng, tuple(clues.people))
    who = noun_phrase("the", clues.people[name])
    return who + _at_bank(rng, who, _VERBS_FOR_PEOPLE, sense) + _maybe_neutral_crossing(rng), (name,)


def _by_crossing(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "I arrived at the bank after crossing the river"."""
    who, _ = _someone(rng)
    ground = pick(rng, clues.crossed)
    return who + _at_bank(rng, who, _VERBS_AFTER_CROSSING, sense) + _after_crossing(ground), (ground,)


def _by_purpose(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "I arrived at the bank after crossing the road to get some money"."""
    who, _ = _someone(rng)
    clue = pick(rng, tuple(clues.purposes))
    crossing = _maybe_neutral_crossing(rng)
    deciders: tuple[str, ...] = (clue,)
    if chance(rng, 0.4):
        ground = pick(rng, clues.crossed)
        crossing, deciders = _after_crossing(ground), (ground, clue)
    return who + _at_bank(rng, who, _VERBS_FOR_PURPOSE, sense) + crossing + clues.purposes[clue], deciders


def _by_tool(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "She walked to the bank with her fishing rod"."""
    who, owner = _someone(rng)
    tool = pick(rng, tuple(clues.tools))
    with_tool = words("with", "avec") + noun_phrase(owner, clues.tools[tool])
    crossing = _maybe_neutral_crossing(rng)
    # crossing comes last: "the park with my net" would be a park that has a net
    return who + _at_bank(rng, who, _VERBS_WITH_TOOL, sense) + with_tool + crossing, tuple(tool.split())


def _by_cause(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "He waited near the bank because the boat was so slow"."""
    who, _ = _someone(rng)
    noun, adjectives = pick(rng, clues.causes)
    adjective = pick(rng, adjectives)
    degree = NOTHING if adjective.english in lexicon.WITHOUT_DEGREE else pick(rng, (TOO, SO, VERY))
    cause = BECAUSE + is_adjective(noun_phrase("the", noun), "past", adjective, degree)
    return who + _at_bank(rng, who, _VERBS_WITH_CAUSE, sense) + cause, (noun.english,)


def _by_owner(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "I saw the bank of the stream" or "the bank of the village was beautiful"."""
    owner = pick(rng, clues.owners)
    place = (lexicon.GROUNDS | lexicon.BUILDINGS)[owner]
    of_owner = words("of", "de") + noun_phrase("the", place)
    if chance(rng, 0.5):
        who, _ = _someone(rng)
        return who + _at_bank(rng, who, _VERBS_WITH_OWNER, sense) + of_owner, (owner,)
    bank = noun_phrase("the", BANKS[sense])
    state = pick(rng, (lexicon.QUALITIES["beautiful"], PLACE_STATES["crowded"], PLACE_STATES["deserted"]))
    is_state = be(bank, "past", negative=chance(rng, 0.25)) + predicate(bank, state)
    return bank + of_owner + is_state, (owner,)


def _by_what_came_first(rng: Random, sense: Sense, clues: Clues) -> Built:
    """Draw a sentence such as "He took his money and he walked to the bank"."""
    who, owner = _someone(rng)
    if chance(rng, 0.6):
        name = pick(rng, tuple(clues.tools))
        first = who + conjugate(who, VERBS["take"], "past") + noun_phrase(owner, clues.tools[name])
    else:
        name = pick(rng, clues.crossed)
        first = who + conjugate(who, VERBS["cross"], "past") + noun_phrase("the", lexicon.GROUNDS[name])
    if who not in PRONOUNS:
        who = HE if who.gender == "m" else SHE
    then = words("and", "et") + who + _at_bank(rng, who, _VERBS_AFTER_AND, sense)
    return first + then, tuple(name.split())


_Builder = Callable[[Random, Sense, Clues], Built]
_BUILDERS: tuple[tuple[float, _Builder], ...] = (
    (3.5, _by_person),
    (2, _by_crossing),
    (3, _by_purpose),
    (2, _by_tool),
    (2, _by_cause),
    (1.5, _by_owner),
    (4, _by_what_came_first),
)

# The verbs of these sentences in their dictionary forms. The two verbs that take a cause are neighbours in
# the list. So a deciding word that is held out with one of them (see split.py) occurs in training with the
# other.
BANK_VERBS = tuple(dict.fromkeys(name.split()[0] for name in (*_VERBS_WITH_CAUSE, *_VERBS_FOR_PEOPLE)))
