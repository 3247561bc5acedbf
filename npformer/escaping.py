"""Text from outside, made safe to show: on a terminal, in Markdown, and as a word of a shell command.

Sentences, names of files, model cards and messages of other people's code may contain anything. Whatever is
shown to a person passes through one of these functions.
"""

import os
import re
import shlex

_UNPRINTABLE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters: escape sequences, carriage returns, ends of lines
    "\u2028\u2029"  # the ends of lines and paragraphs of Unicode
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # the direction of writing, which can reorder a line
    "\ufff9-\ufffb"  # annotations, whose text a terminal may hide
    "\ud800-\udfff"  # lone surrogates: the bytes of a file name that is not UTF-8
    "]"
)
# d_model is a word, _this_ is emphasis; & begins a character reference only before its name or number
_MARKDOWN = re.compile(r"[\\`*\[\]<>$#~]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")


def printable(text: object, *, keep: str = "") -> str:
    r"""Return a text that shows every character and steers nothing, such as `a\x1b[31mb` and `caf\udce9.txt`.

    Control characters, signs for the direction of writing and lone surrogates become Python's backslash
    escapes. All other characters stay as they are.

    Args:
        text: The text, or an object whose `str` is the text, such as a path.
        keep: Characters that stay as they are: "\n\t" for a text of several lines.
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else escape(found[0]), str(text))


def escape(character: str) -> str:
    r"""Return Python's backslash escape of a character, such as `\x1b` or `\u202e`."""
    return character.encode("unicode_escape").decode()


def token_label(token: str) -> str:
    """Return a token as a table shows it, in quotes if it has spaces or other invisible characters."""
    return token if token and not token[0].isspace() and printable(token) == token else repr(token)


def markdown(text: object) -> str:
    """Return a text as Markdown that shows it as it is, on one line: <S>, *, | and [a](b) are not markup."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(text)).replace("|", "&#124;")  # a bar ends a table's cell


def markdown_code(text: object) -> str:
    """Return a text as a code span of Markdown, also where the text has backticks or stands in a table."""
    shown = printable(text).replace("|", r"\|")
    fence = markdown_fence(shown, shortest=1)
    return f"{fence} {shown} {fence}" if "`" in shown else f"{fence}{shown}{fence}"


def markdown_fence(text: str, *, shortest: int = 3) -> str:
    """Return the backticks that begin and end code: more than the code has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)


def shell_word(text: str | os.PathLike[str]) -> str:
    """Return a path or a name as a word of a shell command, quoted if the shell would change it."""
    word = os.fspath(text)
    return _quoted(f"./{word}" if word.startswith("-") else word)  # a command would read it as an option


def shell_text(text: str) -> str:
    """Return a sentence as a word of a shell command, in double quotes if the shell keeps it as it is."""
    plain = not set(text) & set('"$`\\!') and printable(text) == text
    return f'"{text}"' if plain else _quoted(text)


def _quoted(word: str) -> str:
    """Return a word quoted for bash and zsh, if they would change it."""
    if printable(word) == word:
        return shlex.quote(word)
    parts = [
        "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
        if _UNPRINTABLE.match(character)
        # bash and zsh read $'...' with backslash escapes
        else re.sub(r"[\\']", r"\\\g<0>", character)
        for character in word
    ]
    return f"$'{''.join(parts)}'"
