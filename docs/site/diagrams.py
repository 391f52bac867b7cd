"""Diagrams: Mermaid text of the pages as SVG files that were drawn before, so that the site needs no script.

`python docs/site/draw.py` draws those that are missing (npm and Chromium); a code host draws the text itself."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "diagrams"
BLOCK = re.compile(r"^```mermaid\n(.*?)^```", re.M | re.S)


def texts_of(page: str) -> list[str]:
    return BLOCK.findall(page)


def name_of(text: str) -> str:
    """A file for each text: an edit needs a new drawing."""
    return f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.svg"


def drawn() -> dict[str, str]:
    """Name -> SVG of every drawing there is."""
    return {path.name: path.read_text() for path in sorted(FOLDER.glob("*.svg"))}


def image(block: str, up: str) -> str:
    """The block as an image; as it is when nobody has drawn it. up: the way to the site's root"""
    [text] = texts_of(block + "\n")
    name = name_of(text)
    if not (FOLDER / name).exists():
        return block
    words = " ".join(text.split()[:2])
    return f'<p class="diagram"><a href="{up}diagrams/{name}"><img src="{up}diagrams/{name}" alt="{words}"></a></p>'
