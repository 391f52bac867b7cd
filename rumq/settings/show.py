"""Write settings for people: the commented config.toml, and what is in force with where it came from.

Both are TOML. Refuses to know any key by name: all is in the table.
"""

from collections.abc import Iterator

import msgspec

from rumq.settings.keys import (
    BRIDGE,
    BRIDGE_KEYS,
    FUNCTION,
    FUNCTION_KEYS,
    LISTENER,
    SECTION_TYPES,
    SECTIONS,
    STREAM,
    STREAM_KEYS,
    VIEW,
    VIEW_KEYS,
    Key,
    as_toml,
)
from rumq.settings.load import Loaded
from rumq.settings.table import Bridge, Function, KafkaView, Settings, Stream

HEAD = """\
# Every setting of rumqd, its default, its unit and a line of why. Run it with: rumqd run --config config.toml
#
# The same key as an environment variable: log.durability is RUMQ_LOG_DURABILITY. On the command line:
# --set log.durability=process. The command line wins over the environment, that over this file.
# Bytes may be written as "64 MiB" and seconds as "7d". An unknown key or an impossible value is refused.
# Behind each key: its unit and bounds; what a change applies to when the settings are read again (SIGHUP): "live" at
# once, "new connections" from then on, "another listener" in place of the old one, or nothing before a "restart".
# This file is written from rumq's own table of settings: rumqd config --example. In force: rumqd show settings
"""

STREAM_EXAMPLE = Stream(name="plant", filters=("plant/#",))
FUNCTION_EXAMPLE = Function(name="mean", filters=("plant/#",), code="functions.py:mean", prefix="mean/")
BRIDGE_EXAMPLE = Bridge(name="centre", url="mqtts://centre.example", topics=("plant/# out 2", "commands/# in 1"))
VIEW_EXAMPLE = KafkaView()


def example() -> str:
    """config.toml: every key at its default, and one stream as a comment."""
    return "\n".join([HEAD, *example_lines()])


def example_lines() -> Iterator[str]:
    for section, keys in SECTIONS.items():
        yield from about(SECTION_TYPES[section])
        yield f"[{section}]"
        for key in keys.values():
            yield f"# {key.line}"
            yield with_comment(f"{key.name} = {as_toml(key.default)}", f"{key.bounds}; {key.applies}")
        yield ""
        if section == "log":  # where a stream's missing keys come from
            yield from commented_example(STREAM, STREAM_KEYS, STREAM_EXAMPLE)
            yield from commented_example(FUNCTION, FUNCTION_KEYS, FUNCTION_EXAMPLE)
            yield from commented_example(BRIDGE, BRIDGE_KEYS, BRIDGE_EXAMPLE)
        if section == "kafka":
            yield from commented_example(VIEW, VIEW_KEYS, VIEW_EXAMPLE)


def commented_example(
    section: str, keys: dict[str, Key], example: Stream | Function | Bridge | KafkaView
) -> Iterator[str]:
    yield from about(type(example))
    yield f"# [[{section}]]"
    for key in keys.values():
        yield f"# # {key.line}"
        yield with_comment(f"# {key.name} = {as_toml(getattr(example, key.name))}", f"{key.bounds}; {key.applies}")
    yield ""


def about(table: type[msgspec.Struct]) -> Iterator[str]:
    for line in (table.__doc__ or "").strip().splitlines():
        yield f"# {line.strip()}".rstrip()


def with_comment(setting: str, comment: str) -> str:
    return f"{setting:<44}# {comment}"


def in_force(loaded: Loaded) -> str:
    """The settings as TOML that could be run again, each with its source."""
    return "\n".join(in_force_lines(loaded.settings, loaded.origins))


def as_object(loaded: Loaded) -> dict[str, dict[str, object]]:
    """Each setting by its dotted key: {"value": ..., "source": ...}; streams by name, further listeners by number."""
    settings = loaded.settings
    structs: dict[str, msgspec.Struct] = {section: getattr(settings, section) for section in SECTIONS}
    structs |= {f"{LISTENER}.{number}": each for number, each in enumerate(settings.more_listeners, start=2)}
    structs |= {f"{STREAM}.{each.name}": each for each in settings.stream}
    structs |= {f"{FUNCTION}.{each.name}": each for each in settings.function}
    structs |= {f"{BRIDGE}.{each.name}": each for each in settings.bridge}
    structs |= {f"{VIEW}.{each.name}": each for each in settings.kafka_view}
    found: dict[str, dict[str, object]] = {}
    for key, source in loaded.origins.items():
        above, _, name = key.rpartition(".")
        if above in structs:
            found[key] = {"value": msgspec.to_builtins(getattr(structs[above], name)), "source": source}
    return found


def in_force_lines(settings: Settings, origins: dict[str, str]) -> Iterator[str]:
    for section, keys in SECTIONS.items():
        several = section == LISTENER and settings.more_listeners
        yield f"[[{section}]]" if several else f"[{section}]"
        for name in keys:
            value = getattr(getattr(settings, section), name)
            yield with_comment(f"{name} = {as_toml(value)}", origins[f"{section}.{name}"])
        yield ""
        for number, listener in enumerate(settings.more_listeners if several else (), start=2):
            yield f"[[{LISTENER}]]"
            for name in keys:
                source = origins[f"{LISTENER}.{number}.{name}"]
                yield with_comment(f"{name} = {as_toml(getattr(listener, name))}", source)
            yield ""
    for stream in settings.stream:
        yield f"[[{STREAM}]]"
        for name in STREAM_KEYS:
            value = getattr(stream, name)
            source = origins[f"{STREAM}.{stream.name}.{name}"]
            yield with_comment(f"{name} = {as_toml(value)}", source)
        yield ""
    for function in settings.function:
        yield f"[[{FUNCTION}]]"
        for name in FUNCTION_KEYS:
            source = origins[f"{FUNCTION}.{function.name}.{name}"]
            yield with_comment(f"{name} = {as_toml(getattr(function, name))}", source)
        yield ""
    for bridge in settings.bridge:
        yield f"[[{BRIDGE}]]"
        for name in BRIDGE_KEYS:
            source = origins[f"{BRIDGE}.{bridge.name}.{name}"]
            yield with_comment(f"{name} = {as_toml(getattr(bridge, name))}", source)
        yield ""
    for view in settings.kafka_view:
        yield f"[[{VIEW}]]"
        for name in VIEW_KEYS:
            source = origins[f"{VIEW}.{view.name}.{name}"]
            yield with_comment(f"{name} = {as_toml(getattr(view, name))}", source)
        yield ""
