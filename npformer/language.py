"""The languages in which npformer speaks: catalogs of translated messages, and the language of the reader.

A message is an English sentence or paragraph, which is also its key. The catalogs are files of gettext
(locale/LANGUAGE/LC_MESSAGES/NAME.po), one for each document, which any editor for such files opens. A message
that has no translation, or whose translation was made for an earlier text, appears in English.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from npformer.errors import UserError

LOCALE = Path(__file__).parent / "locale"
ENGLISH = "en"
LANGUAGES = {"en": ENGLISH, "zh": "zh_CN"}  # what a reader writes, and the folder of the catalogs
NAMES = {ENGLISH: "English", "zh_CN": "中文"}  # what speakers of a language call it
VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as for other programs
INTERFACE = "interface"  # the catalog of the sentences in the program, and that of those about mistakes
GRADER = "grader"
GLOSSARY = "glossary"  # the catalog of the definitions
BUGS = "bugs"  # the catalog of the programs with a bug
EXPLORER = "explorer"  # the catalog of the words of the explorer's page
CHINESE = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
GAP = re.compile(f"(?<={CHINESE}) (?={CHINESE})")  # spaces enclose values, which are mostly Latin

_language = ContextVar("language", default=ENGLISH)


def language_named(name: str) -> str:
    """Return the language that a reader names, such as "zh", "zh_CN" or "zh-Hans".

    Raises:
        UserError: If npformer does not speak it.
    """
    short = name.replace("-", "_").partition("_")[0].lower()
    if short not in LANGUAGES:
        known = " or ".join(LANGUAGES)
        raise UserError(f"npformer does not speak the language {name!r}: choose {known}")
    return LANGUAGES[short]


def language_of_environment(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language that the environment chooses, such as zh_CN for LANG=zh_CN.UTF-8, or English."""
    chosen = next((environment[name] for name in VARIABLES if environment.get(name)), "")
    return LANGUAGES.get(chosen.partition(".")[0].partition("_")[0].lower(), ENGLISH)


def language_for(name: str | None) -> str:
    """Return the language that a reader names, or else that of the environment.

    Raises:
        UserError: If npformer does not speak it.
    """
    return language_named(name) if name else language_of_environment()


def current_language() -> str:
    """Return the language that `speaking` chose, or English."""
    return _language.get()


@contextlib.contextmanager
def speaking(language: str) -> Iterator[None]:
    """Choose the language of `say` for what runs inside.

    Args:
        language: ENGLISH, or the folder of the catalogs, such as "zh_CN".
    """
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def language_tag() -> str:
    """Return the current language as pages of HTML name it, such as zh-CN."""
    return current_language().replace("_", "-")


def say(message: str, /, **values: object) -> str:
    """Return a sentence of the program in the current language, with its values.

    Args:
        message: The English sentence with the names of the values in braces. It is written out where the
            function is called, so that it can be found and translated.
        **values: The values.
    """
    return phrase(message, INTERFACE, GRADER, **values)


def phrase(message: str, /, *names: str, **values: object) -> str:
    """Return a message that stands in a table or a text, in the current language, with its values.

    Args:
        message: The English message, with the names of the values in braces if there are values.
        *names: The names of the catalogs that may have it.
        **values: The values.
    """
    language = current_language()
    found = (catalog(language, name).get(message) for name in names)
    text = next(filter(None, found), message)
    text = text.format(**values) if values else text
    return text if language == ENGLISH else GAP.sub("", text)


def later(message: str) -> str:
    """Return a message of the program as it is: `phrase` says it later, in the language of that time."""
    return message


def path_of(language: str, name: str) -> Path:
    """Return the file of a catalog."""
    return LOCALE / language / "LC_MESSAGES" / f"{name}.po"


@cache
def catalog(language: str, name: str) -> dict[str, str]:
    """Return the translations of a document's messages, without those that are missing or stale.

    Args:
        language: ENGLISH, or the folder of the catalogs, such as "zh_CN".
        name: The name of the catalog, such as "lessons/05_1_scaled_dot_product_attention".
    """
    if language == ENGLISH or not path_of(language, name).exists():
        return {}
    from polib import pofile  # only readers of other languages need it

    return {entry.msgid: entry.msgstr for entry in pofile(str(path_of(language, name))).translated_entries()}
