"""Two plans for a course: lessons, exercises and the time that the reading takes, week by week."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.course.references import SourceLocation


@dataclass(frozen=True)
class Week:
    """A week of a course.

    Args:
        topic: The topic.
        lessons: The numbers of the lessons to read, such as "5.2".
        exercises: The names of the exercises to solve.
        then: What students do at the end of the week.
    """

    topic: str
    lessons: tuple[str, ...]
    exercises: tuple[str, ...]
    then: str


SIX_WEEKS = (
    Week(
        "Forward and backward; words, embeddings, positions",
        ("0.0", "0.1", "0.2", "1.1", "2.1", "3.1"),
        ("linear-backward", "pad", "embedding-backward", "sinusoids"),
        "`npformer tour`, and the first page of the explorer",
    ),
    Week(
        "Attention and the softmax",
        ("4.2", "4.3", "4.4", "5.1"),
        ("dot-similarity-backward", "softmax", "softmax-backward"),
        "`npformer masks` on a sentence of one's own",
    ),
    Week(
        "The backward pass of attention; masks",
        ("5.2", "5.3", "6.1", "6.3", "7.1"),
        ("attention", "attention-backward", "causal-mask", "padding-mask"),
        "`npformer bugs start 1`",
    ),
    Week(
        "Heads, layers and the encoder",
        ("7.2", "7.3", "8.1", "8.2", "8.3", "9.1", "10.1"),
        ("multi-head-backward", "layer-norm-backward", "residual-backward", "encoder-layer-backward"),
        "`npformer build`, to see which parts work",
    ),
    Week(
        "Decoder, loss and training",
        ("11.1", "11.4", "12.1", "12.2", "13.2", "13.4"),
        ("shift-right", "cross-entropy", "cross-entropy-backward", "adam-step"),
        "`npformer train`, and its curves",
    ),
    Week(
        "Decoding; what attention learned",
        ("14.1", "14.3", "14.4", "15.1", "15.2", "15.3"),
        ("greedy", "length-norm", "cached-step"),
        "`npformer build --train`, and a translation",
    ),
)

TWELVE_WEEKS = (
    Week(
        "Forward and backward",
        ("0.0", "0.1", "0.2", "0.3", "1.1"),
        ("swish-backward", "linear-backward", "derivative", "pad", "truncate"),
        "`npformer tour`",
    ),
    Week(
        "Embeddings and positions",
        ("1.2", "2.1", "2.2", "3.1", "3.2"),
        ("embedding", "embedding-backward", "tied-backward", "sinusoids", "positions-backward"),
        "`npformer gradcheck` on a function of one's own",
    ),
    Week(
        "Attention as a lookup",
        ("4.1", "4.2", "4.3", "4.4"),
        ("dot-similarity-backward",),
        "figures F08 and F09, from one's own sentence",
    ),
    Week(
        "Similarities and the softmax",
        ("4.5", "4.6", "5.1"),
        ("general-similarity-backward", "softmax", "softmax-backward"),
        "a derivation on paper: the gradient of the softmax",
    ),
    Week(
        "Scaled dot-product attention and masks",
        ("5.2", "5.3", "6.1", "6.2"),
        ("attention", "attention-backward", "causal-mask", "padding-mask"),
        "`npformer bugs`, two of them",
    ),
    Week(
        "Leaks; several heads",
        ("6.3", "6.4", "7.1", "7.2"),
        ("local-mask", "mask-scores-backward", "split-heads", "merge-heads"),
        "`npformer explore` on a sentence of one's own",
    ),
    Week(
        "Multi-head attention, residual connections, norms, feed-forward networks",
        ("7.3", "7.4", "8.1", "8.2", "8.3", "9.1", "9.2"),
        ("multi-head", "multi-head-backward", "layer-norm", "layer-norm-backward", "feed-forward-backward"),
        "`npformer build`, to see which parts work",
    ),
    Week(
        "Encoder and decoder",
        ("10.1", "10.2", "10.3", "11.1", "11.3", "11.4"),
        ("encoder-layer-backward", "encoder-backward", "decoder-layer-backward", "shift-right"),
        "an oral exam: each array of one layer, with its shape",
    ),
    Week(
        "Loss and training",
        ("12.1", "12.2", "12.3", "13.1", "13.2", "13.3", "13.4"),
        ("cross-entropy", "cross-entropy-backward", "smooth-targets", "adam-step", "warmup", "clip-gradient"),
        "`npformer build --train`",
    ),
    Week(
        "Decoding, and what attention learned",
        ("14.1", "14.2", "14.3", "14.4", "15.1", "15.2", "15.3"),
        ("greedy", "best-continuations", "length-norm", "cached-step"),
        "`npformer score` on a test set",
    ),
    Week(
        "The parts of today's Transformer",
        ("23.1", "23.2", "23.3", "23.4", "23.5"),
        ("rms-norm-backward", "rotate", "rotate-backward", "swiglu-backward", "adamw-step"),
        "`npformer experiment ablation`",
    ),
    Week(
        "A GPT that writes; a real model",
        ("24.1", "24.2", "24.3", "24.4", "25"),
        ("windows", "temperature", "nucleus", "append-in-place"),
        "a project: one mechanism of chapters 17 to 22, explained with one's own figures",
    ),
)


def syllabus_table(weeks: Sequence[Week], folder: Path) -> str:
    """Return a plan as a Markdown table.

    Args:
        weeks: The weeks.
        folder: The folder of the page, for links to the lessons.
    """
    lessons = {lesson.number: lesson for lesson in all_lessons()}
    rows = ["| week | topic | read | minutes | solve | then |", "|---:|---|---|---:|---|---|"]
    for number, week in enumerate(weeks, 1):
        read = [lessons[each] for each in week.lessons]
        links = ", ".join(_link(lesson, folder) for lesson in read)
        solve = ", ".join(f"`{name}`" for name in week.exercises)
        minutes = sum(map(minutes_of, read))
        rows.append(f"| {number} | {week.topic} | {links} | {minutes} | {solve} | {week.then} |")
    return "\n".join(rows)


def _link(lesson: Lesson, folder: Path) -> str:
    return SourceLocation(lesson.number, lesson.path, 1).link(folder, lesson.number)
