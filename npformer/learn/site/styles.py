"""The style sheet and the scripts of the reference, the gallery, the bug zoo and the search."""

from pathlib import Path

WEB = Path(__file__).parent / "web"
STYLE = "reference.css"


def web_file(name: str) -> bytes:
    """Return a file of the folder web/."""
    return (WEB / name).read_bytes()


# the asset of every page that needs the style sheet
STYLES = {STYLE: web_file(STYLE)}
