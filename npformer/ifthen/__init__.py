"""From a description in words to an if-then program: which trigger, and which action."""

from npformer.ifthen.bag import BagOfWords
from npformer.ifthen.descriptions import DescriptionModel, Program
from npformer.ifthen.loss import ProgramLoss
from npformer.ifthen.reader import RecipeReader

__all__ = ["BagOfWords", "DescriptionModel", "Program", "ProgramLoss", "RecipeReader"]
