"""Pictures in the terminal itself: the protocols of kitty and of iTerm2."""

import base64
from collections.abc import Mapping

CHUNK = 4096  # bytes of base64 in one of kitty's escape sequences
COLUMNS = 72  # as wide as a picture is shown


def protocol(environment: Mapping[str, str]) -> str:
    """Which of the two, or "" where the terminal shows no pictures, or tmux or screen stands between."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return ""
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if "KITTY_WINDOW_ID" in environment or term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty":
        return "kitty"
    return "iterm2" if program in ("iTerm.app", "WezTerm") else ""


def escape_sequence(png: bytes, how: str, columns: int = COLUMNS) -> str:
    """What to write to a terminal so that it shows a PNG there."""
    data = base64.b64encode(png).decode()
    if how == "iterm2":
        return f"\033]1337;File=inline=1;size={len(png)};width={columns}:{data}\a\n"
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    parts = []
    for index, chunk in enumerate(chunks):
        first = f"a=T,f=100,c={columns}," if index == 0 else ""
        parts.append(f"\033_G{first}m={int(index < len(chunks) - 1)};{chunk}\033\\")
    return "".join(parts) + "\n"
