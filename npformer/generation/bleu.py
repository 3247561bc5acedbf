"""BLEU of given translations, or of a translator on a set of sentences, computed by sacrebleu.

Importing sacrebleu takes a while, so it is imported only when a score is computed. Everything else works
without it.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from npformer.errors import UserError, quantity
from npformer.generation.bleu_statistics import (
    LEAST_RESAMPLED,
    SEED,
    LengthScore,
    bleu_by_length,
    bleu_half_width,
    sentence_counts,
)
from npformer.generation.invented_words import InventedWords, find_invented_words
from npformer.generation.search import BEAM, LENGTH_PENALTY
from npformer.validation import require_choice

# the tokenizer of sacrebleu for each setting
TOKENIZERS = {
    "tokenised": "none",  # lowercase, punctuation set apart: words are separated by spaces
    "raw": "13a",  # text as people write it, with capitals: words are split as in the WMT evaluations
}

# A punctuation mark attached to the word before it, as in raw text, or separate, as in tokenised text.
# The semicolon is not among them, since it ends the &apos; and &quot; of tokenised text.
_ATTACHED = re.compile(r"\w[.,:!?](?=\s|$)")
_SET_APART = re.compile(r"(?<!\S)[.,:!?](?=\s|$)")


class Bleu(NamedTuple):
    """A BLEU score with everything that is needed to compare it with another."""

    score: float  # 0 .. 100
    signature: str  # the signature of sacrebleu
    brevity_penalty: float  # exp(1 - reference words / translated words), at most 1
    setting: str


class TranslationScore(NamedTuple):
    """The result of a translator on a set of sentences."""

    bleu: float  # 0 .. 100
    signature: str  # the signature of sacrebleu, which says how the score was computed
    setting: str  # "tokenised" or "raw"
    brevity_penalty: float
    sentences: int
    empty: int  # number of empty translations
    seconds: float  # wall time of translating
    half_width: float | None  # of its 95 % interval; None for fewer than LEAST_RESAMPLED sentences
    by_length: list[LengthScore]
    invented: InventedWords | None  # None if the known words are not known
    translations: list[str]  # the translations in the same form as the references


def bleu(translations: Sequence[str], references: Sequence[str], setting: str) -> Bleu:
    """Return the corpus BLEU: brevity penalty × the geometric mean of the precisions of 1- to 4-grams.

    Args:
        translations: The lines to score.
        references: One reference for each line.
        setting: "tokenised" for lowercase, tokenised lines, or "raw" for text as people write it, with case.

    Raises:
        UserError: If the numbers of lines differ, there is no line, or sacrebleu is not installed.

    Source: Papineni et al. 2002; Post 2018 (the signature).
    """
    require_choice("setting", setting, tuple(TOKENIZERS))
    if len(translations) != len(references):
        raise UserError(
            f"there are {quantity(len(translations), 'translation')} and "
            f"{quantity(len(references), 'reference')}: give one reference for each translation"
        )
    if not references:
        raise UserError("there is no line to score: give at least one")
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    # force=True turns off the warning that the lines look tokenised
    metric = BLEU(tokenize=TOKENIZERS[setting], force=True)
    result = metric.corpus_score(list(translations), [list(references)])
    return Bleu(result.score, str(metric.get_signature()), result.bp, setting)


def setting_of(lines: Sequence[str]) -> str:
    """Return the setting of the lines: "tokenised" if lowercase with punctuation set apart, or else "raw".

    Punctuation counts as set apart if at least as many marks are set apart as are attached to a word, since
    "st." and "etc." keep their full stop in tokenised text.
    """
    if any(line != line.lower() for line in lines):
        return "raw"
    text = "\n".join(lines)
    return "tokenised" if len(_SET_APART.findall(text)) >= len(_ATTACHED.findall(text)) else "raw"


def difference_in_case(translations: Sequence[str], references: Sequence[str]) -> str | None:
    """Return one sentence if only the translations or only the references have capitals, and None otherwise.

    Text counts as lowercased if fewer than one line in ten has a capital, as a name may keep its own.
    """
    cased, expected = _has_capitals(translations), _has_capitals(references)
    if cased == expected:
        return None
    one, other = ("references", "translations") if expected else ("translations", "references")
    return (
        f"the {one} have capitals and the {other} are in lower case, so BLEU counts every word with a "
        "capital as wrong: give both in the same case, or see --text"
    )


def _has_capitals(lines: Sequence[str]) -> bool:
    return 10 * sum(line != line.lower() for line in lines) >= max(1, len(lines))


def require_sacrebleu() -> None:
    """Check that sacrebleu is installed.

    Raises:
        UserError: If it is not. The message contains the command that installs it.
    """
    try:
        import sacrebleu  # noqa: F401 - only to see whether it is installed
    except ImportError:
        raise UserError("BLEU needs sacrebleu, which is not installed: pip install sacrebleu") from None


def score(
    translator: Any,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    setting: str | None = None,
    beam: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    known_words: frozenset[str] | None = None,
    seed: int = SEED,
    progress: Callable[[int], None] | None = None,
    **search: Any,
) -> TranslationScore:
    """Translate the sources and score the translations against the references.

    Args:
        translator: A translator of the sources' language, such as `npformer.load` returns.
        sources: The sentences; an empty one has an empty translation.
        references: One reference for each sentence.
        setting: "tokenised" or "raw". None detects the setting of the references.
        beam: The beam of beam search; 1 is greedy search.
        length_penalty: The exponent of the length penalty of beam search; 0 for none.
        known_words: The words of the target language that count as not invented, or None.
        seed: The seed of the bootstrap samples.
        progress: A function that is called with the number of sentences finished since the last call.
        search: Further settings of the search, as in translate_ids.

    Raises:
        UserError: If the numbers of lines differ, there is no line, an option is out of range, a line is too
            long for the model, or sacrebleu is not installed; before any sentence is translated.
    """
    if len(sources) != len(references):
        raise UserError(
            f"there are {quantity(len(sources), 'sentence')} and {quantity(len(references), 'reference')}: "
            "give one reference for each sentence"
        )
    if not references:
        raise UserError("there is no sentence to score: give at least one")
    require_sacrebleu()
    setting = setting or setting_of(references)
    start = time.perf_counter()
    search |= {"beam": beam, "length_penalty": length_penalty}
    translations = translator.translate(sources, form=setting, progress=progress, **search)
    seconds = time.perf_counter() - start
    result = bleu(translations, references, setting)
    counts = sentence_counts(translations, references, TOKENIZERS[setting])
    known = known_words
    invented = None if known is None else find_invented_words(translations, sources, references, known)
    return TranslationScore(
        bleu=result.score,
        signature=result.signature,
        setting=setting,
        brevity_penalty=result.brevity_penalty,
        sentences=len(sources),
        empty=sum(not text for text in translations),
        seconds=seconds,
        half_width=bleu_half_width(counts, seed=seed) if len(counts) >= LEAST_RESAMPLED else None,
        by_length=bleu_by_length(counts, sources, seed=seed),
        invented=invented,
        translations=translations,
    )
