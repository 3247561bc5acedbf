"""Recipes for real translators: which text, which model and which training go together.

Each goes by the name of its training preset, TrainingConfig.preset(name), which says the rest.
Source: the Transformer-Tiny of Wu et al. 2021, "Good for misconceived reasons", which reached 41.02 BLEU on
test2016 of Multi30k, English to German, on lowercased and tokenised text.
"""

from dataclasses import dataclass
from os import PathLike

from npformer.data.datasets import Dataset, files_dataset
from npformer.data.multi30k import FOLDER, corpus_files


@dataclass(frozen=True)
class Recipe:
    """What `npformer train --recipe NAME` reads, and which model it trains."""

    direction: str = "en-de"
    subwords: int = 10_000  # of both languages together
    max_length: int = 100  # the longest sentence to learn from, in subwords
    model: str = "multi30k"  # the preset

    def dataset(self, folder: str | PathLike[str] = FOLDER) -> Dataset:
        """The corpus in a folder that `npformer data multi30k` wrote, as lowercased, tokenised subwords.

        Errors: UserError where a file of it is missing, or sentencepiece is not installed.
        """
        files = corpus_files(folder, self.direction, tokenised=True)
        return files_dataset(
            *files.train,
            valid=files.valid,
            test=files.test,
            max_length=self.max_length,
            subwords=self.subwords,
            text="tokenised",
        )


RECIPES = {
    "multi30k-en-de": Recipe(),  # to the published score
    "multi30k-en-de-short": Recipe(),  # as far as 50 minutes on two cores go
}
