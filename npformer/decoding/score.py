"""The score of a translator on a set of sentences: translate them all, and count BLEU."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npformer.bleu import bleu, require_sacrebleu, setting_of
from npformer.decoding.forms import in_form
from npformer.decoding.translator import Translator
from npformer.errors import UserError


class Score(NamedTuple):
    """What a translator reached on a set."""

    bleu: float  # 0 .. 100
    signature: str  # sacrebleu's, which says how it was counted
    setting: str  # "tokenised" or "raw"
    brevity_penalty: float
    sentences: int
    empty: int  # translations without a word
    seconds: float  # of translating, by the clock on the wall
    translations: list[str]  # in the form of the references


def score(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    setting: str | None = None,
    beam: int = 5,
    length_penalty: float = 0.6,
    progress: Callable[[int], None] | None = None,
) -> Score:
    """Translate the sources and hold the translations against the references.

    setting: "tokenised" or "raw"; None takes the one that the references are in. progress is told how many
    sentences have been finished since it was told last.
    Errors: UserError for different numbers of lines or none, an option out of range, a line too long for the
    model, or where sacrebleu is not installed: all of it before anything is translated.
    """
    if len(sources) != len(references):
        raise UserError(
            f"there are {len(sources)} sentences and {len(references)} references: give one for each"
        )
    if not references:
        raise UserError("there is no sentence to score: give at least one")
    require_sacrebleu()
    setting = setting or setting_of(references)
    start = time.perf_counter()
    found = translator.translate_all(sources, beam=beam, length_penalty=length_penalty, progress=progress)
    seconds = time.perf_counter() - start
    translations = [in_form(translator.target_codec, text, setting) for text in found]
    counted = bleu(translations, references, setting)
    return Score(
        bleu=counted.score,
        signature=counted.signature,
        setting=setting,
        brevity_penalty=counted.brevity_penalty,
        sentences=len(sources),
        empty=sum(not text for text in translations),
        seconds=seconds,
        translations=translations,
    )
