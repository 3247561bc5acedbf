"""The map of the course: the parts of the Transformer in the order of the data, and the parts of each lesson.

Every lesson opens with a line that shows one chain of parts. The parts that the lesson treats are in brackets
and in capitals, as in `model: ids → [EMBEDDING] → positions → encoder → decoder → linear → softmax`. A lesson
that treats a whole chain has the name of the chain in brackets. Figure F01 shows the same map as a picture.
"""

import re
from dataclasses import dataclass

from npformer.data.corpus.entries import table_rows

# name of the chain | its parts
CHAINS = """
model           | ids, embedding, positions, encoder, decoder, linear, softmax
each layer      | x, attention, add & norm, feed-forward, add & norm, y
attention       | queries and keys, scores, mask, softmax, mean of values
training step   | forward pass, loss, backward pass, update
training        | batch, model, loss, backward pass, optimizer, parameters
decoding        | encoder, decoder, softmax, search, translation
recurrent model | embedding, recurrent layer, attention, output layer
language model  | ids, embedding, layers, norm, linear, softmax
"""

# chapter, or a lesson that differs from its chapter | chain | parts that are treated; without any, the chain
PLACES = """
0.0  | training step   |
0.1  | model           |
0.2  | model           | linear
0.3  | model           | linear
1    | model           | ids
2    | model           | embedding
3    | model           | positions
4    | each layer      | attention
4.5  | attention       | scores
4.6  | attention       | scores
5    | each layer      | attention
5.3  | attention       | scores
6    | attention       | mask
7    | each layer      | attention
8    | each layer      | add & norm
9    | each layer      | feed-forward
10   | model           | encoder
11   | model           | decoder
12   | training step   | loss
12.1 | model           | linear, softmax
13   | training        | optimizer
13.4 | training        |
13.5 | training        |
14   | decoding        | search
14.4 | decoding        | decoder
15   | each layer      | attention
16   | training        |
16.4 | each layer      | attention
17   | recurrent model | recurrent layer
17.4 | recurrent model | attention
17.5 | recurrent model | recurrent layer, attention
18   | recurrent model | attention
19   | attention       | mean of values
20   | recurrent model | attention
20.1 | recurrent model | embedding, output layer
21   | attention       | scores, mean of values
21.3 | model           | positions
21.4 | model           | encoder, decoder
21.5 | model           | encoder, decoder
21.6 | model           | encoder, decoder
22   | decoding        | search
22.1 | model           | ids
22.2 | model           | embedding, linear
22.3 | decoding        | translation
22.4 | training        | optimizer
22.6 | model           |
23   | each layer      | add & norm
23.2 | attention       | queries and keys
23.3 | each layer      | feed-forward
23.4 | attention       | queries and keys, mask
23.5 | training        | optimizer
24.1 | language model  | embedding, layers, norm, linear
24.2 | language model  | softmax
24.3 | language model  | embedding, layers, norm
24.4 | language model  | layers
24.5 | training        |
25   | language model  |
26   | training        | optimizer
26.2 | each layer      | attention
26.3 | each layer      | feed-forward
26.4 | each layer      | attention
27   | training        | loss
27.1 | language model  | layers
27.2 | language model  | layers
27.6 | language model  | softmax
"""
NUMBERS = re.compile(r"(\d\d)_(?:(\d)_)?")  # at the beginning of a lesson's name: the chapter and the part
LAST_OF_THE_MODEL = 12  # the chapter after which the course has treated every part of the model
# the parts of figure F01 whose names differ there, or which it does not show in one box
IN_FIGURE = {
    "queries and keys": "attention",
    "scores": "attention",
    "mask": "attention",
    "mean of values": "attention",
    "layers": "decoder",
    "norm": "add & norm",
    "linear": "output",
    "softmax": "output",
    "search": "output",
    "translation": "output",
}
NOT_IN_FIGURE = ("ids", "loss", "optimizer", "recurrent layer", "output layer")


@dataclass(frozen=True)
class LessonPlace:
    """The place of a lesson in the architecture.

    Args:
        chain: The name of the chain, from CHAINS.
        parts: The parts of the chain that the lesson treats; none for the whole chain.
    """

    chain: str
    parts: tuple[str, ...]

    @property
    def line(self) -> str:
        """The line that opens the lesson: the chain with the parts of the lesson in brackets and capitals."""
        name = self.chain if self.parts else _marked(self.chain)
        shown = [_marked(part) if part in self.parts else part for part in chains()[self.chain]]
        return f"{name}: {' → '.join(shown)}"

    @property
    def highlighted(self) -> tuple[str, ...]:
        """The names of the parts in figure F01, which are empty if it shows none of them."""
        if self.chain == "recurrent model":
            return ()
        names = [IN_FIGURE.get(part, part) for part in self.parts if part not in NOT_IN_FIGURE]
        return tuple(dict.fromkeys(names))


def chains() -> dict[str, list[str]]:
    """Return the parts of each chain, in the order of the data."""
    return {name: parts.split(", ") for name, parts in table_rows(CHAINS)}


def places() -> dict[str, LessonPlace]:
    """Return the place for each number of a chapter or a lesson in PLACES."""
    return {
        number: LessonPlace(chain, tuple(parts.split(", ")) if parts else ())
        for number, chain, parts in table_rows(PLACES)
    }


def place_of(name: str) -> LessonPlace | None:
    """Return the place of a lesson, or None if the map has neither the lesson nor its chapter.

    Args:
        name: The name of the lesson, such as "05_3_what_the_scale_does".
    """
    found = NUMBERS.match(name)
    if found is None:
        return None
    table, chapter = places(), int(found[1])
    return table.get(f"{chapter}.{found[2]}") or table.get(str(chapter))


def chapters_of_parts() -> dict[str, str]:
    """Return the chapters that explain each part of the model in figure F01, such as {"attention": "4–7"}."""
    chapters: dict[str, list[int]] = {}
    for number, place in places().items():
        chapter = int(number.split(".")[0])
        if 1 <= chapter <= LAST_OF_THE_MODEL and place.chain != "training":
            for part in place.parts:
                chapters.setdefault(IN_FIGURE.get(part, part), []).append(chapter)
    ends = {part: (str(min(numbers)), str(max(numbers))) for part, numbers in chapters.items()}
    return {part: first if first == last else f"{first}–{last}" for part, (first, last) in ends.items()}


def _marked(text: str) -> str:
    return f"[{text.upper()}]"
