"""The attention weights of a model for a sentence or a text, and pictures of them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.encoding import Encoding
from npformer.errors import UserError, did_you_mean
from npformer.functional.masks import causal_mask
from npformer.generation import translate_ids
from npformer.lenses.taps import without_logits
from npformer.models.bert import Bert
from npformer.models.encoder import EncoderModelCache
from npformer.models.gpt import GPT, GPTCache
from npformer.models.registry import ModelCache, attention_arrays
from npformer.validation import require_index, short

if TYPE_CHECKING:
    from npformer.plots import Figure
    from npformer.pretrained.loaded import Translator

KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "encoder-decoder attention",
    "self": "self-attention",
}


class ForwardPass(NamedTuple):
    """The forward pass of a model on a sentence and its translation: the tokens, and the cache."""

    source: list[str]  # S tokens, the end symbol included
    target: list[str]  # T tokens, the decoder's input, the start symbol first
    predicted: list[str]  # T tokens, the decoder's targets, the end symbol last
    source_ids: Array  # (1, S) the ids of the three
    target_ids: Array  # (1, T)
    predicted_ids: Array  # (1, T)
    logits: Any  # (1, T, V)
    cache: Any  # a ModelCache


class AttentionMaps:
    """The attention weights of every layer and head, with their tokens: the base of the two classes below.

    Attributes:
        weights: A dict from the kind of attention, one of KINDS, to its weights, of shape
            (L, H, queries, keys). A kind that the model does not have is missing.
    """

    weights: dict[str, Array]

    @property
    def kinds(self) -> list[str]:
        """The kinds of attention that the model has, some of KINDS."""
        return list(self.weights)

    def tokens(self, kind: str) -> tuple[list[str], list[str]]:
        """Return the tokens of the queries and those of the keys."""
        raise NotImplementedError

    def mask(self, kind: str, layer: int | None = None) -> Array | None:
        """Return the mask of a kind, (queries, keys), or None if every query may attend to every key.

        Args:
            kind: One of `kinds`.
            layer: The layer, counted from 0, since the local layers of some models see less than the others.
                Without it, the mask is True where a query may attend in any layer.

        Raises:
            UserError: If the model has no such attention or layer.
        """
        raise NotImplementedError

    def plot(self, kind: str | None = None, *, layer: int | None = None, head: int | None = None) -> "Figure":
        """Draw a heat map for every layer and head, and one of them large.

        Where this does not fit in one picture, only the chosen layer or head is drawn, or without them all
        heads, smaller and with blocks of tokens in one cell, as `npformer.plots.attention` draws them.

        Args:
            kind: The kind of attention of the large map, one of `kinds`. The default is "cross", or the first
                kind that the model has if it has no "cross".
            layer: The layer of the large map, counted from 0.
            head: The head of the large map, counted from 0. If the layer or the head is not given, it is the
                most informative head, as `most_informative_head` chooses it.

        Raises:
            UserError: If the model has no such attention, layer or head, or if there are too many layers,
                heads or tokens for a picture.
        """
        from npformer import plots  # matplotlib takes a second to load

        chosen = {"layer": layer, "head": head}
        kind, layer, head, reason = self._chosen(kind, layer, head)
        queries, keys = self.labels(kind)
        large = (layer, head) if min(len(queries), len(keys)) > 2 else None  # two tokens are large anyway
        try:
            return plots.attention_grid(
                self.weights[kind],
                queries,
                keys,
                mask=self._masks(kind),
                large=large,
                title=title_of(kind) + (reason and f"; {reason}" if large else ""),
            )
        except UserError:
            return self._drawn_smaller(kind, **chosen)

    def plot_head(
        self, kind: str | None = None, *, layer: int | None = None, head: int | None = None
    ) -> "Figure":
        """Draw the heat map of one head.

        Args:
            kind: One of `kinds`. The default is "cross", or the first kind that the model has if it has no
                "cross".
            layer: The layer, counted from 0.
            head: The head, counted from 0. If the layer or the head is not given, the most informative head
                is drawn, as `most_informative_head` chooses it, and the title says so.

        Raises:
            UserError: If the model has no such attention, layer or head, or if there are too many tokens for
                a picture.
        """
        from npformer import plots

        kind, layer, head, reason = self._chosen(kind, layer, head)
        queries, keys = self.labels(kind)
        title = f"{title_of(kind)}, {reason or name_of_head(layer, head)}"
        try:
            return plots.attention_map(
                self.weights[kind][layer, head], queries, keys, mask=self.mask(kind, layer), title=title
            )
        except UserError:
            return self._drawn_smaller(kind, title=title, layer=layer, head=head)

    def plot_lines(
        self,
        kind: str | None = None,
        *,
        layer: int | None = None,
        head: int | None = None,
        token: str | None = None,
    ) -> "Figure":
        """Draw the attention of one head as lines from the queries to the keys.

        Args:
            kind: One of `kinds`. The default is "cross", or the first kind that the model has if it has no
                "cross".
            layer: The layer, counted from 0.
            head: The head, counted from 0. If the layer or the head is not given, the most informative head
                is drawn, as `most_informative_head` chooses it, and the title says so.
            token: Draw only the lines of this query. The default is all queries.

        Raises:
            UserError: If the model has no such attention, layer or head, if no query is this token, or if
                there are too many tokens for a picture.
        """
        from npformer import plots

        kind, layer, head, reason = self._chosen(kind, layer, head)
        queries, _ = self.tokens(kind)
        if token is not None and not (isinstance(token, str) and token in queries):
            near = did_you_mean(str(token), queries)
            raise UserError(f"{short(token)} is not a query of the {KINDS[kind]}: {near}")
        return plots.word_lines(
            self.weights[kind][layer, [head]],
            *self.labels(kind),
            heads=[head],
            query=None if token is None else queries.index(token),
            title=f"{title_of(kind)}, {reason or name_of_head(layer, head)}",
        )

    def _drawn_smaller(self, kind: str, **settings: Any) -> "Figure":
        """Draw what is too large for a picture with all labels, in cells that may hold several tokens."""
        from npformer import plots

        mask = self.mask(kind, settings.get("layer"))
        return plots.attention(self.weights[kind][:, None], *self.labels(kind), mask=mask, **settings)

    def _masks(self, kind: str) -> Array | None:
        """Return the masks of all layers, (L, queries, keys), or None if there are none."""
        masks = [self.mask(kind, layer) for layer in range(len(self.weights[kind]))]
        given = [mask for mask in masks if mask is not None]
        return np.stack(given) if given else None

    def most_informative_head(
        self, kind: str, *, layer: int | None = None, head: int | None = None
    ) -> tuple[int, int]:
        """Return the layer and the head whose weights in this sentence depend most on the words.

        The measure is `informativeness`. In encoder-decoder attention it counts a fixed distance as
        informative: a translation has roughly the order of its source, so a head that aligns the words of the
        two sentences also attends at almost a fixed distance.

        Args:
            kind: One of `kinds`.
            layer: Choose among the heads of this layer; by default among those of all layers.
            head: Choose among the heads with this number in their layers.

        Raises:
            UserError: If the model has no such attention, layer or head.
        """
        self._require_head(kind, layer, head)
        values = np.stack(
            [
                informativeness(weights, self.mask(kind, number), by_distance=kind != "cross")
                for number, weights in enumerate(self.weights[kind])
            ]
        )  # (L, H)
        rows = slice(None) if layer is None else slice(layer, layer + 1)
        columns = slice(None) if head is None else slice(head, head + 1)
        some = values[rows, columns]
        best = np.unravel_index(int(some.argmax()), some.shape)  # the first of equal ones
        return int(best[0]) + (layer or 0), int(best[1]) + (head or 0)

    def _chosen(self, kind: str | None, layer: int | None, head: int | None) -> tuple[str, int, int, str]:
        """Return the kind, the layer and the head, each replaced by its default if it is None.

        The fourth item says how the head was chosen. It is "" if the caller gave both layer and head.
        """
        if kind is None:
            kind = "cross" if "cross" in self.weights or not self.weights else self.kinds[0]
        self._require_head(kind, layer, head)
        if layer is not None and head is not None:
            return kind, layer, head, ""
        among = "" if layer is None else f" of layer {layer}"
        among = among if head is None else f" with this number{among}"
        layer, head = self.most_informative_head(kind, layer=layer, head=head)
        which = f"{name_of_head(layer, head)}, the most informative head{among}"
        return kind, layer, head, f"{which}: its weights depend most on the words"

    def labels(self, kind: str) -> tuple[list[str], list[str]]:
        """Return the labels of the queries and those of the keys, as the installed fonts can draw them.

        A query of a decoder is named by two tokens, the one that is read and the one that is predicted:
        "<S> → le".
        """
        from npformer.plots.style import drawable

        queries, keys = self.tokens(kind)
        return drawable(queries), drawable(keys)

    def _require_head(self, kind: str, layer: int | None = None, head: int | None = None) -> None:
        """Raise UserError if the model has no attention of this kind, or not such a layer or head."""
        self.require_kind(kind)
        n_layers, n_heads = self.weights[kind].shape[:2]
        for name, value, count in (("layer", layer, n_layers), ("head", head, n_heads)):
            if value is not None:
                require_index(name, value, count)

    def require_kind(self, kind: str) -> None:
        """Raise UserError if the model has no attention of this kind."""
        if not self.weights:
            raise UserError("this model has no attention: give a model with attention")
        if not isinstance(kind, str) or kind not in self.weights:
            name = KINDS.get(kind, kind) if isinstance(kind, str) else f"attention of the kind {short(kind)}"
            raise UserError(f"this model has no {name}: it has {', '.join(self.weights)}")


@dataclass(frozen=True, eq=False)
class SentenceAttention(AttentionMaps):
    """The attention weights of every layer and head for one sentence and its translation.

    Attributes:
        sentence: The sentence that the model reads.
        translation: The translation, as a person writes it.
        source_tokens: The S tokens that the encoder reads, the end symbol last.
        target_tokens: The T tokens that the decoder reads, the start symbol first.
        predicted_tokens: The T tokens that the decoder predicts, the end symbol last.
        weights: A dict from the kind of attention to its weights, of shape (L, H, queries, keys):
            "encoder" (L, H, S, S), "decoder" (L, H, T, T) and "cross" (L, H, T, S). A kind that the model
            does not have is missing.
        cache: The cache of the forward pass.
    """

    sentence: str
    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    predicted_tokens: list[str]
    weights: dict[str, Array]
    cache: Any = field(repr=False)  # a ModelCache

    def tokens(self, kind: str) -> tuple[list[str], list[str]]:
        """Return the tokens of the queries and those of the keys.

        In "cross" a query is named by the token that the decoder predicts at its position.
        """
        queries = {
            "encoder": self.source_tokens,
            "decoder": self.target_tokens,
            "cross": self.predicted_tokens,
        }
        self.require_kind(kind)
        return queries[kind], self.target_tokens if kind == "decoder" else self.source_tokens

    def labels(self, kind: str) -> tuple[list[str], list[str]]:
        """Return the labels of the queries and those of the keys, as in the base class."""
        from npformer.plots.style import drawable

        queries, keys = super().labels(kind)
        if kind != "encoder":
            pairs = zip(drawable(self.target_tokens), drawable(self.predicted_tokens), strict=True)
            queries = [f"{read} → {predicted}" for read, predicted in pairs]
        return queries, keys

    def mask(self, kind: str, layer: int | None = None) -> Array | None:
        """Return the causal mask of the decoder; the other kinds have none for a single sentence.

        Args:
            kind, layer: As in the base class.
        """
        self._require_head(kind, layer)
        weights = self.weights[kind]
        return causal_mask(weights.shape[-1], weights) if kind == "decoder" else None

    def __repr__(self) -> str:
        shapes = ", ".join(f"{kind} {weights.shape}" for kind, weights in self.weights.items())
        return f"<attention for {self.sentence!r} → {self.translation!r}: {shapes or 'none'}>"


@dataclass(frozen=True, eq=False)
class TextAttention(AttentionMaps):
    """The attention weights of every layer and head of a GPT or a Bert for one text.

    Attributes:
        text: The text that the model reads.
        pieces: The T tokens of the text, special tokens included.
        weights: A dict with one entry, "self": the weights, of shape (L, H, T, T).
        masks: The causal masks of the layers of a GPT, (L, T, T), and None for a Bert.
        cache: The cache of the forward pass, which ends before the output layer.
    """

    text: str
    pieces: list[str]
    weights: dict[str, Array]
    masks: Array | None = field(repr=False)
    cache: GPTCache | EncoderModelCache = field(repr=False)

    def tokens(self, kind: str = "self") -> tuple[list[str], list[str]]:
        """Return the tokens of the queries and those of the keys, which are the same."""
        self.require_kind(kind)
        return self.pieces, self.pieces

    def mask(self, kind: str = "self", layer: int | None = None) -> Array | None:
        """Return the mask, or None if every query may attend to every key.

        Args:
            kind, layer: As in the base class.
        """
        self._require_head(kind, layer)
        if self.masks is None:
            return None
        return np.any(self.masks, axis=0) if layer is None else np.asarray(self.masks[layer])

    @property
    def allowed(self) -> Array | None:
        """The mask without a layer, (T, T): True where a query may attend in any layer."""
        return self.mask()

    def __repr__(self) -> str:
        return f"<attention for {self.text!r}: self {self.weights['self'].shape}>"


def attention_of(translator: "Translator", sentence: str, **search: Any) -> SentenceAttention:
    """Translate a sentence and return the attention weights of the forward pass on both sentences.

    Args:
        translator: A translator whose model is on the host.
        sentence: The sentence to translate.
        search: Settings of the search, such as beam=5. The default is greedy search.

    Raises:
        UserError: If the sentence is empty or too long for the model.
    """
    result = forward_pass(translator, sentence, **search)
    return SentenceAttention(
        sentence=sentence,
        translation=translator.text_of(result.predicted_ids[0].tolist()),
        source_tokens=result.source,
        target_tokens=result.target,
        predicted_tokens=result.predicted,
        weights=_of_one_sentence(result.cache),
        cache=result.cache,
    )


def attention_of_text(model: GPT | Bert, text: str, encoding: Encoding) -> TextAttention:
    """Return the attention weights of the forward pass of a GPT or a Bert on a text.

    Args:
        model: The model, on the host.
        text: The text.
        encoding: Its tokens.

    Raises:
        UserError: If the text has no tokens, or if it is too long for the model.
    """
    ids = np.array([encoding.ids])
    _, cache = without_logits(model).forward(ids)
    return TextAttention(
        text=text,
        pieces=encoding.pieces,
        weights=_of_one_sentence(cache),
        masks=_masks_of(model, len(encoding.ids)),
        cache=cache,
    )


def _masks_of(model: GPT | Bert, length: int) -> Array | None:
    """Return the causal masks of the layers of a GPT, (L, T, T), and None for a Bert."""
    if isinstance(model, Bert):
        return None
    # a Gemma 2 has a window in each of its local layers, and other models have one for all layers, or none
    windows = [getattr(layer, "window", model.config.window) for layer in model.layers]
    return np.stack([causal_mask(length, np.empty(0), window=window) for window in windows])


def _of_one_sentence(cache: ModelCache) -> dict[str, Array]:
    """Return the weights of each kind of attention for a batch of one sentence, (L, H, queries, keys)."""
    return {kind: weights[:, 0] for kind, weights in attention_arrays(cache).items()}


def forward_pass(
    translator: "Translator", sentence: str, translation: str | None = None, **search: Any
) -> ForwardPass:
    """Run one forward pass of a translator on a sentence and its translation.

    Args:
        translator: A translator whose model is on the host.
        sentence: The sentence that the encoder reads.
        translation: The translation that the decoder reads. By default, the translator translates.
        search: Settings of that search, such as beam=5, or begin, a text. The default is greedy search.

    Raises:
        UserError: If the sentence is empty or too long for the model.
    """
    model, source = translator.model, _source_of(translator, sentence)
    config, target = model.config, translator.target_tokenizer
    if translation is None:
        # an untrained model may never predict the end symbol
        begin = translator.beginnings(search.get("begin"), 1)
        longest = min(config.max_length - 1, 2 * len(source.ids) + 5 + len(begin[0]))
        search = {"max_length": longest} | search | {"begin": begin}
        (ids,) = translate_ids(model, [source.ids], **search)
        ids = [*ids, config.end_id]
        pieces = [target.piece(index) for index in ids]
    else:
        ids, pieces, _ = target.encode(translation)
    source_ids = np.array([source.ids])  # (1, S)
    target_ids = np.array([[config.start_id, *ids[:-1]]])  # (1, T)
    logits, cache = model.forward(source_ids, target_ids)
    return ForwardPass(
        source=source.pieces,
        target=[target.piece(config.start_id), *pieces[:-1]],
        predicted=pieces,
        source_ids=source_ids,
        target_ids=target_ids,
        predicted_ids=np.array([ids]),
        logits=logits,
        cache=cache,
    )


def _source_of(translator: "Translator", sentence: str) -> Encoding:
    """Return the tokens of a sentence that the encoder reads.

    Raises:
        UserError: If the sentence is empty or too long for the model.
    """
    encoding, limit = translator.source_tokenizer.encode(sentence), translator.model.config.max_length
    length = len(encoding.ids)
    if length == 1:
        raise UserError(f"the sentence {sentence!r} is empty: write at least one word")
    if length > limit:
        raise UserError(
            f"the sentence has {length} tokens, its end included, and the model's limit is {limit}: "
            "give a shorter one"
        )
    return encoding


def informativeness(weights: Array, mask: Array | None = None, *, by_distance: bool = True) -> Array:
    """Return how much the weights of each head depend on the words of the sentence, between 0 and 1.

    A head tells little about a sentence if its weights can be told without reading it: if it spreads them
    evenly, if every query attends to the same key, such as the end symbol, or if every query attends at the
    same distance, such as to the token before it. Therefore each row of weights is guessed from the other
    rows in two ways: as their mean for each key, and as their mean for each distance from query to key. A
    guess misses the share 1 − Σ_s min(weight, guess) of the row's weight. The result is the smaller of the
    two shares, averaged over all rows in which the mask leaves a choice.

    Args:
        weights: The attention weights, (..., T, S), whose rows sum to 1.
        mask: Bool, (T, S), True where a query may attend; by default everywhere.
        by_distance: Whether the second guess is made.

    Returns:
        The measure of each head, (...).
    """
    n_queries, n_keys = weights.shape[-2:]
    allowed = np.ones((n_queries, n_keys), bool) if mask is None else np.asarray(mask)
    key = np.broadcast_to(np.arange(n_keys), allowed.shape)
    distance = key - np.arange(n_queries)[:, None] + n_queries - 1  # at least 0
    missed = [
        1 - np.minimum(weights, _guess(weights, group, allowed)).sum(-1)  # (..., T)
        for group in ((key, distance) if by_distance else (key,))
    ]
    choice = allowed.sum(-1) > 1  # (T,)
    if not choice.any():
        return np.zeros(weights.shape[:-2])
    result: Array = np.min(missed, axis=0)[..., choice].mean(-1)
    return result


def _guess(weights: Array, group: Array, allowed: Array) -> Array:
    """Guess each row of weights from the other rows: the mean weight of the same group, normalized.

    A row has at most one place of each group, and is 0 if no other row has one of its groups.
    Shapes: weights (..., T, S), group (T, S) numbers, allowed (T, S) bool -> (..., T, S).
    """
    flat, n_groups = group.ravel(), int(group.max()) + 1
    heads = weights.reshape(*weights.shape[:-2], -1)  # (..., T·S)
    totals = np.apply_along_axis(lambda head: np.bincount(flat, head, n_groups), -1, heads)  # (..., G)
    others = np.bincount(flat, allowed.ravel(), n_groups)[group] - 1  # (T, S)
    guess = np.where(allowed, (totals[..., group] - weights) / np.maximum(others, 1), 0)
    total = guess.sum(-1, keepdims=True)
    normalized: Array = guess / np.where(total > 0, total, 1)
    return normalized


def name_of_head(layer: int, head: int) -> str:
    """Return the name of a head, such as "layer 1, head 0"."""
    return f"layer {layer}, head {head}"


def title_of(kind: str) -> str:
    """Return the title of the pictures of one of KINDS."""
    return KINDS[kind][0].upper() + KINDS[kind][1:]
