"""Subwords: a codec that splits rare words into pieces, so that it knows nearly every text.

sentencepiece chooses the pieces, once, in SubwordCodec.train; reading text needs this package alone.
"""

import io
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from npformer.data.bpe import WORD_BEGIN, Pieces
from npformer.data.casing import Casing
from npformer.data.moses import tokenised, written
from npformer.data.tokens import LANGUAGES, Language, one_spelling
from npformer.data.vocabulary import END, PAD, SPECIALS, START, UNK, Vocabulary, read_object
from npformer.errors import UserError
from npformer.settings import require_choice, require_count

SUBWORDS = "npformer subword codec"
TEXTS = ("raw", "tokenised")

TextForm = Literal["raw", "tokenised"]


@dataclass(frozen=True)
class SubwordCodec:
    """From a sentence to ids of subwords and back: "dogs ran" -> "▁dog", "s", "▁ran".

    vocabulary: SPECIALS and the pieces, in the order in which training made them, characters last.
    text: "raw" takes text as people write it; "tokenised" brings it to the form of tokenised corpora first,
    and decodes to that form. language: whose rules then apply. lowercase: tokenised text always is.
    casing: gives lowercased text its capitals back where a person is to read it.
    Errors: UserError for settings out of range.
    """

    vocabulary: Vocabulary
    language: Language = LANGUAGES["plain"]
    lowercase: bool = True
    text: TextForm = "raw"
    casing: Casing | None = None
    _pieces: Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_choice("text", self.text, TEXTS)
        if self.text == "tokenised" and not self.lowercase:
            raise UserError("tokenised text has no capitals: leave lowercase as it is, or take the raw text")
        # the special words are no pieces, so no text can forge one
        object.__setattr__(self, "_pieces", Pieces(self.vocabulary.words[len(SPECIALS) :]))

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        size: int,
        *,
        language: Language = LANGUAGES["plain"],
        lowercase: bool = True,
        text: TextForm = "raw",
    ) -> "SubwordCodec":
        """The codec with `size` pieces, SPECIALS among them, that byte-pair encoding makes of the lines.

        The same lines in the same order give the same pieces.
        Errors: UserError where sentencepiece is not installed, or the lines are too few for the size.
        """
        plain = cls(Vocabulary(SPECIALS), language, lowercase, text)
        return replace(plain, vocabulary=_train([plain.normalise(line) for line in lines], size, text))

    def normalise(self, text: str) -> str:
        """The text in the one form that pieces are made of: its words, with single spaces between."""
        text = text.replace(WORD_BEGIN, "_")
        if self.text == "tokenised":
            return tokenised(text, self.language.name)
        text = unicodedata.normalize("NFKC", one_spelling(text))
        return " ".join((text.lower() if self.lowercase else text).split())

    def words(self, text: str) -> list[str]:
        """The pieces of a sentence; a run of unknown characters is one, though no piece of the vocabulary."""
        return [
            piece for word in self.normalise(text).split(" ") if word for piece in self._pieces.split(word)
        ]

    def encode(self, text: str, *, strict: bool = False) -> list[int]:
        """The ids of a sentence, without START and END; UNK for a run of unknown characters.

        An empty sentence gives []. strict=True, meant for what a person typed, refuses it.
        Errors: UserError for an empty sentence where strict.
        """
        words = self.words(text)
        if strict and not words:
            raise UserError(f"the sentence {text!r} is empty: write at least one word")
        known = self._pieces.ranks
        return [self.vocabulary.id(word) if word in known else UNK for word in words]

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence of the ids up to the first END, in the codec's form of text.

        Errors: UserError for an id outside the vocabulary.
        """
        return "".join(self.vocabulary.decode(ids)).replace(WORD_BEGIN, " ").strip()

    def written(self, text: str) -> str:
        """A decoded sentence as a person writes it: of tokenised text, entities undone, marks joined."""
        text = written(text) if self.text == "tokenised" else text
        return text if self.casing is None else self.casing.restore(text)

    def to_json(self) -> str:
        """The codec as a JSON text, which from_json reads back."""
        content = {
            "kind": SUBWORDS,
            "language": self.language.name,
            "elision": self.language.elision,
            "lowercase": self.lowercase,
            "text": self.text,
            # one string, a third of the length of a list; no piece holds a space
            "pieces": " ".join(self.vocabulary.words[len(SPECIALS) :]),
        }
        if self.casing is not None:
            content["spellings"] = " ".join(self.casing.spellings)
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "SubwordCodec":
        """The codec that to_json wrote. Errors: UserError for any other text."""
        content = read_object(text, SUBWORDS)
        kinds = {"language": str, "elision": bool, "lowercase": bool, "text": str, "pieces": str}
        for name, kind in kinds.items():
            if not isinstance(content.get(name), kind):
                raise UserError(
                    f'this subword codec has no {kind.__name__} "{name}": write it again with to_json'
                )
        vocabulary = Vocabulary((*SPECIALS, *content["pieces"].split(" ")))
        language = Language(content["language"], content["elision"])
        spellings = content.get("spellings")
        casing = Casing(tuple(spellings.split(" "))) if isinstance(spellings, str) else None
        return cls(vocabulary, language, content["lowercase"], content["text"], casing)


def joint_codecs(
    pairs: Sequence[tuple[str, str]],
    size: int,
    *,
    languages: tuple[Language, Language],
    lowercase: bool = True,
    text: TextForm = "raw",
) -> tuple[SubwordCodec, SubwordCodec]:
    """The codecs of a source and a target that are written in the same `size` pieces, each in its language.

    Errors: as those of SubwordCodec.train.
    """
    source, target = (SubwordCodec(Vocabulary(SPECIALS), each, lowercase, text) for each in languages)
    lines = [source.normalise(line) for line, _ in pairs] + [target.normalise(line) for _, line in pairs]
    vocabulary = _train(lines, size, text)
    return replace(source, vocabulary=vocabulary), replace(target, vocabulary=vocabulary)


def _train(lines: Sequence[str], size: int, text: TextForm) -> Vocabulary:
    """SPECIALS and the pieces that sentencepiece makes of normalised lines, in the order it makes them."""
    proto = train_model(lines, size, text)  # first, since it says what to do where sentencepiece is missing
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    pieces = map(model.id_to_piece, range(len(SPECIALS), model.get_piece_size()))
    return Vocabulary((*SPECIALS, *pieces))


def train_model(lines: Sequence[str], size: int, text: TextForm) -> bytes:
    """The same as the file that sentencepiece writes, for who wants to read it with sentencepiece itself.

    Errors: as those of SubwordCodec.train.
    """
    require_count("subwords", size)
    try:
        import sentencepiece
    except ImportError:
        raise UserError(
            "making subwords needs sentencepiece, which is not installed: pip install 'npformer[translation]'"
        ) from None
    if not any(lines):
        raise UserError("there are no sentences to make subwords of: give some lines with words")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=1.0,
            normalization_rule_name="identity",  # SubwordCodec.normalise did it, for every reader alike
            # Letters and marks may share a piece where tokens such as "t-shirt" and "&apos;s" are apart
            # already; in raw text they must not, or "dog." became a piece beside "dog".
            split_by_unicode_script=text == "raw",
            max_sentence_length=1 << 20,  # bytes; longer lines would be left out without a word
            num_threads=1,
            minloglevel=2,  # errors alone
            pad_id=PAD,
            unk_id=UNK,
            bos_id=START,
            eos_id=END,
            pad_piece=SPECIALS[PAD],
            unk_piece=SPECIALS[UNK],
            bos_piece=SPECIALS[START],
            eos_piece=SPECIALS[END],
        )
    except RuntimeError as error:
        raise _size_error(str(error), size, len(lines)) from None
    return model.getvalue()


def _size_error(message: str, size: int, n_lines: int) -> UserError:
    """What sentencepiece means, in the words of a user."""
    for pattern, advice in (
        (r"set it to a value <= (\d+)", "more than these sentences give: the largest size possible is {}"),
        (r"required_chars[^\d]*\d+ vs (\d+)", "fewer than the characters alone: the smallest size is {}"),
    ):
        found = re.search(pattern, message)
        if found:
            return UserError(f"subwords is {size}, {advice.format(found[1])} ({n_lines} lines were read)")
    return UserError(f"sentencepiece can make no {size} subwords of these {n_lines} lines: {message}")
