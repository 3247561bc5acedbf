"""Bug: the search stops with the first sentence that ends, though others may become more probable."""

import itertools
from typing import Any

import numpy as np

from npformer.functional import log_softmax
from npformer.language import say
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
        result[say("the greedy sentence of language {seed}", seed=seed)] = (
            own.beam_search(language, beam=1)[0],
            tokens,
        )
    return result


def exhaustive(own: Names) -> Any:
    """Compare a beam that holds every sentence of up to three tokens with the best sentence of all."""
    result = {}
    for seed in range(8):
        language = Language(seed, 4)
        every = [list(s) for n in range(4) for s in itertools.product(range(1, 4), repeat=n)]
        right = max(every, key=language.log_prob)
        found = own.beam_search(language, beam=200, max_length=3)[0]
        result[say("the best sentence of language {seed}", seed=seed)] = (found, right)
    return result


def true_scores(own: Names) -> Any:
    """Compare the log-probability that is returned with that of the sentence that is returned."""
    result = {}
    for seed, beam in itertools.product(range(4), (1, 3)):
        tokens, log_prob = own.beam_search(Language(seed), beam=beam)
        result[say("log p in language {seed} with beam {beam}", seed=seed, beam=beam)] = (
            log_prob,
            Language(seed).log_prob(tokens),
        )
    return result


def long_sentences(own: Names) -> Any:
    """Search a language whose best sentence has four tokens, though the empty one is second at first."""

    def language(tokens: Any) -> Any:
        after = {0: 1, 1: 2, 2: 3, 3: 4, 4: 0}[len(tokens)] if tokens == [1, 2, 3, 4][: len(tokens)] else 0
        p = np.full(5, 0.01)
        p[0], p[after] = max(p[0], 0.2), 0.77
        return np.log(p / p.sum())

    return {
        say("the sentence that beam {beam} finds", beam=beam): (
            own.beam_search(language, beam=beam)[0],
            [1, 2, 3, 4],
        )
        for beam in (1, 2, 3, 4)
    }


def limited(own: Names) -> dict[str, Any]:
    """Check that no sentence is longer than max_length."""
    endless = np.log(np.array([0.01, 0.99]))
    tokens, _ = own.beam_search(lambda tokens: endless, beam=1, max_length=3)
    return {say("the sentence with max_length=3"): (tokens, [1] * 3)}


BUG = Specimen(
    summary="the wider the beam, the less probable the result",
    symptom="""
    Beam search looks for the most probable sentence. A wider beam compares more candidates, so it should
    usually find a sentence with a lower -log p. For this implementation, the average of -log p over 40
    made-up languages is {bug[best]:.2f} at best. For wider beams it increases, to {bug[last]:.2f} with a beam
    of 12. Without the bug it is {right[last]:.2f} there. With a beam of 12 the sentences have on average
    {bug[words]:.1f} tokens, and without the bug {right[words]:.1f}.
    """,
    train=train,
    trials=(
        equal("a beam of 1 gives the same as greedy search", compare_with_greedy),
        equal("the returned log p is that of the returned sentence", true_scores),
        equal("no sentence is longer than max_length", limited),
        equal("a beam that contains all sentences finds the most probable one", exhaustive),
        equal("a long sentence that is more probable than a short one is found", long_sentences),
    ),
    english_hints=(
        "There is no training and no gradient here. Compare the lengths of the sentences that a narrow beam "
        "and a wide beam find.",
        "Write a function next_log_probs for three tokens in which the most probable sentence has two "
        "tokens. Print live and finished in each step.",
        "When may a search stop? Can a sentence in live still become more probable than those in finished?",
    ),
    story="""
    The search stopped as soon as one sentence had ended. A wide beam also contains improbable candidates, and
    one of them is a sentence that ends immediately. So with a wider beam, the search stopped earlier, with
    shorter sentences. With a beam of 12, -log p was {bug[last]:.2f}. With your repair it is
    {right[last]:.2f}. A beam of 1 contains only one sentence, so stopping at its end is correct, and a
    comparison with greedy search passes. A search may stop if no unfinished sentence is left, or if none of
    them can still become the most probable one. Real models also give worse translations with very wide
    beams, for another reason: they give short sentences too high a probability. This is why length
    normalization is used.
    """,
    repair="""
-        if finished or not live:
+        if not live:
""",
    axes=("beam", "-log p of the sentence found"),
)
