"""mosquitto.conf as settings of rumq: what each option becomes, and what is left out and why. Knows no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rumq.errors import ConfigError
from rumq.mosquitto.bridges import converted_bridges
from rumq.mosquitto.conf import Conf, ListenerPart, OptionLine
from rumq.mosquitto.errors import MosquittoFileError
from rumq.mosquitto.file_plugins import files_of
from rumq.mosquitto.option_table import ADDS_UP, IDLE, IDLE_IF_FALSE, MISSING, PARTLY, unknown
from rumq.mosquitto.unsafe_options import NO_PSK, PLUGINS, UNSAFE, unsafe

Tree = dict[str, Any]
PACKET_MAX = 268_435_460
EXPIRES_NEVER = 0xFFFFFFFF
SLASHES_MAX = 200  # of one topic: TOPIC_HIERARCHY_LIMIT of its mosquitto_internal.h
SECONDS = {"h": 3600, "d": 86_400, "w": 604_800, "m": 2_592_000, "y": 31_536_000}
HERE = "rumq does this by itself"
VERSIONS = {"3": "3.1", "4": "3.1.1", "5": "5"}
PLACE = frozenset({"bind_address", "port", "socket_domain"})
OF_PLUGINS = ("plugin_opt_", "auth_opt_", "auth_plugin_")


@dataclass(slots=True)
class Converted:
    """What has become of each line. A line may be here more than once, as one for all listeners is.

    tree: as config.toml would be read, with no listener where none can be opened; temporary: nothing is to outlive the
    broker; carried: settings do what they say; idle, left_out, closing: (line, why) of lines that nothing is missing
    without, that something is missing without, and without which a listener is not opened, being less safe;
    user: who mosquitto would be, had root started it
    """

    tree: Tree
    carried: list[OptionLine] = field(default_factory=list)
    idle: list[tuple[OptionLine, str]] = field(default_factory=list)
    left_out: list[tuple[OptionLine, str]] = field(default_factory=list)
    closing: list[tuple[OptionLine, str]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)  # the listeners that are not opened, as they are written
    temporary: bool = True
    user: OptionLine | None = None
    faults: dict[tuple[str, int], MosquittoFileError] = field(default_factory=dict)  # by path and line

    def attempt(self, take: Callable[[], object]) -> None:
        """Note a value that is refused, and go on: who mends a file wants to hear of all of them."""
        try:
            take()
        except MosquittoFileError as fault:
            self.faults[fault.path, fault.line] = fault


def converted(conf: Conf) -> Converted:
    """raises: ConfigError with every value that mosquitto would not take either"""
    out = Converted({"listener": [], "auth": {}, "mqtt": {}, "data": {}, "log": {}})
    general(conf, out)
    parts = list(conf.listeners)
    if not parts or {"port", "bind_address"} & conf.default.options.keys():
        parts.insert(0, conf.default)
    elif conf.default.options:
        out.left_out += [(line, "stands before the first listener") for line in conf.default.options.values()]
    is_local = not conf.listeners and not {"port", "bind_address"} & conf.default.options.keys()
    out.tree["listener"] = [
        made for part in parts if (made := listener(part, conf.general, out, is_local=is_local)) is not None
    ]
    out.attempt(partial(bridges, conf.bridges, out))
    if out.faults:
        raise ConfigError(*(each for fault in in_order(out.faults.values()) for each in fault.faults))
    for part in [conf.general, *parts]:
        out.idle += [
            (line, f"given again in line {part.options[line.key].number}")
            for line in part.earlier
            if line.key not in ADDS_UP
        ]
    return out


def bridges(lines: list[OptionLine], out: Converted) -> None:
    found = converted_bridges(lines)
    if found.sections:
        out.tree["bridge"] = found.sections
    out.carried += found.carried
    out.idle += found.idle
    out.left_out += found.left_out


def general(conf: Conf, out: Converted) -> None:
    """What holds for all listeners."""
    tree = out.tree
    auth, mqtt, data, log = tree["auth"], tree["mqtt"], tree["data"], tree["log"]
    # mosquitto answers so: clients and their tests have got used to it.
    auth.update(exact_refusals=False, exposed_files="warn", guess_seconds_max=1.0)
    mqtt.update(
        reason_strings=False, tells_durability=False, inflight_max=20, receive_maximum=20, topic_alias_maximum=10,
        packet_bytes_max=PACKET_MAX, topic_levels_max=SLASHES_MAX + 1, topic_bytes_max=65_535,
        client_id_bytes_max=65_535, session_expiry_seconds_max=EXPIRES_NEVER,
    )  # fmt: skip
    known: dict[str, Callable[[OptionLine], object]] = {
        "password_file": lambda line: auth.update(password_file=line.value),
        "acl_file": lambda line: auth.update(rules_file=line.value),
        "allow_anonymous": lambda line: auth.update(anonymous="yes" if line.flag else "no"),
        "max_inflight_messages": lambda line: mqtt.update(
            inflight_max=bounded(line, 0, 65_535) or 65_535, receive_maximum=line.whole or 65_535
        ),
        "max_keepalive": lambda line: mqtt.update(keep_alive_seconds_max=bounded(line, 0, 65_535) or 65_535),
        "max_packet_size": lambda line: mqtt.update(packet_bytes_max=bounded(line, 20, PACKET_MAX)),
        "message_size_limit": lambda line: (
            mqtt.update(packet_bytes_max=min(mqtt["packet_bytes_max"], line.whole + 65_536)) if line.whole else None
        ),
        "persistent_client_expiration": lambda line: mqtt.update(session_expiry_seconds_max=duration(line)),
        "retain_available": lambda line: mqtt.update(retain_available=line.flag),
        "allow_zero_length_clientid": lambda line: None,
        "auto_id_prefix": lambda line: None,
        "clientid_prefixes": lambda line: None,
        "sys_interval": lambda line: tree.update(sys={"interval_seconds": bounded(line, 0, 65_535)}),
        "global_max_clients": lambda line: mqtt.update(sessions_max=max(2, line.whole)) if line.whole > 0 else None,
        "global_max_connections": lambda line: None,
        "persistence": lambda line: setattr(out, "temporary", not line.flag),
        "persistence_location": lambda line: data.update(dir=f"{line.value.rstrip('/')}/rumq-data"),
    }
    for name, line in conf.general.options.items():
        if name in known:
            out.attempt(partial(known[name], line))
            if name in PARTLY and (name != "global_max_connections" or len(conf.listeners) > 1):
                out.left_out.append((line, PARTLY[name]))
            else:
                out.carried.append(line)
        elif name in IDLE:
            out.idle += [(each, IDLE[name]) for each in conf.general.every(name)]
        elif name in IDLE_IF_FALSE:
            out.attempt(partial(idle_if_false, line, out))
        elif not name.startswith(OF_PLUGINS) and name not in PLUGINS:
            out.left_out.append((line, MISSING.get(name) or unknown(name)))
    out.user = conf.general.options.get("user")
    if out.temporary:
        data.pop("dir", None)
        log["durability"] = "process"
    log["pending_bytes_max"] = max(64 << 20, mqtt["packet_bytes_max"])


def listener(part: ListenerPart, general: ListenerPart, out: Converted, *, is_local: bool) -> Tree | None:
    """One listener; None where it cannot be had, and opening it in another way would be less safe."""
    if closing := closed_by(part, general, out):
        out.closing += closing
        out.closed.append(f"listener {part.line.value}" if part.line is not None else "the default listener")
        return None
    made: Tree = {}
    own = part.options
    for found in files_of([*general.every(*PLUGINS), *part.every(*PLUGINS)], part, general):
        made[found.key] = found.file.value
        out.carried += [found.plugin, found.file]
    out.attempt(partial(place, part, made, is_local=is_local))
    if part.line is not None:
        out.carried.append(part.line)
    if not is_local:
        made["anonymous"] = "no"
    of_all = {name: line for name, line in general.options.items() if name in ADMISSION}
    for name, line in {**of_all, **own}.items():
        lines = part.every(name) if name in ADDS_UP and name in own else [line]
        if name in LISTENER_OPTIONS:
            for each in lines:
                out.attempt(partial(LISTENER_OPTIONS[name], made, each))
            out.carried += [each for each in lines if name in own]
        elif name in PLACE:
            out.carried.append(line)
        elif name in IDLE:
            out.idle += [(each, IDLE[name]) for each in lines]
        elif name in IDLE_IF_FALSE:
            out.attempt(partial(idle_if_false, line, out))
        elif name not in UNSAFE and not name.startswith(OF_PLUGINS) and name != "psk_file":
            out.left_out.append((line, MISSING.get(name) or unknown(name)))
    if made.get("protocol") == "websocket":
        made.setdefault("websocket_origins", ["*"])  # as there, where none is listed
    made.setdefault("assigned_prefix", "auto-")
    made.setdefault("topic_alias_maximum", 10)
    if (most := general.options.get("global_max_connections")) is not None and most.whole > 0:
        made["connections_max"] = min(most.whole, made.get("connections_max", most.whole))
    certificate = made.get("certificate_as_user")
    if certificate is None:
        made["certificate_as_user"] = "no"
    if "tls_authority" in made and "tls_certificate" not in made:
        del made["tls_authority"]
    return made


def idle_if_false(line: OptionLine, out: Converted) -> None:
    """raises: MosquittoFileError"""
    if line.flag:
        out.left_out.append((line, MISSING[line.key]))
    else:
        out.idle.append((line, IDLE_IF_FALSE[line.key]))


def in_order(faults: Iterable[MosquittoFileError]) -> list[MosquittoFileError]:
    return sorted(faults, key=lambda fault: (fault.path, fault.line))


def closed_by(part: ListenerPart, general: ListenerPart, out: Converted) -> list[tuple[OptionLine, str]]:
    """The lines that keep a listener closed, and why; those that need not are said to be idle."""
    found: list[tuple[OptionLine, str]] = []
    plugins = [*general.every(*PLUGINS), *part.every(*PLUGINS)]
    files = files_of(plugins, part, general)
    plugins = [line for line in plugins if all(line != each.plugin for each in files)]
    others = [line for line in part.options.values() if line.key in UNSAFE and line.key not in PLUGINS]
    for line in [*plugins, *others]:
        try:
            why = unsafe(line)
        except MosquittoFileError as fault:
            out.faults[fault.path, fault.line] = fault
            continue
        if why:
            found.append((line, why))
        else:
            out.idle.append((line, HERE))
    if plugins:
        options = {*general.options.values(), *part.options.values()} - {each.file for each in files}
        out.left_out += [(line, "of a plugin") for line in in_file(options) if line.key.startswith(OF_PLUGINS)]
    if "psk_file" in part.options and "certfile" not in part.options:
        found.append((part.options["psk_file"], NO_PSK))
    return found


def in_file(lines: Iterable[OptionLine]) -> list[OptionLine]:
    return sorted(lines, key=lambda line: (line.path, line.number))


def place(part: ListenerPart, made: Tree, *, is_local: bool) -> None:
    """Where it listens."""
    made["host"] = "localhost" if is_local else "*"
    if part.line is not None:
        port, _, address = part.line.value.partition(" ")
        address = address.strip()
        if not port.isdigit() or int(port) > 65_535:
            raise part.line.refused("expected a port, 0 to 65535")
        if address.startswith("/"):
            made.update(path=address, path_mode="666")
            return
        made["port"] = int(port)
        if address:
            made["host"] = address
    elif "port" in part.options:
        made["port"] = bounded(part.options["port"], 0, 65_535)
    if "bind_address" in part.options:
        made["host"] = part.options["bind_address"].value
    domain = part.options.get("socket_domain")
    if domain is not None and made["host"] == "*":
        made["host"] = {"ipv4": "0.0.0.0", "ipv6": "::"}.get(domain.value, "*")


def keep(key: str) -> Callable[[Tree, OptionLine], None]:
    return lambda made, line: made.update({key: line.value})


def protocol(made: Tree, line: OptionLine) -> None:
    if line.value not in ("mqtt", "websockets"):
        raise line.refused("expected mqtt or websockets")
    made["protocol"] = "websocket" if line.value == "websockets" else "mqtt"


def connections(made: Tree, line: OptionLine) -> None:
    if line.whole > 0:
        made["connections_max"] = line.whole


def aliases(made: Tree, line: OptionLine) -> None:
    made["topic_alias_maximum"] = bounded(line, 0, 65_535)


def versions(made: Tree, line: OptionLine) -> None:
    names = line.value.replace(",", " ").split()
    if not names or not set(names) <= VERSIONS.keys():
        raise line.refused("expected some of 3, 4 and 5")
    made["mqtt_versions"] = [VERSIONS[name] for name in sorted(set(names))]


def version(made: Tree, line: OptionLine) -> None:
    made["tls_version_min"] = "1.3" if line.value == "tlsv1.3" else "1.2"


def proof(made: Tree, line: OptionLine) -> None:
    made["tls_client_certificate"] = "required" if line.flag else "no"


def user_of(part: str) -> Callable[[Tree, OptionLine], None]:
    def take(made: Tree, line: OptionLine) -> None:
        if line.flag:
            made["certificate_as_user"] = part

    return take


LISTENER_OPTIONS: dict[str, Callable[[Tree, OptionLine], None]] = {
    "accept_protocol_versions": versions,
    "acl_file": keep("rules_file"),
    "password_file": keep("password_file"),
    "allow_anonymous": lambda made, line: made.update(anonymous="yes" if line.flag else "no"),
    "allow_zero_length_clientid": lambda made, line: made.update(empty_client_id=line.flag),
    "auto_id_prefix": keep("assigned_prefix"),
    "listener_allow_anonymous": lambda made, line: made.update(anonymous="yes" if line.flag else "no"),
    "listener_auto_id_prefix": keep("assigned_prefix"),
    "clientid_prefixes": lambda made, line: made.update(client_id_prefixes=[line.value]),
    "max_connections": connections,
    "max_qos": lambda made, line: made.update(maximum_qos=bounded(line, 0, 2)),
    "max_topic_alias": aliases,
    "protocol": protocol,
    "mount_point": lambda made, line: made.update(mount_point=line.value),
    "use_username_as_clientid": lambda made, line: made.update(user_as_client_id=line.flag),
    "cafile": keep("tls_authority"),
    "capath": keep("tls_authority_dir"),
    "certfile": keep("tls_certificate"),
    "keyfile": keep("tls_key"),
    "ciphers": keep("tls_ciphers"),
    "crlfile": keep("tls_revoked"),
    "tls_version": version,
    "require_certificate": proof,
    "use_identity_as_username": user_of("common name"),
    "use_subject_as_username": user_of("subject"),
    "websockets_origin": lambda made, line: made.setdefault("websocket_origins", []).append(line.value),
}
# Options of all listeners that are keys of each one here.
ADMISSION = frozenset({"allow_anonymous", "allow_zero_length_clientid", "auto_id_prefix", "clientid_prefixes"})


def bounded(line: OptionLine, least: int, most: int) -> int:
    if not least <= line.whole <= most:
        raise line.refused(f"expected {least} to {most}")
    return line.whole


def duration(line: OptionLine) -> int:
    """`14d` in seconds."""
    unit = SECONDS.get(line.value[-1:])
    if unit is None or not line.value[:-1].isdigit():
        raise line.refused("expected a number and one of h, d, w, m, y")
    return min(int(line.value[:-1]) * unit, 2**32 - 2)


__all__ = ["Converted", "MosquittoFileError", "converted"]
