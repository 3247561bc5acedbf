"""The words that decide the sense of bank: rive (of a river) or banque (of money)."""

from dataclasses import dataclass
from typing import Literal

from npformer.data.corpus.entries import Adjective, Noun, nouns
from npformer.data.corpus.lexicon import ANIMAL_STATES, GROUNDS, MACHINE_STATES, PLACE_STATES, THINGS
from npformer.data.corpus.phrases import Phrase, words

Sense = Literal["rive", "banque"]

BANKS = {"rive": Noun("bank", "rive", "f"), "banque": Noun("bank", "banque", "f")}
_CLOSED_COUNTER = Noun("counter", "guichet", "m")


@dataclass(frozen=True)
class Clues:
    """The words that decide for one sense. The keys of the dicts are the deciding English words."""

    people: dict[str, Noun]  # people who go there
    crossed: tuple[str, ...]  # grounds that one crosses on the way there
    owners: tuple[str, ...]  # places that have such a bank
    tools: dict[str, Noun]  # things that one takes along
    purposes: dict[str, Phrase]  # reasons to go there
    causes: tuple[tuple[Noun, tuple[Adjective, ...]], ...]  # reasons to wait there


_RIVER_PEOPLE = nouns("""
    fisherman | pêcheur | m
    swimmer   | nageur  | m
    duck      | canard  | m
""")
_MONEY_PEOPLE = nouns("""
    cashier  | caissier  | m
    thief    | voleur    | m
    customer | client    | m
    manager  | directeur | m
""")


def _states(table: dict[str, Adjective], names: str) -> tuple[Adjective, ...]:
    """Return the adjectives of these names."""
    return tuple(table[name] for name in names.split())


CLUES: dict[Sense, Clues] = {
    "rive": Clues(
        people=_RIVER_PEOPLE,
        crossed=("river", "stream", "lake"),
        owners=("river", "stream", "lake"),
        tools=nouns("""
            fishing rod | canne à pêche | f
            net         | filet         | m
        """),
        purposes={
            "fish": words("to catch some fish", "pour pêcher du poisson"),
            "swim": words("to swim", "pour nager"),
            "ducks": words("to watch the ducks", "pour regarder les canards"),
            "boat": words("to take a boat", "pour prendre un bateau"),
        },
        causes=(
            (GROUNDS["river"], _states(PLACE_STATES, "wide deep")),
            (GROUNDS["stream"], _states(PLACE_STATES, "wide deep")),
            (THINGS["boat"], _states(MACHINE_STATES, "slow heavy overloaded")),
            (_RIVER_PEOPLE["fisherman"], _states(ANIMAL_STATES, "tired ill injured slow")),
        ),
    ),
    "banque": Clues(
        people=_MONEY_PEOPLE,
        crossed=("street", "road", "avenue"),
        owners=("village", "town", "station"),
        tools=nouns("""
            money  | argent | m
            cheque | chèque | m
            gold   | or     | m
        """),
        purposes={
            "money": words("to get some money", "pour retirer de la argent"),
            "cheque": words("to cash a cheque", "pour encaisser un chèque"),
            "account": words("to open an account", "pour ouvrir un compte"),
            "loan": words("to ask for a loan", "pour demander un prêt"),
        },
        causes=(
            (_CLOSED_COUNTER, _states(PLACE_STATES, "closed crowded")),
            (_MONEY_PEOPLE["cashier"], _states(ANIMAL_STATES, "tired ill slow nervous")),
            (_MONEY_PEOPLE["manager"], _states(ANIMAL_STATES, "tired ill nervous")),
            (_MONEY_PEOPLE["thief"], _states(ANIMAL_STATES, "scared nervous injured")),
        ),
    ),
}
SENSES: tuple[Sense, ...] = ("rive", "banque")

# Every deciding word, in its dictionary form.
CLUE_WORDS = tuple(
    dict.fromkeys(
        word
        for clues in CLUES.values()
        for group in (clues.people, clues.crossed, clues.owners, clues.tools, clues.purposes)
        for word in group
    )
)
