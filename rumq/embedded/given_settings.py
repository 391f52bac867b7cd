"""Settings as a program gives them: sections of config.toml as mappings, or dotted keys. docs/reference/settings.md

Checks shapes only; the broker's own process checks names and values, and names each fault."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

Given = Mapping[str, object]


def settings_tree(settings: Given | None, sections: Given) -> dict[str, Any]:
    """Section -> key -> value. settings: `{"log": {"durability": "process"}}` or `{"log.durability": "process"}`;
    sections: the same as keywords, which win"""
    tree: dict[str, Any] = {}
    for source in (settings or {}, sections):
        for name, value in source.items():
            section, dot, key = name.partition(".")
            content = {key: value} if dot else value
            if isinstance(content, Mapping):
                earlier = tree.get(section, {})
                tree[section] = (earlier if isinstance(earlier, dict) else {}) | plain(content)
            else:
                tree[section] = plain(content)
    return tree


def plain(value: object) -> Any:
    """As JSON and TOML have it: a path as text, a tuple as a list."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    return value
