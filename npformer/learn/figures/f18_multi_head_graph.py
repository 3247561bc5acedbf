"""F18: the graph of multi-head attention."""

from matplotlib.patches import Rectangle

from npformer.learn.figures.architecture_parts import GAP, HIGH, config_of
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.transformer import TransformerConfig
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import Box
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import FORMULA

SHOWN = 3  # the number of heads of a pile that are drawn
OFFSET = 0.08  # from one head of a pile to the next behind it
APART = 1.6  # from V to K to Q


@figure("F18", "The graph of multi-head attention", "jianshu", "SC", "7.1", config_of)
def multi_head(config: TransformerConfig) -> Drawing:
    """Draw V, K and Q through each head's linear maps, attention, concatenation and a last linear map."""
    d, heads, key, value = config.d_model, config.n_heads, config.head_key, config.head_value
    kind = "linear" if config.projection_activation == "none" else f"linear, {config.projection_activation}"
    with new_board() as board:
        back = OFFSET * (min(SHOWN, heads) - 1)
        wide = 2 * APART + 1.3
        whole = _pile(board, "scaled dot-product attention", (0, 1.35), wide, "attention", heads)
        for i, (letter, role, width) in enumerate((("V", "v", value), ("K", "k", key), ("Q", "q", key))):
            x = (i - 1) * APART
            linear = _pile(board, f"{kind}\n{d} → {width}", (x, 0.25), 1.3, "linear", heads)
            source = board.box(letter, x, -0.75, 0.42, 0.36, colour=role)
            board.arrow(source.top, linear.bottom)
            board.arrow(linear.top, (x, whole.bottom[1]))
        board.text(whole.right[0] + back + 0.12, whole.y, f"h = {heads}", size=FORMULA, ha="left")
        # the boxes that combine the heads' outputs; one head needs no concatenation
        last, joined = whole, heads * value
        rows = [(f"concat\n{heads} × {value} = {joined}", "plain")] if heads > 1 else []
        rows += [(f"linear\n{joined} → {d}", "linear")] if config.attention_output else []
        for label, colour in rows:
            room = GAP + 0.08 + (back if last is whole else 0)
            box = board.box(label, 0, last.top[1] + room + HIGH / 2, 1.7, HIGH, colour=colour)
            board.arrow(last.top, box.bottom)
            last = box
        board.arrow(last.top, (0, last.top[1] + 0.4))
    mixed = f", and a last linear map projects them to {d}" if config.attention_output else ""
    widths = f"{key} dimensions" + (f" ({value} for the values)" if value != key else "")
    if heads > 1:
        text = (
            f"{heads} heads, each with its own linear maps from {d} to {widths}, so each compares queries "
            "with keys in its own way. Their outputs are concatenated, which gives "
            f"{heads} × {value} = {joined} numbers per token{mixed}."
        )
    else:
        text = f"1 head with linear maps from {d} to {widths}. It gives {joined} numbers per token{mixed}."
    return Drawing(board.figure, text)


def _pile(board: Board, label: str, at: tuple[float, float], width: float, colour: str, count: int) -> Box:
    """Draw equal boxes behind each other, at most SHOWN of `count`, and return the one in front."""
    x, y = at
    for index in range(min(SHOWN, count) - 1, 0, -1):
        left, bottom = x - width / 2 + index * OFFSET, y - HIGH / 2 + index * OFFSET
        behind = Rectangle((left, bottom), width, HIGH, facecolor=colour_of(colour), edgecolor="#5f6368")
        behind.set(zorder=2.9 - 0.1 * index, clip_on=False)
        board.ax.add_patch(behind)
        board.take(left, bottom, left + width, bottom + HIGH)
    return board.box(label, x, y, width, HIGH, colour=colour)
