"""Read the settings from their sources. Later ones win: default, config file, environment, command line.

Every value of every source is checked, also one that a later source overrides, and all faults are reported at
once: who starts a broker should need one try, not one a mistake. Refuses to know what a setting does.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from rumq.errors import ConfigError, Fault
from rumq.settings.keys import (
    BRIDGE,
    BRIDGE_KEYS,
    FUNCTION,
    FUNCTION_KEYS,
    INHERITED,
    KEYS,
    LISTENER,
    LISTENER_KEYS,
    SECTION_TYPES,
    SECTIONS,
    STREAM,
    STREAM_KEYS,
    VARIABLES,
    VIEW,
    VIEW_KEYS,
    Key,
    Value,
    as_toml,
    maybe_toml,
)
from rumq.settings.queue_streams import place_of, queue_streams
from rumq.settings.rules import broken_rules
from rumq.settings.table import Bridge, Function, KafkaView, Listener, Settings, Shards, Stream


class Flag(NamedTuple):
    """A setting from the command line: `key` dotted, `text` as typed, `source` "--set" or the flag."""

    key: str
    text: str
    source: str


NEARER = 0.2  # a word that is so much nearer than the next is the one that was meant
Tree: TypeAlias = tuple[str, dict[str, object]]


class Loaded(NamedTuple):
    """The settings in force, and where each came from: dotted key (stream keys by name) -> source."""

    settings: Settings
    origins: dict[str, str]


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Iterable[Flag] = (),
    *,
    tree: Tree | None = None,
) -> Loaded:
    """Merge the sources and check the result.

    path: a TOML file; tree: (name, content) of another kind of file, as if it were one
    environ: names as RUMQ_LOG_DURABILITY, others are left alone
    raises: ConfigError with every fault found
    """
    draft = Draft()
    if path is not None:
        draft.take_file(path)
    if tree is not None:
        draft.take_tree(*tree)
    draft.take_environment(environ or {})
    draft.take_flags(flags)
    if draft.faults:
        raise ConfigError(*draft.faults)
    loaded = draft.loaded()
    if broken := broken_rules(loaded.settings, loaded.origins):
        raise ConfigError(*broken)
    return loaded


class Draft:
    """What the sources have said so far, and what was wrong with it."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.streams: list[dict[str, Value]] = []
        self.origins: dict[str, str] = {}
        self.streams_origin = ""
        self.functions: list[dict[str, Value]] = []
        self.functions_origin = ""
        self.bridges: list[dict[str, Value]] = []
        self.bridges_origin = ""
        self.views: list[dict[str, Value]] = []
        self.views_origin = ""
        self.more_listeners: list[dict[str, Value]] = []  # than the first, whose keys are among the values
        self.listeners_origin = ""
        self.faults: list[Fault] = []

    def refuse(self, source: str, key: str, problem: str, value: str = "") -> None:
        self.faults.append(Fault(source, key, value, problem))

    def take_file(self, path: Path) -> None:
        source = str(path)
        try:
            tree = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as fault:
            return self.refuse(source, "", f"cannot be read: {fault.strerror}")
        except UnicodeDecodeError as fault:
            return self.refuse(source, "", f"is not UTF-8 at byte {fault.start}")
        except ValueError as fault:
            return self.refuse(source, "", f"is not TOML: {fault}")
        self.take_tree(source, tree)

    def take_tree(self, source: str, tree: dict[str, object]) -> None:
        for section, content in tree.items():
            if section == STREAM:
                self.take_streams(source, content)
            elif section == FUNCTION:
                self.take_functions(source, content)
            elif section == BRIDGE:
                self.take_bridges(source, content)
            elif section == LISTENER and isinstance(content, list):
                self.take_listeners(source, content)
            elif section not in SECTIONS:
                shown = "" if isinstance(content, dict | list) else section
                self.refuse(source, shown or f"[{section}]", unknown(section, SECTIONS, tree=not shown))
            elif not isinstance(content, dict):
                self.refuse(source, section, f"expected a section, [{section}], not a value", as_toml(content))
            else:
                for name, raw in content.items():
                    self.take_raw(source, f"{section}.{name}", raw)

    def take_raw(self, source: str, dotted: str, raw: object) -> None:
        if dotted == VIEW:
            return self.take_views(source, raw)
        if (key := KEYS.get(dotted)) is None:
            self.refuse(source, dotted, unknown(dotted, KEYS))
        elif (value := key.maybe_value(raw)) is None:
            self.refuse(source, dotted, f"expected {key.allowed}", as_toml(raw))
        else:
            self.values[dotted], self.origins[dotted] = value, source
        return None

    def take_environment(self, environ: Mapping[str, str]) -> None:
        for variable in sorted(environ):
            if not variable.startswith("RUMQ_"):
                continue
            source = f"environment {variable}"
            if variable in VARIABLES:
                self.take_text(source, VARIABLES[variable], environ[variable])
            elif near := near_words(variable, VARIABLES, cutoff=0.85):
                # Others are left alone: container platforms put RUMQ_SERVICE_HOST and the like here.
                self.refuse(source, "", f"no such setting; did you mean {near}?")

    def take_flags(self, flags: Iterable[Flag]) -> None:
        for flag in flags:
            if flag.key in (STREAM, FUNCTION, BRIDGE, VIEW) or flag.key in KEYS:
                self.take_text(flag.source, flag.key, flag.text)
            else:
                self.refuse(flag.source, flag.key, unknown(flag.key, [*KEYS, STREAM, FUNCTION, BRIDGE, VIEW]))

    def take_text(self, source: str, dotted: str, text: str) -> None:
        if dotted == STREAM:
            return self.take_streams(source, maybe_toml(text), as_text=text)
        if dotted == FUNCTION:
            return self.take_functions(source, maybe_toml(text), as_text=text)
        if dotted == BRIDGE:
            return self.take_bridges(source, maybe_toml(text), as_text=text)
        if dotted == VIEW:
            return self.take_views(source, maybe_toml(text), as_text=text)
        key = KEYS[dotted]
        if (value := key.maybe_value_of_text(text)) is None:
            shown = text if maybe_toml(text) is not None else as_toml(text)
            self.refuse(source, dotted, f"expected {key.allowed}", shown)
        else:
            self.values[dotted], self.origins[dotted] = value, source

    def take_streams(self, source: str, raw: object, as_text: str | None = None) -> None:
        """Replace the streams of earlier sources as a whole: their order decides where a topic goes."""
        if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
            expected = '[[stream]] sections, or on one line [{ name = "plant", filters = ["plant/#"] }]'
            return self.refuse(source, STREAM, f"expected {expected}", as_toml(raw if as_text is None else as_text))
        self.streams_origin = source
        self.streams = [self.stream(source, number, each) for number, each in enumerate(raw, start=1)]

    def take_functions(self, source: str, raw: object, as_text: str | None = None) -> None:
        """Replace the functions of earlier sources as a whole."""
        if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
            expected = '[[function]] sections, or on one line [{ name = "mean", filters = ["plant/#"], ... }]'
            return self.refuse(source, FUNCTION, f"expected {expected}", as_toml(raw if as_text is None else as_text))
        self.functions_origin = source
        needed = ("name", "filters", "code", "prefix")
        self.functions = [
            self.named(source, number, each, FUNCTION, FUNCTION_KEYS, needed)
            for number, each in enumerate(raw, start=1)
        ]

    def take_bridges(self, source: str, raw: object, as_text: str | None = None) -> None:
        """Replace the bridges of earlier sources as a whole."""
        if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
            expected = (
                '[[bridge]] sections, or on one line [{ name = "centre", url = "mqtt://...", topics = ["# out 2"] }]'
            )
            return self.refuse(source, BRIDGE, f"expected {expected}", as_toml(raw if as_text is None else as_text))
        self.bridges_origin = source
        self.bridges = [
            self.named(source, number, each, BRIDGE, BRIDGE_KEYS, ("name", "url", "topics"))
            for number, each in enumerate(raw, start=1)
        ]

    def take_views(self, source: str, raw: object, as_text: str | None = None) -> None:
        """Replace the views of earlier sources as a whole."""
        if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
            expected = f'[[{VIEW}]] sections, or on one line [{{ name = "plant", filter = "plant/#" }}]'
            return self.refuse(source, VIEW, f"expected {expected}", as_toml(raw if as_text is None else as_text))
        self.views_origin = source
        self.views = [
            self.named(source, number, each, VIEW, VIEW_KEYS, ("name", "filter"))
            for number, each in enumerate(raw, start=1)
        ]

    def take_listeners(self, source: str, raw: list[object]) -> None:
        sections = [each for each in raw if isinstance(each, dict)]
        if not raw or len(sections) < len(raw):
            return self.refuse(source, LISTENER, "expected [[listener]] sections", as_toml(raw))
        for name, value in sections[0].items():
            self.take_raw(source, f"{LISTENER}.{name}", value)
        self.listeners_origin = source
        for number, each in enumerate(sections[1:], start=2):
            values: dict[str, Value] = {}
            for name, given in each.items():
                if (key := LISTENER_KEYS.get(name)) is None:
                    self.refuse(source, f"{LISTENER} number {number}.{name}", unknown(name, LISTENER_KEYS))
                elif (value := key.maybe_value(given)) is None:
                    self.refuse(
                        source,
                        f"{LISTENER} number {number}.{name}",
                        f"expected {key.allowed}",
                        as_toml(given),
                    )
                else:
                    values[name] = value
            self.more_listeners.append(values)

    def stream(self, source: str, number: int, raw: dict[str, object]) -> dict[str, Value]:
        return self.named(source, number, raw, STREAM, STREAM_KEYS, ("name", "filters"))

    def named(
        self, source: str, number: int, raw: dict[str, object], section: str, keys: dict[str, Key],
        needed_keys: tuple[str, ...],
    ) -> dict[str, Value]:  # fmt: skip
        """The values of one section of several, which has a name."""
        name = raw.get("name")
        prefix = f"{section}.{name}" if isinstance(name, str) and name else f"{section} number {number}"
        values: dict[str, Value] = {}
        for key_name, each in raw.items():
            if (key := keys.get(key_name)) is None:
                self.refuse(source, f"{prefix}.{key_name}", unknown(key_name, keys))
            elif (value := key.maybe_value(each)) is None:
                self.refuse(source, f"{prefix}.{key_name}", f"expected {key.allowed}", as_toml(each))
            else:
                values[key_name] = value
        for needed in needed_keys:
            if needed not in raw:
                self.refuse(source, prefix, f"{needed} is missing: expected {keys[needed].allowed}")
        return values

    def loaded(self) -> Loaded:
        """Everything filled in: a stream's missing keys from [log], the rest from the defaults."""
        sections: dict[str, Any] = {
            section: SECTION_TYPES[section](
                **{name: self.values[f"{section}.{name}"] for name in keys if f"{section}.{name}" in self.values}
            )
            for section, keys in SECTIONS.items()
        }
        if sections["cluster"].name:
            self._fill_in_cluster(sections)
        origins = {dotted: self.origins.get(dotted, "default") for dotted in KEYS}
        inherited = {name: getattr(sections["log"], name) for name in INHERITED}
        streams = [(Stream(**inherited | values), self.streams_origin) for values in map(dict, self.streams)]
        if not any("#" in stream.filters for stream, _ in streams):
            streams.append((Stream(**inherited), "default"))
            self.streams.append({})
        if sections["queues"].enabled:
            names = {stream.name for stream, _ in streams}
            for own in queue_streams(sections["queues"], inherited):
                if own.name not in names:
                    # First match wins: behind those that the settings have for a part of their topics.
                    at = place_of(own, [stream for stream, _ in streams])
                    streams.insert(at, (own, "[queues]"))
                    self.streams.insert(at, {})
        for (stream, source), values in zip(streams, self.streams, strict=True):
            for name in STREAM_KEYS:
                origin = source if name in values else "[log]" if name in INHERITED else "default"
                origins[f"{STREAM}.{stream.name}.{name}"] = origin
        for number, values in enumerate(self.more_listeners, start=2):
            for name in LISTENER_KEYS:
                origins[f"{LISTENER}.{number}.{name}"] = self.listeners_origin if name in values else "default"
        functions: list[Any] = self.functions
        for each in functions:
            for name in FUNCTION_KEYS:
                origins[f"{FUNCTION}.{each['name']}.{name}"] = self.functions_origin if name in each else "default"
        bridges: list[Any] = self.bridges
        for each in bridges:
            for name in BRIDGE_KEYS:
                origins[f"{BRIDGE}.{each['name']}.{name}"] = self.bridges_origin if name in each else "default"
        views: list[Any] = self.views
        for each in views:
            for name in VIEW_KEYS:
                origins[f"{VIEW}.{each['name']}.{name}"] = self.views_origin if name in each else "default"
        more: list[Any] = self.more_listeners
        settings = Settings(
            **sections,
            stream=tuple(stream for stream, _ in streams),
            function=tuple(Function(**each) for each in functions),
            bridge=tuple(Bridge(**each) for each in bridges),
            kafka_view=tuple(KafkaView(**each) for each in views),
            more_listeners=tuple(Listener(**values) for values in more),
        )
        return Loaded(settings, origins)

    def _fill_in_cluster(self, sections: dict[str, Any]) -> None:
        """Defaults that a cluster changes: its shards, and acknowledgements of what a majority of copies has."""
        cluster = sections["cluster"]
        if "shards.count" not in self.values:
            sections["shards"] = Shards(count=cluster.shards)
        if "log.durability" not in self.values and cluster.replicas > 1:
            sections["log"] = msgspec.structs.replace(sections["log"], durability="quorum")


def unknown(word: str, known: Iterable[str], *, tree: bool = False) -> str:
    """Say that there is no such setting, and which one was probably meant."""
    if tree:
        near = near_words(word, [*known, STREAM, FUNCTION, BRIDGE])
    else:
        # The right key in the wrong section is the commonest slip of all.
        last = word.rpartition(".")[2]
        near = " or ".join(dotted for dotted in KEYS if dotted.endswith(f".{last}")) or near_words(word, known)
    what = "section" if tree else "setting"
    return f"no such {what}; " + (f"did you mean {near}?" if near else "config.toml lists them all")


def near_words(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    import difflib  # only a mistake pays for it

    near = difflib.get_close_matches(word, list(known), n=2, cutoff=cutoff)
    ratios = [difflib.SequenceMatcher(None, word, each).ratio() for each in near]
    return " or ".join(each for each, ratio in zip(near, ratios, strict=True) if ratio > ratios[0] - NEARER)
