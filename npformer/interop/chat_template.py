"""Chat templates: from the messages of a conversation to the text that a model was trained to continue.

A folder holds the template, a program in the language Jinja, in chat_template.jinja or tokenizer_config.json.
It comes from strangers, so it runs in the sandbox of Jinja, in which it can change nothing outside.

Source: https://huggingface.co/docs/transformers/chat_templating.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from npformer.errors import UserError
from npformer.interop.token_settings import ADVICE, SPECIAL_TOKENS, TokenSettings
from npformer.validation import short

FILE = "chat_template.jinja"
LARGEST = 10_000_000  # characters of a text that a template makes


def chat_text(folder: Path, messages: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a conversation, up to the place where the answer of the model begins.

    Args:
        folder: The folder of the model.
        messages: The messages, each with a "role", such as "user", and its "content".

    Raises:
        UserError: If the messages are no such list, if Jinja is not installed, if the folder has no template,
            or if the template is damaged or refuses the messages.
    """
    _check_messages(messages)
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise UserError(
            f"the chat template in {folder} needs the library Jinja2, which is not installed: "
            "pip install 'npformer[hf]', or write the text of the conversation yourself"
        ) from None
    settings = TokenSettings(folder, {})
    template = _template(folder, settings)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {
        "raise_exception": _raise,
        "strftime_now": lambda form: datetime.now().strftime(form),
    }
    tokens = {name: settings.token(name) for name in SPECIAL_TOKENS if settings.token(name) is not None}
    try:
        text = environment.from_string(template).render(
            messages=[dict(message) for message in messages], add_generation_prompt=True, **tokens
        )
    except (
        TemplateError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"the chat template in {folder} refuses these messages ({reason}): change them"
        ) from None
    if len(text) > LARGEST:
        raise UserError(f"the chat template in {folder} makes {len(text):,} characters: use another model")
    return text


def _check_messages(messages: Any) -> None:
    """Raise UserError unless the messages are a list of objects with a role and a content."""
    if not isinstance(messages, list | tuple) or not messages:
        raise UserError(
            f'chat is {short(messages)}: give a list of messages, [{{"role": "user", "content": ...}}]'
        )
    for message in messages:
        if not isinstance(message, Mapping) or not all(
            isinstance(message.get(key), str) for key in ("role", "content")
        ):
            raise UserError(
                f'a message is {short(message)}: give {{"role": "user", "content": ...}} with two texts'
            )


def _template(folder: Path, settings: TokenSettings) -> str:
    """Return the template of a folder: that of its own file, or of tokenizer_config.json."""
    if (folder / FILE).is_file():
        try:
            return (folder / FILE).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise UserError(f"{folder / FILE} cannot be read ({error}): {ADVICE}") from None
    found = settings.values.get("chat_template")
    if isinstance(found, list):  # several templates with names
        found = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}.get(
            "default"
        )
    if not isinstance(found, str):
        raise UserError(
            f"{folder} has no chat template: give a text, or the folder of a model that was trained to chat"
        )
    return found


def _to_json(value: Any, indent: int | None = None, **settings: Any) -> str:
    """Return a value as JSON, with all characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    """Raise an error of Jinja with the message of a template."""
    from jinja2 import TemplateError

    raise TemplateError(message)
