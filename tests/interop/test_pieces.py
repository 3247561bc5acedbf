"""Cutting a text into the pieces that tokens stand for."""

import pytest

from npformer.errors import UserError
from npformer.interop.pieces import Span, cut, readable_bytes, require_unicode


def test_a_token_with_characters_of_its_own_is_shown_as_them():
    encoding = cut("The Dog", [7, 5], [Span("the", 0, 3), Span(" dog", 3, 7)])
    assert encoding == ([7, 5], ["The", " Dog"], [(0, 3), (3, 7)])


def test_tokens_that_share_a_character_are_shown_as_their_own_text():
    spans = [Span("a", 0, 1), Span("\\xe2", 1, 2), Span("\\x82", 1, 2), Span("\\xac", 1, 2), Span("b", 2, 3)]
    encoding = cut("a€b", range(5), spans)
    assert encoding.pieces == ["a", "\\xe2", "\\x82", "\\xac", "b"]
    assert encoding.offsets == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]


def test_special_tokens_around_the_text_have_their_names_and_no_characters():
    spans = [Span("[CLS]", 0, 0, is_added=True), Span("a", 0, 1), Span("[SEP]", 0, 0, is_added=True)]
    encoding = cut("a", range(3), spans)
    assert (encoding.pieces, encoding.offsets) == (["[CLS]", "a", "[SEP]"], [(0, 0), (0, 1), (0, 0)])


def test_a_token_without_characters_is_the_space_before_the_first_word():
    assert cut("a", [1, 2], [Span(" ", 0, 0), Span("a", 0, 1)]).pieces == ["▁", "a"]


def composed(text):
    return text.replace("e\u0301", "é")


@pytest.mark.parametrize(
    ("text", "spans", "offsets"),
    [
        ("e\u0301x", [Span("é", 0, 1), Span("x", 2, 3)], [(0, 2), (2, 3)]),
        # the tokenizer does not change this letter with its mark
        ("o\u0301x", [Span("o", 0, 1), Span("\u0301x", 1, 3)], [(0, 1), (1, 3)]),
        # the mark is not of the special token's last letter
        ("e\u0301", [Span("e", 0, 1, is_written=True), Span("\u0301", 1, 2)], [(0, 1), (1, 2)]),
    ],
)
def test_marks_belong_to_the_letter_that_the_tokenizer_joins_them_to(text, spans, offsets):
    assert cut(text, range(2), spans, composed).offsets == offsets


def test_a_space_that_the_tokenizer_puts_around_a_letter_is_no_change_of_the_letter():
    def spaced(text):
        return f"▁ {text[0]} {text[1:]}"

    spans = [Span("語", 0, 1), Span("\u0301", 1, 2)]
    assert cut("語\u0301", range(2), spans, spaced).offsets == [(0, 1), (1, 2)]


def test_bytes_of_an_unfinished_character_are_escapes():
    assert readable_bytes("né€".encode()[:5]) == r"né\xe2\x82"


def test_a_lone_surrogate_is_an_error_of_one_sentence():
    with pytest.raises(UserError, match=r"^the text has a lone surrogate, U\+D83D, at character 2: "):
        require_unicode("ab\ud83d")
