"""BLEU of translations against references, by sacrebleu, with the signature that says how it was counted.

sacrebleu takes a while to load: it is imported where a score is asked for, and whoever leaves it out loses
nothing else.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from npformer.errors import UserError
from npformer.settings import require_choice

# how sacrebleu splits the lines of each setting into words
TOKENIZERS = {
    "tokenised": "none",  # lowercased, punctuation set apart: what stands between blanks is a word
    "raw": "13a",  # as people write it, in their case: split as the WMT evaluations do
}

# A mark that clings to the word before it, as in raw text, and one that stands alone, as tokenisers leave it.
# No semicolon among them: it ends the &apos; and &quot; of tokenised text.
_CLINGING = re.compile(r"\w[.,:!?](?=\s|$)")
_ALONE = re.compile(r"(?<!\S)[.,:!?](?=\s|$)")


class Bleu(NamedTuple):
    """A score with all that it takes to compare it to another."""

    score: float  # 0 .. 100
    signature: str  # sacrebleu's
    brevity_penalty: float  # exp(1 - reference words / translated words), 1 where those are more
    setting: str


def bleu(translations: Sequence[str], references: Sequence[str], setting: str) -> Bleu:
    """Corpus BLEU: brevity penalty × the geometric mean of the precisions of 1- to 4-grams.

    setting: "tokenised" for lowercased, tokenised lines, or "raw" for text as people write it, in their case.
    Errors: UserError where the numbers of lines differ, there is none, or sacrebleu is not installed.
    Source: Papineni et al. 2002; Post 2018, for the signature.
    """
    require_choice("setting", setting, tuple(TOKENIZERS))
    if len(translations) != len(references):
        raise UserError(
            f"there are {len(translations)} translations and {len(references)} references: give one for each"
        )
    if not references:
        raise UserError("there is no line to score: give at least one")
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    # force: no warning that tokenised lines look tokenised
    metric = BLEU(tokenize=TOKENIZERS[setting], force=True)
    found = metric.corpus_score(list(translations), [list(references)])
    return Bleu(found.score, str(metric.get_signature()), found.bp, setting)


def setting_of(lines: Sequence[str]) -> str:
    """The setting of the lines: "tokenised" if lowercase throughout and punctuation set apart, or "raw".

    Punctuation is set apart where at least as many marks stand alone as cling to a word, for "st." and "etc."
    keep theirs in tokenised text.
    """
    if any(line != line.lower() for line in lines):
        return "raw"
    text = "\n".join(lines)
    return "tokenised" if len(_ALONE.findall(text)) >= len(_CLINGING.findall(text)) else "raw"


def require_sacrebleu() -> None:
    """Errors: UserError where sacrebleu is not installed, with the line that installs it."""
    try:
        import sacrebleu  # noqa: F401
    except ImportError:
        raise UserError(
            "BLEU needs sacrebleu, which is not installed: pip install 'npformer[translation]'"
        ) from None
