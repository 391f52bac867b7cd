"""The table of settings, key by key: its type, its words, and how text becomes its value.

The table itself is `rumq.settings.table`. Refuses to know the sources; gives back None or a reason, never raises.
"""

import tomllib
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin

import msgspec

from rumq.settings.table import Bridge, Function, KafkaView, Settings, Stream
from rumq.settings.types.setting_types import Applies

Value: TypeAlias = bool | int | float | str | tuple[str, ...]
SUFFIXES: Final = {
    "bytes": {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
    "seconds": {"s": 1, "m": 60, "h": 3600, "d": 86_400},
}
SUFFIX_EXAMPLES: Final = {"bytes": "64 MiB", "seconds": "7d"}
NO_BOUND: Final = 2**60  # a bound of the type rather than of the setting
STREAM: Final = "stream"
FUNCTION: Final = "function"
BRIDGE: Final = "bridge"
VIEW: Final = "kafka.view"
VIEWS: Final = "kafka_view"  # the same in Settings
LISTENER: Final = "listener"
MORE_LISTENERS: Final = "more_listeners"


class Key(NamedTuple):
    """One setting. `type` keeps its bounds (msgspec.Meta); `unit` is empty where the line says it.

    applies: what a change of it applies to, without a restart or with one
    usual: what a process of its own takes, where the default is that there is none"""

    name: str  # "segment_bytes_max"
    type: Any
    default: Value
    line: str
    applies: Applies
    unit: str
    least: float | None
    most: float | None
    usual: int | None = None

    @property
    def plain(self) -> Any:
        """The type without its bounds: int, float, str, bool, a Literal or a tuple."""
        return get_args(self.type)[0]

    @property
    def allowed(self) -> str:
        """What may stand here, as the end of "expected ..."."""
        plain = self.plain
        if plain is bool:
            return "true or false"
        if get_origin(plain) is Literal:
            *some, last = (f'"{word}"' for word in get_args(plain))
            return f"{', '.join(some)} or {last}"
        if plain in (int, float):
            if self.least == self.most:
                return f"{self.least}: {self.line}"
            kind = "a whole number" if plain is int else "a number"
            unit = f" of {self.unit}" if self.unit else ""
            also = f', or text such as "{SUFFIX_EXAMPLES[self.unit]}"' if self.unit in SUFFIXES else ""
            return f"{kind}{unit}, {self.limits}{also}"
        if self.unit == "maybe text":
            return f"text of at most {self.most:.0f} characters, or nothing"
        if self.unit == "text":
            return f"text of 1 to {self.most} characters"
        return self.unit

    @property
    def limits(self) -> str:
        """The bounds of a number in few words."""
        if self.least == self.most:
            return f"only {self.least}"
        least, most = (as_counted(bound or 0, self.unit) for bound in (self.least, self.most))
        return f"{least} or more" if (self.most or 0) >= NO_BOUND else f"{least} to {most}"

    @property
    def bounds(self) -> str:
        """Unit and bounds of a number, else the choice, in a few words."""
        if self.plain in (int, float):
            return f"{self.unit}, {self.limits}" if self.unit else self.limits
        return self.allowed

    def maybe_value(self, raw: object) -> Value | None:
        """The checked value of `raw` as TOML gives it, or None where it is not allowed."""
        if isinstance(raw, str) and self.unit in SUFFIXES:
            raw = maybe_counted(raw, self.unit)
        try:
            value: Value = msgspec.convert(raw, self.type)
        except msgspec.ValidationError:
            return None
        return value

    def maybe_value_of_text(self, text: str) -> Value | None:
        """The same for the environment and the command line, where everything is text."""
        plain = self.plain
        if plain is str or get_origin(plain) is Literal:
            return self.maybe_value(text)
        if self.unit in SUFFIXES and maybe_counted(text, self.unit) is not None:
            return self.maybe_value(text)
        return self.maybe_value(maybe_toml(text))


def as_counted(number: float, unit: str) -> str:
    """A number of bytes as `64 MiB` where it is one; others as they are."""
    for suffix, factor in reversed(SUFFIXES["bytes"].items()):
        if unit == "bytes" and number and number % factor == 0:
            return f"{number // factor} {suffix}"
    return str(number)


def maybe_counted(text: str, unit: str) -> int | None:
    """`64 MiB` or `7d` as a number of bytes or seconds."""
    for suffix, factor in SUFFIXES[unit].items():
        digits = text.removesuffix(suffix).strip()
        if text.endswith(suffix) and len(digits) < 19 and digits.isascii() and digits.isdecimal():
            return int(digits) * factor
    return None


def maybe_toml(text: str) -> object | None:
    """One TOML value, as after `key = ` on one line."""
    if "\n" in text or "\r" in text:
        return None
    try:
        return tomllib.loads(f"value = {text}").get("value")
    except ValueError:  # not TOML, or a number of more digits than Python reads
        return None


def as_toml(value: object) -> str:
    """A value as a person would write it in config.toml, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 100_000:
        return f"{value:_}"
    if isinstance(value, str):
        # The environment may hold bytes that are no text.
        return msgspec.json.encode(value.encode(errors="backslashreplace").decode()).decode()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {as_toml(item)}' for key, item in value.items())} }}"
    return str(value)


def keys_of(table: type[msgspec.Struct]) -> dict[str, Key]:
    """The keys of one section, in the table's order."""
    return {field.name: key_of(field) for field in msgspec.structs.fields(table)}


def key_of(field: msgspec.structs.FieldInfo) -> Key:
    meta = next(part for part in get_args(field.type) if isinstance(part, msgspec.Meta))
    assert meta.description is not None and meta.extra is not None
    least = meta.ge if meta.ge is not None else meta.min_length
    most = meta.le if meta.le is not None else meta.max_length
    unit, applies = meta.extra["unit"], meta.extra["applies"]
    usual = meta.extra.get("usual")
    return Key(field.name, field.type, field.default, meta.description, applies, unit, least, most, usual)


def maybe_key(dotted: str) -> Key | None:
    """The key of section.key, stream.NAME.key, function.NAME.key, listener.2.key or "listener number 2.key"; also
    bridge.NAME.key and kafka.view.NAME.key; None for a whole section."""
    above, _, name = dotted.rpartition(".")
    if above.startswith(f"{VIEW}."):
        return VIEW_KEYS.get(name)
    section = above.partition(".")[0].partition(" ")[0]
    if section == FUNCTION:
        return FUNCTION_KEYS.get(name)
    if section == BRIDGE:
        return BRIDGE_KEYS.get(name)
    return STREAM_KEYS.get(name) if section == STREAM else SECTIONS.get(section, {}).get(name)


SECTION_TYPES: Final[dict[str, type[msgspec.Struct]]] = {
    field.name: field.type
    for field in msgspec.structs.fields(Settings)
    if field.name not in (STREAM, FUNCTION, BRIDGE, VIEWS, MORE_LISTENERS)
}
SECTIONS: Final = {name: keys_of(table) for name, table in SECTION_TYPES.items()}
LISTENER_KEYS: Final = SECTIONS[LISTENER]
INHERITED: Final = tuple(name for name in keys_of(Stream) if name in SECTIONS["log"])
# Those of its own come first, as people write them.
STREAM_KEYS: Final = dict(sorted(keys_of(Stream).items(), key=lambda named: named[0] in INHERITED))
FUNCTION_KEYS: Final = keys_of(Function)
BRIDGE_KEYS: Final = keys_of(Bridge)
VIEW_KEYS: Final = keys_of(KafkaView)
KEYS: Final = {f"{section}.{name}": key for section, keys in SECTIONS.items() for name, key in keys.items()}
VARIABLES: Final = {f"RUMQ_{dotted.replace('.', '_').upper()}": dotted for dotted in KEYS} | {
    "RUMQ_STREAM": STREAM,
    "RUMQ_FUNCTION": FUNCTION,
    "RUMQ_BRIDGE": BRIDGE,
    "RUMQ_KAFKA_VIEW": VIEW,
}
