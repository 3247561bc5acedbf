"""The built-in corpus, split for training, validation and test. The test asks two questions.

**New pairs of words.** Some pairs of words are held out, such as dog and hungry, street and narrow, river and
arrive. A sentence with both words of such a pair occurs only in the test set, while each of the two words
occurs often in training, and so does the frame of the sentence, that is, its constructions. The famous
sentences, about the animal that didn't cross the street and about the bank of the river, are here too.

**New frames.** Some pairs of constructions are held out in the same way, such as a question and a relative
clause, or "had to" and a reason that comes first. A sentence with both constructions of such a pair occurs
only in the test set, while each of them occurs often in training with others. These sentences contain no
held-out pair of words.

So the test shows whether a model has learned words and grammar, or has memorized sentences or frames.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from random import Random
from typing import NamedTuple

from npformer.data.corpus import lexicon
from npformer.data.corpus.ambiguous_bank import (
    BANK_AXES,
    BANK_VERBS,
    CLUE_CONSTRUCTIONS,
    bank_compatible,
    draw_bank,
    famous_bank,
)
from npformer.data.corpus.ambiguous_it import ACTIONS, IT_AXES, draw_it, famous_it, it_compatible
from npformer.data.corpus.bank_clues import CLUE_WORDS
from npformer.data.corpus.draws import shuffled
from npformer.data.corpus.lexicon import base_form
from npformer.data.corpus.pairs import Family, Pair
from npformer.data.corpus.simple import draw_simple
from npformer.data.corpus.simple_parts import FITTING, OBJECTS

# the small sentences that the lessons and the source documents quote, all of them in training
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

    @property
    def new_words(self) -> tuple[Pair, ...]:
        """The test sentences with a held-out pair of words, in frames that occur in training."""
        return tuple(pair for pair in self.test if pair.held_out == "words")

    @property
    def new_frames(self) -> tuple[Pair, ...]:
        """The test sentences with a held-out pair of constructions."""
        return tuple(pair for pair in self.test if pair.held_out == "frame")


class _Plan(NamedTuple):
    """A family of sentences: the function that draws them, and their numbers in each part."""

    family: Family
    draw: Callable[[Random], Pair]
    train: int
    valid: int
    new_words: int
    new_frames: int = 0
    always_held_out: tuple[Pair, ...] = ()


_PLANS = (
    _Plan("simple", draw_simple, train=11000, valid=200, new_words=500),
    _Plan("it", draw_it, 9000, valid=150, new_words=400, new_frames=500, always_held_out=famous_it()),
    _Plan("bank", draw_bank, 9000, valid=150, new_words=400, new_frames=500, always_held_out=famous_bank()),
)


class Combinations:
    """The held-out pairs of words, or of constructions."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._partners: dict[str, list[str]] = {}
        for first, second in pairs:
            self._partners.setdefault(first, []).append(second)

    def among(self, words: Sequence[str]) -> tuple[str, str] | tuple[()]:
        """Return the first held-out pair among words in their dictionary forms, or constructions, or ()."""
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
    return _made(seed)


@cache
def _made(seed: int) -> BuiltinCorpus:
    """Make the corpus of a seed. That takes seconds, so it is done once, however the seed is given."""
    rng = Random(seed)
    words, frames = held_out_combinations(rng), held_out_frames(rng)
    documents = document_pairs()
    drawn = {pair.english for pair in documents}  # the English sentences so far
    train: list[Pair] = list(documents) * COPIES
    valid: list[Pair] = []
    test: list[Pair] = []
    for plan in _PLANS:
        for_training, held_out = _draw_distinct(rng, plan, words, frames[plan.family], drawn)
        valid += for_training[: plan.valid]
        train += for_training[plan.valid :]
        test += held_out
    return BuiltinCorpus(*(tuple(shuffled(rng, part)) for part in (train, valid, test)))


def _draw_distinct(
    rng: Random, plan: _Plan, words: Mapping[Family, Combinations], frames: Combinations, drawn: set[str]
) -> tuple[list[Pair], list[Pair]]:
    """Return enough different sentences for training, and enough held-out ones.

    The pairs of words that are held out for one family do not occur in the training sentences of the others
    either. A sentence with a held-out pair of words and a held-out pair of constructions is left out.

    Args:
        rng: The generator of the choices.
        plan: The family and the numbers of its sentences.
        words: The held-out pairs of words of each family.
        frames: The held-out pairs of constructions of this family.
        drawn: The English sentences so far, to which the function adds its own.
    """
    others = [words[family] for family in words if family != plan.family]
    for_training: list[Pair] = []
    new_words: list[Pair] = []
    new_frames: list[Pair] = []
    known: set[tuple[str, ...]] = set()  # the frames of the training sentences
    candidates = iter(plan.always_held_out)
    n_training = plan.train + plan.valid
    while (
        len(for_training) < n_training or len(new_words) < plan.new_words or len(new_frames) < plan.new_frames
    ):
        pair = next(candidates, None) or plan.draw(rng)
        if pair.english in drawn:
            continue
        drawn.add(pair.english)
        forms = [base_form(word) for word in pair.english.split()]
        two_words, two_constructions = words[plan.family].among(forms), frames.among(pair.constructions)
        elsewhere = any(other.among(forms) for other in others)
        if two_words and not two_constructions:
            new_words.append(replace(pair, held_out="words", combination=two_words))
        elif two_constructions and not two_words and not elsewhere:
            new_frames.append(replace(pair, held_out="frame", combination=two_constructions))
        elif not two_words and not elsewhere and len(for_training) < n_training:
            for_training.append(pair)
            known.add(pair.constructions)
    in_known_frames = [pair for pair in new_words if pair.constructions in known]
    return for_training, in_known_frames[: plan.new_words] + new_frames[: plan.new_frames]


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
    simple = (*_every_nth(rng, 7, fitting), *_every_nth(rng, 9, objects))
    return {"it": Combinations(it), "bank": Combinations(bank), "simple": Combinations(simple)}


def held_out_frames(rng: Random) -> dict[Family, Combinations]:
    """Return the held-out pairs of constructions: about a sixth of those that go together."""
    it = _across_axes(rng, IT_AXES, it_compatible)
    clues = {
        clue: tuple(other for other in CLUE_CONSTRUCTIONS[i + 1 :] if bank_compatible(clue, other))
        for i, clue in enumerate(CLUE_CONSTRUCTIONS)
    }
    bank = _across_axes(rng, BANK_AXES, bank_compatible) + _every_nth(rng, 6, clues)
    famous = {pair for sentence in famous_bank() for pair in product(sentence.constructions, repeat=2)}
    return {
        "it": Combinations(it),
        "bank": Combinations(pair for pair in bank if pair not in famous),
        "simple": Combinations(()),
    }


def _across_axes(
    rng: Random, axes: Mapping[str, Sequence[str]], compatible: Callable[[str, str], bool]
) -> list[tuple[str, str]]:
    """Return about a sixth of the pairs of constructions that lie on different axes and go together."""
    held_out = []
    for first, second in combinations(axes.values(), 2):
        table = {one: tuple(other for other in second if compatible(one, other)) for one in first}
        held_out += _every_nth(rng, 6, table)
    return held_out


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
