"""The codecs that a model may come with: of whole words, or of subwords."""

from npformer.data.subwords import SUBWORDS, SubwordCodec
from npformer.data.vocabulary import TEXT_CODEC, TextCodec, read_object
from npformer.errors import UserError

Codec = TextCodec | SubwordCodec


def codec_from_json(text: str) -> Codec:
    """The codec whose to_json wrote the text. Errors: UserError for any other text."""
    kind = read_object(text, TEXT_CODEC, SUBWORDS)["kind"]
    return SubwordCodec.from_json(text) if kind == SUBWORDS else TextCodec.from_json(text)


def require_fit(codec: Codec, size: int, side: str) -> None:
    """Errors: UserError where a model that reads or writes `size` words has a codec of another size.

    side: "source" or "target", for the message.
    """
    if len(codec.vocabulary) != size:
        raise UserError(
            f"the {side} vocabulary has {len(codec.vocabulary)} words and the model {size}: "
            "use the vocabulary that the model was trained with"
        )
