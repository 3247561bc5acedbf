"""F59: attention as a soft search with a query, keys and values."""

from collections.abc import Sequence

import numpy as np

from npformer.errors import UserError
from npformer.functional import attention
from npformer.learn.figures.architecture_parts import HIGH
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots.board import new_board
from npformer.plots.style import FORMULA, LABEL, literal, number, visible, widest

QUERY = "how does attention work"
TITLES = ("attention explained", "how does a transformer work", "funny cats", "ten soups for winter")


@figure("F59", "Query, keys and values as a search", "paperspace", "SC", "4.3")
def retrieval(*, query: str = QUERY, titles: Sequence[str] = TITLES) -> Drawing:
    """Draw a search: the query is compared with the titles of videos, and the answer is a mixture of videos.

    The score of a title is the number of words that it shares with the query. A search returns the
    video with the highest score; attention uses the softmax of the scores as weights. There are 2 to 8
    titles.
    """
    if isinstance(titles, str) or not 2 <= len(titles) <= 8 or not query.split():
        raise UserError("give a query of at least one word, and a list of 2 to 8 titles")
    query, titles = visible(query), [visible(title) for title in titles]
    scores, weights = retrieve(query, titles)
    with new_board(query, titles, what=f"a search with {len(titles)} titles") as board:
        wide = max(widest([query], LABEL), 1.4) + 0.24, max(widest(titles, LABEL), 1.4) + 0.24
        end = wide[0] / 2 + 1.1 + wide[1]  # of the keys
        xs = (0, end - wide[1] / 2, end + 1.9, end + 4.1)  # of the query, the keys, the values, the answer
        parts = [f"{number(weight)} video {i + 1}" for i, weight in enumerate(weights)]
        query_box = board.box(literal(query), xs[0], 0, wide[0], HIGH, colour="q")
        answer = board.box("\n+ ".join(parts), xs[3], 0, 1.3, 0.2 * len(parts) + 0.2, colour="z")
        for i, (title, weight) in enumerate(zip(titles, weights, strict=True)):
            y = ((len(titles) - 1) / 2 - i) * 0.75
            key = board.box(literal(title), xs[1], y, wide[1], HIGH, colour="k")
            value = board.box(f"video {i + 1}", xs[2], y, 1.0, HIGH, colour="v")
            for ends in ((query_box.right, key.left), (key.right, value.left), (value.right, answer.left)):
                board.arrow(*ends, width=0.8 + 5 * weight, colour="faint", head=False)
            middle = (key.right[0] + value.left[0]) / 2
            board.text(middle, y + 0.07, f"{scores[i]:.0f} → {number(weight)}", va="bottom")
        top = len(titles) / 2 * 0.75 + 0.05
        names = (("query", xs[0]), ("keys", xs[1]), ("values", xs[2]), ("answer", xs[3]))
        for (name, x), box in zip(names, (query_box, None, None, answer), strict=True):
            height = top if box is None else box.top[1] + 0.12
            board.text(x, height, name, size=FORMULA, weight="bold", va="bottom")
        board.text((end + xs[2] - 0.5) / 2, top, "score → weight", va="bottom")
    best = int(np.argmax(scores))
    return Drawing(
        board.figure,
        "A search compares the query with every key. Here the score is the number of shared words, "
        f"{scores[best]:.0f} with “{titles[best]}”. A search would return only the value of this key. "
        "Attention returns a weighted mean of all values, with the softmax of the scores as weights: "
        f"{number(weights[best])} for video {best + 1}.",
    )


def retrieve(query: str, titles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and weights of the titles, each text represented by the counts of its words.

    Shapes: -> (N,), (N,).
    """
    vocabulary = sorted({word for text in (query, *titles) for word in text.lower().split()})

    def counted(text: str) -> list[float]:
        words = text.lower().split()
        return [float(words.count(word)) for word in vocabulary]

    q, k = np.array([counted(query)]), np.array([counted(title) for title in titles])  # (1, V), (N, V)
    _, cache = attention(q, k, np.eye(len(titles)), scale=1.0)
    return cache.scores[0], cache.weights[0]
