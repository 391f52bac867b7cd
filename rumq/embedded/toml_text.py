"""Settings as the text of a config.toml: what other processes of the same broker read. docs/reference/settings.md"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rumq.settings.keys import as_toml


def toml_of(tree: Mapping[str, Any]) -> str:
    """tree: section -> key -> value, or section -> list of those"""
    return "\n".join(lines_of(tree)) + "\n"


def lines_of(tree: Mapping[str, Any]) -> Iterator[str]:
    for section, content in tree.items():
        several = content if isinstance(content, list) else [content]
        for each in several:
            yield f"[[{section}]]" if isinstance(content, list) else f"[{section}]"
            yield from (f"{key} = {as_toml(value)}" for key, value in each.items())
