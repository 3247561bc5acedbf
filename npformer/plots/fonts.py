"""Which fonts write a text: DejaVu Sans, which comes with matplotlib, and others for what it lacks."""

import re
from functools import lru_cache

from matplotlib.font_manager import FontProperties, fontManager, get_font

from npformer.errors import UserError

FIRST = "DejaVu Sans"

# installed fonts that hold Chinese, Japanese or Korean say so in their names
_EAST_ASIAN = re.compile(
    r"CJK|Source Han|Noto (Sans|Serif) (SC|TC|HK|JP|KR)|WenQuanYi|YaHei|SimHei|SimSun|PingFang|Heiti|Hei\b"
    r"|Song|Ming|Kai|Fang|Hiragino|Gothic|Mincho|Droid Sans Fallback|Arial Unicode|Unifont|Nanum|UMing|UKai"
)


def families_for(text: str) -> list[str]:
    """Font families that together have every character of the text, the first one first.

    Errors: UserError where no installed font has one: a picture must not show empty boxes.
    """
    missing = {c for c in text if c.isprintable() and not _has(_path(FIRST), c)}
    families = [FIRST]
    for name in _others() if missing else ():
        found = {c for c in missing if _has(_path(name), c)}
        if found:
            families.append(name)
            missing -= found
        if not missing:
            break
    if missing:
        characters = "".join(sorted(missing))
        few = characters if len(characters) <= 8 else characters[:8] + " …"
        raise UserError(
            f"no installed font can draw {few}: install one that can (Noto Sans CJK SC for Chinese), "
            "then start Python anew"
        )
    return families


def _others() -> list[str]:
    """Names of installed fonts that may hold what the first lacks, in a fixed order."""
    names = {entry.name for entry in fontManager.ttflist if _EAST_ASIAN.search(entry.name)}
    return sorted(names)


def _path(name: str) -> str:
    return fontManager.findfont(FontProperties(family=[name]))


@lru_cache(maxsize=4096)
def _has(path: str, character: str) -> bool:
    return get_font(path).get_char_index(ord(character)) != 0
