"""The codecs of our own models as tokenizers, which also know the pieces of a text and their places.

A codec converts texts for training, where only ids are needed. A `Tokenizer` also says which token stands for
which characters of the text, by which pictures and tables name the tokens.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from npformer.data.codecs import Codec
from npformer.data.encoding import Encoding
from npformer.data.subwords import WORD_BEGIN
from npformer.data.text_codecs import ByteCodec, LongTextCodec
from npformer.data.tokens import one_spelling
from npformer.data.vocabulary import END, MASK, SPECIALS, UNK
from npformer.generation.detokenize import labels

ENCODING_ERRORS = "surrogateescape"  # how a text holds bytes that are not UTF-8, see ByteCodec


class LongTextTokenizer:
    """The tokenizer of a language model that was trained on one long text.

    Args:
        codec: The codec of the model.
    """

    mask_id = None
    unknown_id = None
    special_ids: frozenset[int] = frozenset()

    def __init__(self, codec: LongTextCodec) -> None:
        self.codec = codec

    def encode(self, text: str) -> Encoding:
        """Return the tokens of a text.

        Raises:
            UserError: If the codec does not know a character.
        """
        ids = self.codec.encode(text)
        if isinstance(self.codec, ByteCodec):
            places = _places_of_bytes(text)
        else:
            places = _consecutive_places(text, [self.codec.tokens[index] for index in ids])
        return Encoding(ids, [self.piece(index) for index in ids], places)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids."""
        return self.codec.decode(ids)

    def piece(self, index: int) -> str:
        """Return the label of a token. A byte that is no ASCII character is shown as <0xC3>."""
        token = self.codec.tokens[index]
        return f"<0x{index:02X}>" if isinstance(self.codec, ByteCodec) and index > 127 else token


class SentenceTokenizer:
    """The tokenizer of a model that reads sentences, which adds the end symbol.

    Args:
        codec: The codec of the model. If its vocabulary has [MASK], a text can contain it.
    """

    unknown_id = UNK

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.mask_id = codec.vocabulary.id(MASK) if MASK in codec.vocabulary else None
        masks = frozenset() if self.mask_id is None else {self.mask_id}
        self.special_ids = frozenset(range(len(SPECIALS))) | masks

    def encode(self, text: str) -> Encoding:
        """Return the tokens of a sentence and the end symbol.

        The id of a word that the model does not know is that of <UNK>, and its piece is the word itself.
        """
        parts = [text] if self.mask_id is None else text.split(MASK)
        tokens: list[tuple[int, str, tuple[int, int]]] = []
        start = 0
        for number, part in enumerate(parts):
            if number:
                tokens.append((self.codec.vocabulary.id(MASK), MASK, (start, start + len(MASK))))
                start += len(MASK)
            words = self.codec.words(part)
            places = [(start + first, start + last) for first, last in _found_places(part, words)]
            tokens += zip(self.codec.encode(part), labels(self.codec, words), places, strict=True)
            start += len(part)
        tokens.append((END, SPECIALS[END], (0, 0)))
        ids, pieces, offsets = zip(*tokens, strict=True)
        return Encoding(list(ids), list(pieces), list(offsets))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence of token ids up to the end symbol."""
        return self.codec.decode(ids)

    def piece(self, index: int) -> str:
        """Return the label of a token."""
        if index in self.special_ids:
            return self.codec.tokens[index]
        return labels(self.codec, [self.codec.tokens[index]])[0]


def _places_of_bytes(text: str) -> list[tuple[int, int]]:
    """Return for each byte of a text where its character begins and ends."""
    sizes = [len(character.encode("utf-8", ENCODING_ERRORS)) for character in text]
    return [(place, place + 1) for place, size in enumerate(sizes) for _ in range(size)]


def _consecutive_places(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return where the tokens of a long text begin and end. Together they are the whole text.

    A piece has WORD_BEGIN in place of the space before its word. The first word of a line has no space.
    """
    places, start = [], 0
    for token in tokens:
        shown = token.replace(WORD_BEGIN, " ")
        if shown.startswith(" ") and not text.startswith(" ", start):
            shown = shown[1:]
        places.append((start, start + len(shown)))
        start += len(shown)
    return places


def _found_places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where words, which a codec has brought to its own form, begin and end in a text.

    Letters are compared without capitals and in their simplest spelling. A word of which no letter is in the
    text, such as an entity of a tokenised corpus, gets (0, 0).
    """
    letters = [
        (letter, place) for place, character in enumerate(text) for letter in _simplest_letters(character)
    ]
    wanted = [_simplest_letters(word.removeprefix(WORD_BEGIN)) for word in words]
    matcher = SequenceMatcher(None, "".join(wanted), [letter for letter, _ in letters], autojunk=False)
    place_of = {  # from the number of a letter in the words to its place in the text
        block.a + index: letters[block.b + index][1]
        for block in matcher.get_matching_blocks()
        for index in range(block.size)
    }
    spans, start = [], 0
    for word in wanted:
        found = [place_of[index] for index in range(start, start + len(word)) if index in place_of]
        spans.append((min(found), max(found) + 1) if found else (0, 0))
        start += len(word)
    return spans


def _simplest_letters(text: str) -> str:
    """Return the visible characters of a text without capitals, accents apart from their letters."""
    letters = unicodedata.normalize("NFKD", one_spelling(text).casefold())
    return "".join(letter for letter in letters if not letter.isspace())
