"""Models that translate a description into an if-then program: a trigger and an action."""

from npformer.models.if_then.descriptions import BagOfWords, DescriptionModel, Program, ProgramLoss
from npformer.models.if_then.reader import RecipeReader

__all__ = ["BagOfWords", "DescriptionModel", "Program", "ProgramLoss", "RecipeReader"]
