"""TextStream: pieces that join to the whole text, characters of several bytes, and stop strings."""

import numpy as np
import pytest

from npformer.data.text_codecs import ByteCodec, CharacterCodec, PieceCodec
from npformer.errors import UserError
from npformer.generation.text_stream import TextStream

TEXT = "the cat sees\nthe dog  eats\n\n the end"
SUBWORDS = PieceCodec(("\n", "▁", "▁the", "▁cat", "▁d", "og", "▁e", "at", "s", *"acdeghnot"))
CODECS = [CharacterCodec.from_text(TEXT), ByteCodec(), SUBWORDS]
every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)


def pieces_of(codec, prompt, ids, stop=()):
    """Return the pieces after a prompt, and the stream."""
    stream = TextStream(codec, prompt, stop)
    return [*(stream.add(int(token)) for token in ids), stream.finish()], stream


@every_codec
def test_the_pieces_join_to_the_whole_text(codec):
    """This holds wherever the prompt ends, also before the space or the end of a line."""
    ids = codec.encode(TEXT)
    for n in range(1, len(ids)):
        pieces, _ = pieces_of(codec, ids[:n], ids[n:])
        assert codec.decode(ids[:n]) + "".join(pieces) == TEXT
        if codec is not SUBWORDS:  # a space at the start of a line is known at the next piece
            assert all(pieces[:-1])
        assert pieces[-1] == ""


def test_a_character_of_several_bytes_comes_as_a_whole():
    ids = list("é猫🙂".encode())
    pieces, _ = pieces_of(ByteCodec(), [97], ids)
    assert pieces == ["", "é", "", "", "猫", "", "", "", "🙂", ""]


def test_bytes_that_are_no_character_are_shown_when_this_is_certain():
    for ids in ([0xC3, 0x41], [0xE7, 0x8C], [0x80, 0x80, 0x42], [0xF0, 0x9F, 0xC3, 0xA9]):
        pieces, _ = pieces_of(ByteCodec(), [97], ids)
        assert "".join(pieces) == bytes(ids).decode("utf-8", "replace")
    rng = np.random.default_rng(0)
    ids = rng.choice([0x41, 0xC3, 0xA9, 0xE7, 0x8C, 0xF0], 400).tolist()
    pieces, _ = pieces_of(ByteCodec(), [97], ids)
    assert "".join(pieces) == bytes(ids).decode("utf-8", "replace")


@every_codec
@pytest.mark.parametrize(
    "stop", ["dog", "s\nthe", "\n\n", "e", "t s", "at", "nowhere", "the e", "end", "endless"]
)
def test_a_stop_string_ends_the_text_wherever_its_tokens_end(codec, stop):
    """Without a stop string, all pieces together are the whole text."""
    ids = codec.encode(TEXT)
    prompt = codec.decode(ids[:1])
    for stops in ([stop], stop):
        pieces, stream = pieces_of(codec, ids[:1], ids[1:], stops)
        assert prompt + "".join(pieces) == prompt + TEXT[len(prompt) :].split(stop)[0]
        assert stream.is_finished


def test_what_may_begin_a_stop_string_is_held_back_no_longer_than_needed():
    codec = CharacterCodec("abc")
    stream = TextStream(codec, [0], ["abb", "bc"])
    assert [stream.add(token) for token in codec.encode("cabacab")] == ["c", "", "", "ab", "ac", "", ""]
    assert stream.finish() == "ab"


def test_the_first_of_several_stop_strings_in_one_token_ends_the_text():
    ids = [SUBWORDS.tokens.index(token) for token in ("at", "▁the", "▁cat")]
    pieces, _ = pieces_of(SUBWORDS, [0], ids, ["e", "th", "cat"])
    assert "".join(pieces) == "at "


def test_an_empty_stop_string_is_refused():
    with pytest.raises(UserError, match="a stop string is empty: give at least one character"):
        TextStream(CharacterCodec("ab"), [0], ["a", ""])
