"""docs/reference/settings.md: the page of all settings, made from the table."""

from __future__ import annotations

from collections.abc import Iterator

from rumq.settings.keys import (
    BRIDGE,
    BRIDGE_KEYS,
    FUNCTION,
    FUNCTION_KEYS,
    SECTION_TYPES,
    SECTIONS,
    STREAM,
    STREAM_KEYS,
    VIEW,
    VIEW_KEYS,
    Key,
    as_toml,
)
from rumq.settings.table import Bridge, Function, KafkaView, Stream

HEAD = """\
# Settings

Every setting, from the table that `rumqd` itself reads. A key stands in `config.toml` (`rumqd config --example`
prints one with all of them), in the environment (`log.durability` is `RUMQ_LOG_DURABILITY`) or on the command line
(`--set log.durability=process`); the command line wins over the environment, that over the file. Bytes may be written
as `"64 MiB"`, seconds as `"7d"`. `rumqd check --config FILE` says what would be refused, `rumqd show settings --config
FILE` what is in force and where it came from.

A change *applies* once the settings are read again (SIGHUP, [more](../guides/operating.md#changing-settings)):

| applies | means |
|---|---|
| live | at once, also to clients that are connected |
| new connections | to clients that connect from then on |
| another listener | the old listener is closed, its clients are disconnected, and another one is opened |
| restart | at the next start; until then the reload lists it (`after_restart` of `settings.reloaded`) |

A key that names a file counts as changed when the file has changed. `rumqd show settings --page` writes this page.
"""


def page() -> str:
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    for section, keys in SECTIONS.items():
        yield from table(f"[{section}]", SECTION_TYPES[section].__doc__ or "", keys)
        if section == "log":  # where a stream's missing keys come from
            yield from table(f"[[{STREAM}]]", Stream.__doc__ or "", STREAM_KEYS)
            yield from table(f"[[{FUNCTION}]]", Function.__doc__ or "", FUNCTION_KEYS)
            yield from table(f"[[{BRIDGE}]]", Bridge.__doc__ or "", BRIDGE_KEYS)
        if section == "kafka":
            yield from table(f"[[{VIEW}]]", KafkaView.__doc__ or "", VIEW_KEYS)


def table(title: str, about: str, keys: dict[str, Key]) -> Iterator[str]:
    yield f"## {title}\n"
    yield " ".join(about.split()) + "\n"
    yield "| key | default | allowed | applies | meaning |"
    yield "|---|---|---|---|---|"
    for key in keys.values():
        cells = (f"`{key.name}`", f"`{as_toml(key.default)}`", key.bounds, key.applies, key.line)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
