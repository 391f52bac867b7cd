"""Pictures that README.md shows: each can be taken anew by a command, and loads nothing from other hosts."""

import re
from pathlib import Path

from tests.page.screenshots import PICTURES

ROOT = Path(__file__).parents[2]
SHOWN = re.findall(r"\]\((docs/pictures/[^)]+)\)", (ROOT / "README.md").read_text())


def test_the_page_and_the_terminal_are_shown_and_there_is_a_command_for_each() -> None:
    names = {Path(path).stem for path in SHOWN}
    assert "top" in names and names - {"top"} and names - {"top"} <= set(PICTURES)


def test_a_picture_loads_nothing() -> None:
    for path in ROOT.glob("docs/pictures/*.svg"):
        assert re.findall(r"url\(\W?https?:|@import|href=\W?https?:|src=\W?https?:", path.read_text()) == []
