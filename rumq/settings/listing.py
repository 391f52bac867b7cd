"""The settings in force, key by key with what the table says of each: for people, and as rows."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from rumq.settings.keys import SUFFIXES, Key, as_counted, as_toml, maybe_key
from rumq.settings.load import Loaded, near_words
from rumq.settings.show import as_object


class SettingRow(NamedTuple):
    """A setting in force. name: dotted; streams by name, further listeners by number"""

    name: str
    value: object
    source: str
    key: Key


def rows(loaded: Loaded, pattern: str = "") -> list[SettingRow]:
    """Those whose name holds the pattern, or matches it where it has * or ?; in the table's order."""
    found = []
    for name, each in as_object(loaded).items():
        key = maybe_key(name)
        if key is not None and matches(name, pattern):
            found.append(SettingRow(name, each["value"], str(each["source"]), key))
    return found


def matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) if set("*?[") & set(pattern) else pattern in name


def nearest(loaded: Loaded, pattern: str) -> str:
    """What may have been meant by a pattern that matches nothing; "": nothing is near."""
    names = list(as_object(loaded))
    last = [name.rpartition(".")[2] for name in names]
    return near_words(pattern, names) or near_words(pattern, dict.fromkeys(last))


def as_text(found: list[SettingRow]) -> str:
    return "\n".join(line for row in found for line in row_lines(row))


def row_lines(row: SettingRow) -> Iterator[str]:
    counted = as_counted(row.value, row.key.unit) if row.key.unit in SUFFIXES and isinstance(row.value, int) else ""
    value = as_toml(row.value) + (f"  ({counted})" if " " in counted else "")
    yield f"{row.name} = {value}"
    yield f"    {row.key.line}"
    yield f"    allowed: {row.key.bounds}"
    default = "" if row.value == row.key.default else f"; default: {as_toml(row.key.default)}"
    yield f"    from: {row.source}{default}; a change applies: {APPLIES[row.key.applies]}"


APPLIES = {
    "live": "live, at a reload",
    "new connections": "to new connections, from a reload on",
    "another listener": "at a reload, which closes this listener and opens another one",
    "restart": "after a restart",
}


def as_rows(found: list[SettingRow]) -> dict[str, dict[str, object]]:
    """For JSON, by name."""
    return {
        row.name: {
            "value": row.value, "source": row.source, "default": row.key.default, "unit": row.key.unit,
            "allowed": row.key.bounds, "applies": row.key.applies, "line": row.key.line,
        }
        for row in found
    }  # fmt: skip
