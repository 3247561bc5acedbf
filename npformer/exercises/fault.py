"""Fault and Verdict: what the grader found."""

from dataclasses import asdict, dataclass, field


@dataclass
class Verdict:
    """The end of a check: solved, or the first thing that is wrong."""

    solved: bool
    says: str  # one sentence
    looks_like: list[str] = field(default_factory=list)  # what it is likely to be
    picture: str = ""  # where it differs, in characters
    difference: list | None = None  # the same as numbers: the rows of one slice
    printed: str = ""  # by the learner's code
    told: list[str] = field(default_factory=list)  # what there is to tell once it is solved, in lines

    def as_json(self) -> dict:
        """A dict of plain values."""
        return asdict(self)


class Fault(Exception):
    """Raised where a check cannot go on, or need not: the first thing that is wrong."""

    def __init__(self, says: str, looks_like: tuple[str, ...] = (), picture: str = "", difference=None):
        super().__init__(says)
        self.verdict = Verdict(False, says, [text for text in looks_like if text], picture, difference)
