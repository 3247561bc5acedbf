"""The small files beside a tokenizer: tokenizer_config.json, and the names of special tokens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from npformer.errors import UserError
from npformer.storage.json_files import read_json, require_object
from npformer.validation import has_type, short, type_name

SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
ADVICE = "copy the file again, or save the tokenizer again with transformers"

# what transformers replaces in decoded text where tokenizer_config.json has clean_up_tokenization_spaces
CLEANED = {
    **{f" {mark}": mark for mark in ".?!,"},
    " ' ": "'",
    **{f" {ending}": ending for ending in ("n't", "'m", "'s", "'ve", "'re")},
}


class AddedToken(NamedTuple):
    """A token that is found in a text before the text is split, such as "</s>"."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


class TokenSettings:
    """The settings of the tokenizer in a folder, from the files that Hugging Face writes beside it.

    Args:
        folder: The folder.
        defaults: The settings that apply where tokenizer_config.json has no such entry.

    Raises:
        UserError: If a file is damaged.
    """

    def __init__(self, folder: Path, defaults: Mapping[str, Any]) -> None:
        self.path = folder / "tokenizer_config.json"
        saved = _read_object(self.path)
        if "added_tokens_decoder" not in saved:  # older versions wrote two more files in its place
            saved |= _read_object(folder / "special_tokens_map.json")
            self._older = _read_object(folder / "added_tokens.json")
        else:
            self._older = {}
        self.values = {**defaults, **saved}

    def get(self, name: str, kind: Any, default: Any) -> Any:
        """Return a setting, or the default if it is missing or null.

        Args:
            name: The name of the entry in tokenizer_config.json.
            kind: Its type, as `has_type` takes it.
            default: The value if there is no such entry.

        Raises:
            UserError: If the setting is not of the type `kind`.
        """
        value = self.values.get(name)
        if value is None:
            return default
        if not has_type(value, kind):
            raise UserError(f"{name} in {self.path} is {short(value)}, not {type_name(kind)}: {ADVICE}")
        return value

    def token(self, name: str) -> str | None:
        """Return the special token with a name such as "eos_token", or None if there is none."""
        token = self._token(name, self.values.get(name))
        return None if token is None else token.content

    def special_tokens(self) -> list[AddedToken]:
        """Return the special tokens that have a name, such as eos_token, and those that have none."""
        named = [name for name in SPECIAL_TOKENS if name in self.values]
        named += sorted({name for name in self.values if name.endswith("_token")}.difference(named))
        tokens = [self._token(name, self.values[name]) for name in named]
        extra = self.values.get("extra_special_tokens") or self.values.get("additional_special_tokens") or []
        if isinstance(extra, dict):
            extra = list(extra.values())
        if not isinstance(extra, list):
            raise UserError(f"extra_special_tokens in {self.path} is {short(extra)}, not a list: {ADVICE}")
        tokens += [self._token("extra_special_tokens", each) for each in extra]
        return [token for token in dict.fromkeys(tokens) if token is not None]

    def added_tokens(self) -> dict[int, AddedToken]:
        """Return the added tokens whose ids the settings name, in the order of the ids."""
        decoder = self.get("added_tokens_decoder", dict, {})
        special = {token.content for token in self.special_tokens()}
        found: dict[int, AddedToken] = {}
        for text, index in self._older.items():
            is_special = text in special
            found[self._index(index)] = AddedToken(text, normalized=not is_special, special=is_special)
        for text, value in decoder.items():
            token = self._token("added_tokens_decoder", value)
            if token is not None:
                found[self._index(int(text) if text.isdecimal() and len(text) < 19 else text)] = token
        return dict(sorted(found.items()))

    def add_to(self, tokenizer: Any) -> None:
        """Add the tokens of the settings to a `tokenizers.Tokenizer` that does not have them yet."""
        import tokenizers

        for token in (*self.added_tokens().values(), *self.special_tokens()):
            tokenizer.add_tokens([tokenizers.AddedToken(**token._asdict())])

    def _index(self, value: Any) -> int:
        """Return the id of an added token.

        Raises:
            UserError: If it is not an id.
        """
        if not has_type(value, int) or value < 0:
            raise UserError(
                f"an added token beside {self.path.name} in {self.path.parent} has the id {short(value)}, "
                f"which is not a whole number of 0 or more: {ADVICE}"
            )
        return int(value)

    def _token(self, name: str, value: Any) -> AddedToken | None:
        """Return a token from a text or an object with its properties, or None for an entry that names none.

        Raises:
            UserError: If the value is something else.
        """
        if value is None or value == "" or isinstance(value, bool):  # such as add_bos_token
            return None
        if isinstance(value, str):
            return AddedToken(value)
        properties = value if isinstance(value, dict) else {}
        known = {key: properties[key] for key in AddedToken._fields if key in properties}
        token = AddedToken(**{"content": "", **known})
        flags_are_bool = all(has_type(flag, bool) for flag in token[1:])
        if not has_type(token.content, str) or not token.content or not flags_are_bool:
            raise UserError(f"{name} in {self.path} is {short(value)}, not a token: {ADVICE}")
        return token


def clean_up(text: str) -> str:
    """Remove the spaces before punctuation marks and contractions, as transformers does."""
    for found, replacement in CLEANED.items():
        text = text.replace(found, replacement)
    return text


def _read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one if there is no such file."""
    if not path.exists():
        return {}
    return require_object(read_json(path, str(path), ADVICE), str(path), ADVICE)
