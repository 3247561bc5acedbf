"""Bring the catalogs of a language up to date with the English texts.

    python -m npformer.learn.language.update zh_CN [NAME ...]

Without a name, all catalogs of the language are brought up to date. The name of a text that has no catalog
begins one, such as docs/teaching or lessons/05_1_scaled_dot_product_attention; the output says so, since what
has a catalog is offered in the language. Translations of texts that are as
before stay. Where a text has changed, the nearest earlier translation stands beside it, marked as fuzzy,
with the earlier text as a comment, and is not shown until a translator has removed the mark.
"""

import argparse
import difflib
from pathlib import Path

from polib import POEntry, POFile, pofile

from npformer.errors import UserError
from npformer.language import LANGUAGES, NAMES, catalog, path_of
from npformer.learn.language.messages import translated
from npformer.learn.language.sources import CHECKOUT, catalogs_of, messages_for
from npformer.storage.atomic import write_file

NEAR = 0.6  # the similarity from which an earlier translation is offered
FUZZY = "fuzzy"
README = "README"  # its translation is a file of its own


def updated(earlier: list[POEntry], messages: list[str]) -> list[POEntry]:
    """Return the entries of a catalog for the messages of today.

    Args:
        earlier: The entries of the catalog as it was.
        messages: The messages, in order.
    """
    known = {entry.msgid: entry for entry in earlier if entry.msgstr}
    left = [message for message in known if message not in messages]
    entries = []
    for message in messages:
        near = [] if message in known else difflib.get_close_matches(message, left, 1, NEAR)
        if message in known:
            entries.append(known[message])
        elif near:
            text = known[near[0]].msgstr
            entries.append(POEntry(msgid=message, msgstr=text, flags=[FUZZY], previous_msgid=near[0]))
        else:
            entries.append(POEntry(msgid=message))
    return entries


def update(language: str, name: str) -> POFile:
    """Bring a catalog up to date, write it, and return it.

    Raises:
        UserError: If there is no text of this name.
    """
    path, messages = path_of(language, name), messages_for(name)
    if not messages:
        raise UserError(f"there is no text {name}: give the whole name of a lesson, a guide or a catalog")
    file = POFile(wrapwidth=110)
    file.metadata = {"Language": language, "Content-Type": "text/plain; charset=utf-8"}
    file.extend(updated(list(pofile(str(path))) if path.exists() else [], messages))
    path.parent.mkdir(parents=True, exist_ok=True)
    file.save(str(path))
    if name == README:
        write_file(readme_of(language), translated_readme(language).encode(), advice="make it writable")
    return file


def readme_of(language: str) -> Path:
    """Return the file of the README in a language, such as README.zh-CN.md."""
    return CHECKOUT / f"{README}.{language.replace('_', '-')}.md"


def translated_readme(language: str) -> str:
    """Return the README in a language, with a link to the English one in place of the link to itself."""
    english = (CHECKOUT / f"{README}.md").read_text(encoding="utf-8")
    catalog.cache_clear()
    link = f"[{NAMES[language]}]({readme_of(language).name})"
    return translated(english, catalog(language, README)).replace(link, f"[English]({README}.md)")


def main() -> None:
    """Update the catalogs of the command line, and print how much of each is translated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("language", choices=sorted(set(LANGUAGES.values()) - {"en"}))
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    for name in options.names or catalogs_of(options.language):
        path = path_of(options.language, name)
        new = "" if path.exists() else f"; the catalog is new: translate all of it, or remove {path}"
        try:
            file = update(options.language, name)
        except UserError as error:
            parser.error(str(error))
        done, stale = len(file.translated_entries()), len(file.fuzzy_entries())
        print(f"{name}: {len(file)} messages, {done} translated, {stale} stale{new}")


if __name__ == "__main__":
    main()
