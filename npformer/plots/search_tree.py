"""The tree of a beam search, with the prefixes that were kept and those that were dropped."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from npformer.errors import UserError, quantity
from npformer.plots.boxes import rounded
from npformer.plots.layout import root, sheet
from npformer.plots.palette import COLOURS
from npformer.plots.style import SMALL, TEXT, drawing, line_height, number, text_size, visible, widest
from npformer.validation import short

BETWEEN = 0.75  # the distance between the boxes of two steps, in inches
HIGH = 2 * line_height(TEXT) + 0.06  # the height of a node, which shows its token and its log-probability
APART = 0.1  # inches, between two nodes, and between a text and the border of its node


class Node(NamedTuple):
    """A continuation that a step of the search considered."""

    parent: int  # its index among the nodes of the step before; -1 for the start
    token: str
    log_prob: float  # the log-probability of all tokens from the start to this one
    kept: bool


def beam_tree(
    steps: Sequence[Sequence[tuple[int, str, float, bool]]],
    *,
    start: str = "<s>",
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the tree of a beam search from left to right, kept branches dark and dropped branches faint.

    Args:
        steps: The continuations that each step considered, as (parent, token, log_prob, kept). `parent` is
            the index of the continued node in the step before, -1 in the first step. `log_prob` is the
            log-probability of all tokens so far.
        start: The text of the root.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a parent does not exist, or the tree does not fit.
    """
    for node in (node for step in steps for node in step):
        if len(node) != len(Node._fields):
            raise UserError(f"a node of the tree is {short(node)}: give (parent, token, log_prob, kept)")
    tree = [[Node(*node) for node in step] for step in steps]
    if not tree or not all(tree):
        raise UserError("the tree has no steps, or one of them is empty")
    for t, step in enumerate(tree):
        for node in step:
            if t == 0 and node.parent != -1:
                raise UserError(
                    f"step 0 has a node {node.token!r} with parent {node.parent}: give -1, the start"
                )
            if t > 0 and node.parent not in range(len(tree[t - 1])):
                raise UserError(
                    f"step {t} has a node {node.token!r} whose parent {node.parent} is not in step {t - 1}"
                )
    with drawing(start, [[node.token for node in step] for step in tree], title):
        return _draw(tree, visible(start), ax, title)


def steps_of_trace(
    branches: Sequence[Sequence[Any]], vocabulary: Sequence[str], end_id: int
) -> list[list[Node]]:
    """Convert the trace that beam_search records for one sentence into the steps of beam_tree.

    The trace holds the branches that each step kept. In the tree a node counts as kept only if its token is
    end_id or the next step extended it.

    Args:
        branches: For each step, the branches of the trace.
        vocabulary, end_id: The token of each id, and the id of the end symbol.

    Returns:
        The nodes of each step.
    """
    result = []
    for t, step in enumerate(branches):
        parents = {branch.parent for branch in branches[t + 1]} if t + 1 < len(branches) else set()
        kept = [i in parents or branch.token == end_id for i, branch in enumerate(step)]
        nodes = [(branch.parent, vocabulary[branch.token], branch.log_prob) for branch in step]
        result.append([Node(*node, each) for node, each in zip(nodes, kept, strict=True)])
    return result


def _draw(tree: list[list[Node]], start: str, ax: Axes | None, title: str | None) -> Figure:
    widths = [text_size(start, TEXT)[0] + 2 * APART]
    for step in tree:
        texts = widest([visible(node.token) for node in step], TEXT)
        widths.append(max(texts, widest([number(node.log_prob) for node in step], SMALL)) + 2 * APART)
    lefts = np.cumsum([0, *(width + BETWEEN for width in widths[:-1])])
    most = max(len(step) for step in tree)
    height = most * (HIGH + APART) - APART
    width = lefts[-1] + widths[-1]
    what = f"a tree of {quantity(len(tree), 'step')} with up to {most} nodes"
    ax = sheet(width, height, ax=ax, title=title, what=what)
    before = [height / 2]
    _box(ax, 0.0, height / 2, widths[0], start, None, True)
    for t, step in enumerate(tree):
        order = sorted(range(len(step)), key=lambda i: (-before[step[i].parent], -step[i].log_prob))
        heights = np.empty(len(step))
        heights[order] = height / 2 + (HIGH + APART) * ((len(step) - 1) / 2 - np.arange(len(step)))
        for node, y in zip(step, heights, strict=True):
            x0 = lefts[t] + widths[t]
            style: dict[str, Any] = {
                "color": "#a8adb3",
                "linewidth": 1.0,
                "linestyle": (0, (3, 2)),
                "zorder": 1,
            }
            if node.kept:
                style = {"color": COLOURS["highlight"], "linewidth": 2.4, "zorder": 2}
            ax.plot([x0, lefts[t + 1]], [before[node.parent], y], clip_on=False, **style)
            _box(ax, lefts[t + 1], y, widths[t + 1], visible(node.token), node.log_prob, node.kept)
        before = list(heights)
    return root(ax)


def _box(
    ax: Axes, left: float, y: float, width: float, word: str, log_prob: float | None, kept: bool
) -> None:
    face, border, ink = ("#ffefde", "#b85c00", "#000000") if kept else ("#ffffff", "#a8adb3", "#767676")
    style: dict[str, Any] = {"facecolor": face, "edgecolor": border, "linewidth": 1.4 if kept else 0.8}
    rounded(ax, (left, y - HIGH / 2), (width, HIGH), zorder=3, **style)
    middle, up = left + width / 2, line_height(TEXT) / 2 if log_prob is not None else 0
    weight = "bold" if kept and log_prob is not None else "normal"
    centred: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": ink, "zorder": 4}
    ax.text(middle, y + up, word, size=TEXT, weight=weight, parse_math=False, **centred)
    if log_prob is not None:
        ax.text(middle, y - up, number(log_prob), size=SMALL, **centred)
