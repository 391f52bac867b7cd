"""The page of all settings, made from the table `rumq.config`."""

from __future__ import annotations

from collections.abc import Iterator

from rumq.cli.broker.setting_changes import can_change
from rumq.config import Stream
from rumq.settings.keys import SECTION_TYPES, SECTIONS, STREAM, STREAM_KEYS, Key, as_toml

HEAD = """\
# Configuration

Every setting, from the table that `rumqd` itself reads. A key stands in `config.toml` (`rumqd config --example`
prints one with all of them), in the environment (`log.durability` is `RUMQ_LOG_DURABILITY`) or on the command line
(`--set log.durability=process`); the command line wins over the environment, that over the file. Bytes may be written
as `"64 MiB"`, seconds as `"7d"`. `rumqd check --config FILE` says what would be refused, `rumqd config --config FILE`
what is in force and where it came from.

*Reload*: whether SIGHUP puts a change into force ([more](../operating.md#changing-settings)); the others need a
restart.
"""


def page() -> str:
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    for section, keys in SECTIONS.items():
        yield from table(f"[{section}]", SECTION_TYPES[section].__doc__ or "", section, keys)
        if section == "log":  # where a stream's missing keys come from
            yield from table(f"[[{STREAM}]]", Stream.__doc__ or "", f"{STREAM}.name", STREAM_KEYS)


def table(title: str, about: str, section: str, keys: dict[str, Key]) -> Iterator[str]:
    yield f"## {title}\n"
    yield " ".join(about.split()) + "\n"
    yield "| key | default | allowed | reload | meaning |"
    yield "|---|---|---|---|---|"
    for key in keys.values():
        reload = "yes" if can_change(f"{section}.{key.name}") else "restart"
        cells = (f"`{key.name}`", f"`{as_toml(key.default)}`", allowed(key), reload, key.line)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def allowed(key: Key) -> str:
    """Unit and bounds of a number; else the choice."""
    if key.plain in (int, float):
        return f"{key.unit}, {key.limits}" if key.unit else key.limits
    return key.allowed
