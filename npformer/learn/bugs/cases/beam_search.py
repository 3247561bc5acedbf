"""Bug: the search stops with the first sentence that ends, though others may become more probable."""

import itertools
from typing import Any

import numpy as np

from npformer.functional import log_softmax
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.trials import equal

WORDS, LANGUAGES, BEAMS = 12, 40, 12


class Language:
    """A made-up language: the probability of each token after each other token. The end is token 0."""

    def __init__(self, seed: int, vocab_size: Any = WORDS) -> None:
        logits = 2.0 * np.random.default_rng(seed).standard_normal((vocab_size, vocab_size))
        logits[:, 0] += 1  # short sentences are probable
        self.log_probs, _ = log_softmax(logits)

    def __call__(self, tokens: Any) -> Any:
        """Return log p(next token | last token), (V,). The last token is 0 at the beginning."""
        return self.log_probs[tokens[-1] if tokens else 0]

    def log_prob(self, tokens: Any) -> Any:
        """Return log p of a whole sentence with its end."""
        return sum(float(self(tokens[:t])[token]) for t, token in enumerate([*tokens, 0]))


def train(own: Names) -> Run:
    """Return the mean -log p of the results of beams of 1 to 12 in many languages. Nothing is trained."""
    costs, lengths = [], []
    for beam in range(1, BEAMS + 1):
        found = [own.beam_search(Language(seed), beam=beam) for seed in range(LANGUAGES)]
        costs.append(-float(np.mean([log_prob for _, log_prob in found])))
        lengths.append(float(np.mean([len(tokens) for tokens, _ in found])))
    return Run(costs, {"best": min(costs), "words": lengths[-1], "greedy": costs[0]})


def compare_with_greedy(own: Names) -> Any:
    """Compare a beam of 1 with greedy search."""
    result = {}
    for seed in range(5):
        language, tokens = Language(seed), list[int]()
        while len(tokens) < 10 and (token := int(language(tokens).argmax())):
            tokens.append(token)
        result[f"the greedy sentence of language {seed}"] = (own.beam_search(language, beam=1)[0], tokens)
    return result


def exhaustive(own: Names) -> Any:
    """Compare a beam that holds every sentence of up to three tokens with the best sentence of all."""
    result = {}
    for seed in range(8):
        language = Language(seed, 4)
        every = [list(s) for n in range(4) for s in itertools.product(range(1, 4), repeat=n)]
        right = max(every, key=language.log_prob)
        found = own.beam_search(language, beam=200, max_length=3)[0]
        result[f"the best sentence of language {seed}"] = (found, right)
    return result


def true_scores(own: Names) -> Any:
    """Compare the log-probability that is returned with that of the sentence that is returned."""
    result = {}
    for seed, beam in itertools.product(range(4), (1, 3)):
        tokens, log_prob = own.beam_search(Language(seed), beam=beam)
        result[f"log p in language {seed} with beam {beam}"] = (log_prob, Language(seed).log_prob(tokens))
    return result


def long_sentences(own: Names) -> Any:
    """Search a language whose best sentence has four tokens, though the empty one is second at first."""

    def language(tokens: Any) -> Any:
        after = {0: 1, 1: 2, 2: 3, 3: 4, 4: 0}[len(tokens)] if tokens == [1, 2, 3, 4][: len(tokens)] else 0
        p = np.full(5, 0.01)
        p[0], p[after] = max(p[0], 0.2), 0.77
        return np.log(p / p.sum())

    return {
        f"the sentence that beam {beam} finds": (own.beam_search(language, beam=beam)[0], [1, 2, 3, 4])
        for beam in (1, 2, 3, 4)
    }


def limited(own: Names) -> dict[str, Any]:
    """Check that no sentence is longer than max_length."""
    endless = np.log(np.array([0.01, 0.99]))
    return {
        "the sentence with max_length=3": (
            own.beam_search(lambda tokens: endless, beam=1, max_length=3)[0],
            [1] * 3,
        )
    }


BEAM_SEARCH = Specimen(
    number=18,
    name="beam-search",
    summary="the wider the beam, the worse the sentence",
    symptom="""
    A wider beam tries more, and should find what is at least as probable. Averaged over 40 made-up
    languages, -log p of what this one finds is at best {bug[best]:.2f}, and then rises with the beam:
    {bug[last]:.2f} with a beam of 12, where {right[last]:.2f} is possible. Its sentences then have
    {bug[words]:.1f} words on average, and the most probable ones {right[words]:.1f}.
    """,
    train=train,
    trials=(
        equal("a beam of 1 is greedy search", compare_with_greedy),
        equal("log p is that of the words", true_scores),
        equal("max_length holds", limited),
        equal("a beam that holds everything finds the best of all", exhaustive),
        equal("a long sentence that is better than an early end", long_sentences),
    ),
    hints=(
        "Nothing is learnt here, so there is no gradient to check. How long are the sentences, by beam?",
        "Write a language of three words whose best sentence has two, and print live and finished at each "
        "step.",
        "When may a search stop? Could what is still live become better than what is finished?",
    ),
    story="""
    The search stopped as soon as one hypothesis ended. A wide beam keeps improbable beginnings, and the
    least of them is the end at once: so the wider the beam, the earlier something ended, and the emptier
    the sentence. -log p rose to {bug[last]:.2f} with a beam of 12, where yours has {right[last]:.2f}. A
    beam of 1 stops at the right place, so a test against greedy search passes. A search may stop when
    nothing is left alive, or when nothing alive could still win. Real models also do worse with very wide
    beams, for another reason: they prefer short sentences, and length penalties are for that.
    """,
    repair="""
-        if finished or not live:
+        if not live:
""",
    axes=("beam", "-log p of the sentence found"),
)
