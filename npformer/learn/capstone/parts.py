"""The twelve parts of the Transformer that `npformer build` assembles, and the milestones on the way."""

from dataclasses import dataclass

from npformer.language import GRADER, later, phrase, say
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.learn.tasks import Folder


@dataclass(frozen=True)
class Part:
    """A part of the Transformer, which is the learner's if all its exercises are solved.

    Args:
        name: The name, for commands and messages.
        names: The names of the exercises whose functions the part consists of, in the order of the course.
        package: The place of the package's own part.
    """

    name: str
    names: tuple[str, ...]
    package: str

    @property
    def exercises(self) -> list[Exercise]:
        """The exercises whose functions the part consists of."""
        return [EXERCISES.find(name) for name in self.names]


PARTS = (
    Part(later("embedding"), ("embedding", "embedding-backward"), "functional/embedding.py"),
    Part(later("positions"), ("sinusoids",), "functional/positions.py"),
    Part(later("softmax"), ("softmax", "softmax-backward"), "functional/softmax.py"),
    Part(later("attention"), ("attention", "attention-backward"), "functional/attention.py"),
    Part(later("masks"), ("causal-mask", "padding-mask"), "functional/masks.py"),
    Part(
        later("heads"),
        ("split-heads", "merge-heads", "multi-head", "multi-head-backward"),
        "nn/attention/multi_head.py",
    ),
    Part(later("layer norm"), ("layer-norm", "layer-norm-backward"), "functional/norm.py"),
    Part(later("residual"), ("residual", "residual-backward"), "models/transformer/pre_norm.py"),
    Part(later("feed-forward"), ("feed-forward", "feed-forward-backward"), "nn/feed_forward.py"),
    Part(later("cross-entropy"), ("cross-entropy", "cross-entropy-backward"), "functional/losses.py"),
    Part(later("Adam"), ("adam-step",), "training/optimizer.py"),
    Part(later("greedy search"), ("greedy",), "generation/greedy.py"),
)
NAMES = tuple(part.name for part in PARTS)

# what the Transformer does by these parts, once all of them are the learner's
MILESTONES = (
    (("embedding", "positions"), later("Tokens become vectors that know their positions.")),
    (("softmax", "attention", "masks"), later("Every token attends to the tokens that it may attend to.")),
    (("heads",), later("Several heads attend at once, forward and backward.")),
    (
        ("layer norm", "residual", "feed-forward"),
        later("The layers of the encoder and of the decoder are complete."),
    ),
    (("cross-entropy", "Adam"), later("The Transformer learns.")),
    (("greedy search",), later("The Transformer writes a translation.")),
)


def own_parts(folder: Folder) -> list[Part]:
    """Return the parts whose exercises are all solved in the learner's folder."""
    return [part for part in PARTS if all(folder.state(exercise) == "solved" for exercise in part.exercises)]


def part_of(exercise: Exercise) -> Part | None:
    """Return the part to which an exercise belongs, or None."""
    return next((part for part in PARTS if exercise.name in part.names), None)


def progress(finished: list[str], count: int) -> str:
    """Return a sentence such as "Your attention is in; 7 of 12 parts are yours."

    Args:
        finished: The names of the parts that are named as the learner's.
        count: The number of all parts that are the learner's.
    """
    yours = say("{count} of {all} parts are yours.", count=count, all=len(PARTS))
    if count == 1:
        yours = say("1 of {all} parts is yours.", all=len(PARTS))
    if not finished:
        return yours
    if len(finished) == len(PARTS):
        return say("All your parts are in; {yours}", yours=yours)
    names = listed([phrase(name, GRADER) for name in finished])
    if len(finished) == 1 and not finished[0].endswith("s"):  # such as masks
        return say("Your {names} is in; {yours}", names=names, yours=yours)
    return say("Your {names} are in; {yours}", names=names, yours=yours)


def next_exercise(folder: Folder, part: Part) -> Exercise | None:
    """Return the first exercise of a part that is not solved, or None if the part is the learner's."""
    return next((each for each in part.exercises if folder.state(each) != "solved"), None)


def listed(names: list[str]) -> str:
    """Return names as a text: "a", "a and b", or "a, b and c"."""
    return names[0] if len(names) == 1 else say(" and ").join([say(", ").join(names[:-1]), names[-1]])
