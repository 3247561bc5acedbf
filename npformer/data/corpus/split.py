"""The built-in corpus, split for training, validation and test. Some pairs of words occur in the test only.

Some pairs of words are held out, such as dog and hungry, street and narrow, river and arrive. A sentence with
both words of such a pair occurs only in the test set, while each of the two words occurs often in training.
The famous sentences, about the animal that didn't cross the street and about the bank of the river, are in
the test set too. So the test shows whether a model has learned words and grammar, or has memorized sentences.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from npformer.data.corpus import lexicon
from npformer.data.corpus.ambiguous_bank import BANK_VERBS, draw_bank, famous_bank
from npformer.data.corpus.ambiguous_it import ACTIONS, draw_it, famous_it
from npformer.data.corpus.bank_clues import CLUE_WORDS
from npformer.data.corpus.draws import shuffled
from npformer.data.corpus.lexicon import base_form
from npformer.data.corpus.pairs import Family, Pair
from npformer.data.corpus.plain import draw_plain
from npformer.data.corpus.plain_parts import FITTING, OBJECTS

# the small sentences that the lessons and the documents quote, all of them in training
_SENTENCES = """
thanks | merci
thinking machines | machines pensantes
a thinking machine | une machine pensante
i am a student | je suis étudiant
i am a teacher | je suis professeur
i am a farmer | je suis fermier
i am not a student | je ne suis pas étudiant
he is a student | il est étudiant
she is a student | elle est étudiante
she is a teacher | elle est professeure
we are students | nous sommes étudiants
they are teachers | ils sont professeurs
i am tired | je suis fatigué
she is happy | elle est heureuse
i like cats | j'aime les chats
i have a dog | j'ai un chien
the cat drinks some milk | le chat boit du lait
where is the station | où est la gare
thanks for the flowers | merci pour les fleurs
"""

# A sentence of one or two words contributes little to the gradient, so it is repeated in the training set.
COPIES = 8


def document_pairs() -> tuple[Pair, ...]:
    """Return the small sentences, each once."""
    rows = (line.split(" | ") for line in _SENTENCES.strip().splitlines())
    return tuple(Pair(english, french, "document") for english, french in rows)


class BuiltinCorpus(NamedTuple):
    """The three parts of the corpus, without common sentences. The test part has the held-out sentences."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]


class _Plan(NamedTuple):
    """A family of sentences: the function that draws them, and their numbers in each part."""

    family: Family
    draw: Callable[[Random], Pair]
    train: int
    valid: int
    test: int
    always_held_out: tuple[Pair, ...] = ()


_PLANS = (
    _Plan("plain", draw_plain, train=10000, valid=250, test=600),
    _Plan("it", draw_it, train=5000, valid=150, test=600, always_held_out=famous_it()),
    _Plan("bank", draw_bank, train=3000, valid=100, test=400, always_held_out=famous_bank()),
)


class Combinations:
    """The held-out pairs of words."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._partners: dict[str, list[str]] = {}
        for first, second in pairs:
            self._partners.setdefault(first, []).append(second)

    def among(self, words: Sequence[str]) -> tuple[str, str] | tuple[()]:
        """Return the first held-out pair among the words, which are in their dictionary forms, or ()."""
        for word in words:
            for partner in self._partners.get(word, ()):
                if partner in words:
                    return (word, partner)
        return ()


def builtin_corpus(*, seed: int = 0) -> BuiltinCorpus:
    """Return English-French sentences from a grammar.

    The same seed gives the same sentences on every machine. All sentences of the document family are in
    training, each several times.
    """
    rng = Random(seed)
    combinations = held_out_combinations(rng)
    documents = document_pairs()
    drawn = {pair.english for pair in documents}  # the English sentences so far
    train: list[Pair] = list(documents) * COPIES
    valid: list[Pair] = []
    test: list[Pair] = []
    for plan in _PLANS:
        for_training, held_out = _draw_distinct(rng, plan, combinations, drawn)
        valid += for_training[: plan.valid]
        train += for_training[plan.valid :]
        test += held_out
    return BuiltinCorpus(*(tuple(shuffled(rng, part)) for part in (train, valid, test)))


def _draw_distinct(
    rng: Random, plan: _Plan, combinations: Mapping[Family, Combinations], drawn: set[str]
) -> tuple[list[Pair], list[Pair]]:
    """Return enough different sentences without a held-out pair of words, and enough with one.

    The pairs that are held out for one family do not occur in the training sentences of the others either.
    """
    own = combinations[plan.family]
    others = [combinations[family] for family in combinations if family != plan.family]
    for_training: list[Pair] = []
    held_out: list[Pair] = []
    candidates = iter(plan.always_held_out)
    while len(for_training) < plan.train + plan.valid or len(held_out) < plan.test:
        pair = next(candidates, None) or plan.draw(rng)
        if pair.english in drawn:
            continue
        words = [base_form(word) for word in pair.english.split()]
        combination = own.among(words)
        if combination:
            held_out.append(replace(pair, combination=combination))
        elif not any(other.among(words) for other in others):
            for_training.append(pair)
        drawn.add(pair.english)
    return for_training[: plan.train + plan.valid], held_out[: plan.test]


def held_out_combinations(rng: Random) -> dict[Family, Combinations]:
    """Return the held-out pairs of each family: about a sixth of the pairs that make sense together."""
    movers = [*lexicon.ANIMALS, *lexicon.MACHINES]
    places = sorted({noun for action in ACTIONS for nouns in action.places.values() for noun in nouns})
    places_by_state = {
        state: sorted({noun for action in ACTIONS for noun in action.places.get(state, ())})
        for state in lexicon.PLACE_STATES
    }
    fitting = {noun: [adjective.english for adjective in fits] for noun, fits in FITTING.items()}
    objects = {verb.split()[0]: [noun.english for noun in nouns] for verb, nouns in OBJECTS.items()}
    it = (
        *_every_nth(rng, 6, dict.fromkeys(lexicon.ANIMALS, tuple(lexicon.ANIMAL_STATES))),
        *_every_nth(rng, 5, dict.fromkeys(lexicon.MACHINES, tuple(lexicon.MACHINE_STATES))),
        *_every_nth(rng, 6, places_by_state),
        *_every_nth(rng, 6, dict.fromkeys(movers, places)),
        ("animal", "street"),
    )
    bank = (
        *_every_nth(rng, 6, dict.fromkeys(BANK_VERBS, CLUE_WORDS)),
        ("arrive", "river"),
        ("arrive", "road"),
    )
    plain = (*_every_nth(rng, 7, fitting), *_every_nth(rng, 9, objects))
    return {"it": Combinations(it), "bank": Combinations(bank), "plain": Combinations(plain)}


def _every_nth(rng: Random, n: int, table: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return one in n of the pairs (word, partner) of a table.

    The chosen pairs lie on diagonals of the table, so that no word loses all of its partners.
    """
    offset = int(rng.random() * n)
    return [
        (word, partner)
        for i, (word, partners) in enumerate(table.items())
        for j, partner in enumerate(partners)
        if (i + j + offset) % n == 0
    ]
