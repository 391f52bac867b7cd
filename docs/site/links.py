"""What a page needs to be a page of the site: links that lead there, and lists as the renderer knows them.

The pages are written for a code host; their files stay as they are. Knows no renderer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import diagrams

ROOT = Path(__file__).parents[2]
# Pages outside docs/, and where the site has them.
PROJECT = {
    "README.md": "overview.md", "CONTRIBUTING.md": "project/contributing.md", "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changes.md", "bench/README.md": "project/bench.md",
    "examples/README.md": "project/examples.md", "tests/cluster/model/README.md": "project/model.md",
}  # fmt: skip
ORIGINS = {site: origin for origin, site in PROJECT.items()}
INSTEAD = {"config.toml": "reference/settings.md"}  # a file of the root, and the page that says more
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
PAGE_NAME = re.compile(r"[\w./-]+\.md|\w+/")
FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.M | re.S)
ITEM = re.compile(r"^(?:[-*]|\d+\.) ")


def page(text: str, uri: str, is_there: Callable[[str], bool], repository: str) -> str:
    """uri: of the page in the site; is_there: whether the site has a file; repository: its address, or "" """
    parts = FENCE.split(text)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = with_links(with_lists(part), uri, is_there, repository)
        elif part.startswith("```mermaid"):
            parts[number] = diagrams.image(part, "../" * uri.count("/"))
    return "".join(parts)


def with_lists(text: str) -> str:
    """A blank line before a list that follows its sentence at once, as code hosts read it."""
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if ITEM.match(line) and before.strip() and not (ITEM.match(before) or before.startswith(" ")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def with_links(text: str, uri: str, is_there: Callable[[str], bool], repository: str) -> str:
    """Links that lead out of docs/ lead to the site's page, to the repository, or are words only."""
    folder = (ROOT / ORIGINS[uri]).parent if uri in ORIGINS else (ROOT / "docs" / uri).parent

    def replaced(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        path, _, anchor = target.partition("#")
        if not path or ":" in path:
            return found[0]
        named = os.path.relpath(os.path.normpath(folder / path), ROOT)
        place = maybe_place(named, is_there)
        if place is not None:
            led = os.path.relpath(place, os.path.dirname(uri) or ".")
            words = title_of(ROOT / named) if not mark and PAGE_NAME.fullmatch(words) else words
            return f"{mark}[{words}]({led}{'#' + anchor if anchor else ''})"
        return f"[{words}]({repository.rstrip('/')}/blob/main/{named})" if repository else words

    return LINK.sub(replaced, text)


def title_of(path: Path) -> str:
    """The heading of a page, for links that say the file's name."""
    path = path / "README.md" if path.is_dir() else path
    return next((line[2:] for line in path.read_text().splitlines() if line.startswith("# ")), path.stem)


def maybe_place(named: str, is_there: Callable[[str], bool]) -> str | None:
    """The site's file for a path of the repository."""
    if found := PROJECT.get(named) or INSTEAD.get(named):
        return found
    inside = os.path.relpath(named, "docs")
    for each in (inside, f"{inside}/README.md"):
        if not inside.startswith("..") and is_there(each):
            return each
    return None
