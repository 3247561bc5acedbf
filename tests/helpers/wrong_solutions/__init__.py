"""Wrong solutions of exercises, with the diagnosis that the grader must make of each."""

from wrong_solutions.hard import HARD
from wrong_solutions.latent import LATENT
from wrong_solutions.layers import LAYERS
from wrong_solutions.local import LOCAL
from wrong_solutions.pairs import PAIRS
from wrong_solutions.recurrent import RECURRENT
from wrong_solutions.relative import RELATIVE
from wrong_solutions.translation import TRANSLATION
from wrong_solutions.values import VALUES
from wrong_solutions.wrong import Wrong

WRONG = (*PAIRS, *LAYERS, *VALUES, *RECURRENT, *HARD, *LOCAL, *LATENT, *RELATIVE, *TRANSLATION)

__all__ = ["WRONG", "Wrong"]
