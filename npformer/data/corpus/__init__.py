"""The built-in English-French corpus: sentences made by a grammar, with known ambiguities."""

from npformer.data.corpus.pairs import Family, Pair, Reference
from npformer.data.corpus.split import BuiltinCorpus, builtin_corpus

__all__ = ["BuiltinCorpus", "Family", "Pair", "Reference", "builtin_corpus"]
