"""Tokenizers of Hugging Face folders against transformers.AutoTokenizer, on texts of every kind."""

import os

import pytest

pytest.importorskip("sentencepiece")
pytest.importorskip("transformers")
decoders = pytest.importorskip("tokenizers").decoders

from tokenizer_folders import KINDS, STRINGS, all_folders, load_oracle  # noqa: E402  it imports tokenizers
from unicode_texts import unicode_texts  # noqa: E402  it stands below that line

from npformer.interop.tokenizers import load_tokenizer  # noqa: E402  it stands below those lines

pytestmark = pytest.mark.torch  # transformers, the oracle, is installed with PyTorch


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return all_folders(tmp_path_factory.mktemp("tokenizers"))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_text_and_pieces(folders, kind):
    count = 5000 if os.environ.get("NPFORMER_NIGHTLY") else 220  # half of them are one fragment each
    check_texts(*folders[kind], unicode_texts(count, seed=0, strings=STRINGS))


def check_texts(family, folder, texts):
    """Check the ids, the decoded text and the pieces of texts against transformers."""
    ours, theirs = load_tokenizer(folder, family), load_oracle(folder)
    for text in texts:
        encoding = ours.encode(text)
        assert encoding.ids == theirs(text).input_ids, repr(text)
        for skip in (True, False):
            decoded = theirs.decode(encoding.ids, skip_special_tokens=skip)
            assert ours.decode(encoding.ids, skip_special_tokens=skip) == decoded, repr(text)
        check_pieces(text, encoding, theirs)


def check_pieces(text, encoding, oracle):
    """Check that the offsets cut the text into the pieces, and that each piece is the text of its token.

    Tokens that share characters are checked together: what they spell is what the tokenizer makes of their
    characters. Between them, there is only what the tokenizer leaves out.
    """
    rules = MarianRules(oracle, text) if is_marian(oracle) else LibraryRules(oracle, encoding.ids)
    end = 0
    for first, last in groups_of(encoding):
        start, stop = encoding.offsets[first][0], encoding.offsets[last][1]
        assert end <= start < stop <= len(text), (text, encoding)
        assert rules.normalised(text[end:start]) == "", (text, encoding)
        end = stop
        source, tokens = text[start:stop], rules.tokens[first : last + 1]
        if first == last:
            assert encoding.pieces[first] == source, (text, encoding)
        if not rules.are_unknown(tokens, source):
            spelled = rules.spelled(tokens)  # a space may stand before the first word
            assert spelled.removeprefix(" ") == rules.normalised(source).removeprefix(" "), (text, encoding)
    assert rules.normalised(text[end:]) == "", (text, encoding)


def groups_of(encoding):
    """Return the first and the last token of each group of tokens that share characters of the text."""
    groups = []
    for i, (start, stop) in enumerate(encoding.offsets):
        if start == stop:
            continue
        if groups and start < encoding.offsets[groups[-1][1]][1]:
            groups[-1] = (groups[-1][0], i)
        else:
            groups.append((i, i))
    return groups


def is_marian(oracle):
    return type(oracle).__name__ == "MarianTokenizer"


class LibraryRules:
    """What the tokens of a tokenizer of the library `tokenizers` spell, and what it makes of a text."""

    def __init__(self, oracle, ids):
        self.tokens = oracle.convert_ids_to_tokens(ids)
        self.added = set(oracle.get_added_vocab())
        self.backend = oracle.backend_tokenizer
        self.kind = type(
            self.backend.decoder
        ).__name__  # ByteLevel, WordPiece, Metaspace or, for Llama, Sequence

    def are_unknown(self, tokens, source):
        """Return whether a token spells nothing, or check an added token, which spells itself."""
        if len(tokens) == 1 and tokens[0] in self.added and tokens[0] in source:
            assert source.strip() == tokens[0], (source, tokens)
            return True
        known = [token for token in tokens if token not in ("[UNK]", "<unk>")]
        assert len(known) == len(tokens) or self.spelled(known).strip() in self.normalised(source), source
        return len(known) < len(tokens)

    def spelled(self, tokens):
        if self.kind == "WordPiece":
            return "".join(token.removeprefix("##") for token in tokens)
        if self.kind == "Metaspace":  # XLM-RoBERTa, which leaves spaces out
            return "".join(tokens).replace("▁", "")
        if self.kind == "ByteLevel":
            return self.backend.decoder.decode(tokens)
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        return decoders.Sequence(steps).decode(tokens)

    def normalised(self, text):
        if self.kind == "Sequence":  # Llama
            return text.replace("▁", " ")
        if self.kind == "Metaspace":
            return "".join(text.replace("▁", " ").split())
        normalizer = self.backend.normalizer
        text = text if normalizer is None else normalizer.normalize_str(text)
        return "".join(text.split()) if self.kind == "WordPiece" else text


class MarianRules:
    """What the pieces of Marian spell, and what it makes of a text."""

    def __init__(self, oracle, text):
        self.tokens = [*oracle.tokenize(text), "</s>"]  # not from the ids: some pieces have none
        self.normalize = oracle.spm_source.normalize

    def are_unknown(self, tokens, source):
        """Return whether the token is one that sentencepiece does not see."""
        return tokens == [source] and (source.startswith(">>") or source in ("</s>", "<unk>", "<pad>"))

    def spelled(self, tokens):
        return "".join(tokens).replace("▁", " ").strip(" ")

    def normalised(self, text):
        return self.normalize(text).replace("▁", " ").strip(" ")
