"""The page of all settings, made from the table `rumq.config`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args, get_origin

import msgspec

from rumq.cli.broker.setting_changes import differences, need_restart
from rumq.config import Settings, Stream
from rumq.settings.keys import SECTION_TYPES, SECTIONS, STREAM, STREAM_KEYS, Key, as_toml

HEAD = """\
# Configuration

Every setting, from the table that `rumqd` itself reads. A key stands in `config.toml` (`rumqd config --example`
prints one with all of them), in the environment (`log.durability` is `RUMQ_LOG_DURABILITY`) or on the command line
(`--set log.durability=process`); the command line wins over the environment, that over the file. Bytes may be written
as `"64 MiB"`, seconds as `"7d"`. `rumqd check --config FILE` says what would be refused, `rumqd config --config FILE`
what is in force and where it came from.

*Reload*: whether SIGHUP puts a change into force ([more](../operating.md#changing-settings)); *restart*
takes effect at the next start, *another listener* closes the old one and opens a new one.
"""


def page() -> str:
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    for section, keys in SECTIONS.items():
        yield from table(f"[{section}]", SECTION_TYPES[section].__doc__ or "", section, keys)
        if section == "log":  # where a stream's missing keys come from
            yield from table(f"[[{STREAM}]]", Stream.__doc__ or "", STREAM, STREAM_KEYS)


def table(title: str, about: str, section: str, keys: dict[str, Key]) -> Iterator[str]:
    yield f"## {title}\n"
    yield " ".join(about.split()) + "\n"
    yield "| key | default | allowed | reload | meaning |"
    yield "|---|---|---|---|---|"
    for key in keys.values():
        cells = (f"`{key.name}`", f"`{as_toml(key.default)}`", allowed(key), reload(section, key), key.line)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def reload(section: str, key: Key) -> str:
    """What the broker does with a change of the key: it is asked with settings before and after one."""
    if section == STREAM:
        stream = Stream(name="some")
        old = msgspec.structs.replace(Settings(), stream=(stream,))
        new = msgspec.structs.replace(old, stream=(changed(stream, key),))
    else:
        old = Settings()
        new = msgspec.structs.replace(old, **{section: changed(getattr(old, section), key)})
    found = list(differences(old, new))
    assert found, f"{section}.{key.name}: a change is not noticed"
    if need_restart(old, new, found):
        return "restart"
    return "another listener" if "listener" in found else "yes"


def changed(values: msgspec.Struct, key: Key) -> msgspec.Struct:
    """A section with another value of one key."""
    value, plain = getattr(values, key.name), key.plain
    other: object
    if isinstance(value, bool):
        other = not value
    elif get_origin(plain) is Literal:
        other = next(each for each in get_args(plain) if each != value)
    elif isinstance(value, str):
        other = f"{value}x"
    else:
        other = (*value, "x") if isinstance(value, tuple) else value + 1
    return msgspec.structs.replace(values, **{key.name: other})


def allowed(key: Key) -> str:
    """Unit and bounds of a number; else the choice."""
    if key.plain in (int, float):
        return f"{key.unit}, {key.limits}" if key.unit else key.limits
    return key.allowed
