"""The bug zoo: code that looks right and mostly trains, with one bug that real projects shipped."""

import difflib
import re

from npformer.errors import UserError
from npformer.zoo.cases import ALL
from npformer.zoo.specimen import Run, Specimen, Trial

SPECIMENS = {specimen.name: specimen for specimen in ALL}

__all__ = ["SPECIMENS", "Run", "Specimen", "Trial", "find"]


def find(text: str) -> Specimen:
    """The bug of this number or name: "3", "embedding", or "03_embedding" as its file is called.

    Errors: UserError for an unknown one, with the nearest.
    """
    if re.fullmatch(r"-?\d+", text):
        if 1 <= int(text) <= len(ALL):
            return ALL[int(text) - 1]
        raise UserError(f"there is no bug {text}: they have the numbers 1 to {len(ALL)}")
    name = re.sub(r"^\d+_", "", text).replace("_", "-").lower()
    if name in SPECIMENS:
        return SPECIMENS[name]
    near = difflib.get_close_matches(name, SPECIMENS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "npformer bugs list names them all"
    raise UserError(f"there is no bug {text!r}: {hint}")
