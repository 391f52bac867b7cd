"""Bridges of mosquitto.conf(5), `connection` and what stands behind it, as [[bridge]]. Knows no broker.

A bridge of which a line cannot be carried over safely, or without which it would not work, is left out as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rumq.mosquitto.conf import OptionLine

PORT = 1883  # also with TLS, as there
PASSWORD = "a password is not copied: write it into a file of its own, password_file of [[bridge]] in config.toml"
PSK = (
    "rumq has no TLS with a shared key (Python's has none before 3.13): have the other broker listen with a "
    "certificate, and log in with remote_username and password_file or bridge_certfile"
)
STATE = "$SYS/broker/connection/NAME/state says so here, NAME being the bridge's"
HERE_ALONE = f"{STATE}, and nothing at the other broker: name a topic that is not under $SYS, notification_topic"
# Without these a bridge of rumq's would be less safe, or would not be let in.
BREAKING = {
    "bridge_psk": PSK,
    "bridge_identity": PSK,
    "bridge_require_ocsp": "rumq does not ask whether the certificate was revoked",
    "bridge_capath": "name one file: tls_authority of [[bridge]]",
    "bridge_alpn": "rumq has no ALPN for bridges",
    "password": PASSWORD,
    "remote_password": PASSWORD,
}
MISSING = {
    "bridge_bind_address": "the system chooses the address",
    "bridge_insecure": "the name in the certificate is verified all the same",
    "bridge_max_packet_size": "the other broker says in CONNACK what it takes",
    "bridge_max_topic_alias": "no topic aliases are used",
    "bridge_outgoing_retain": "retained messages are relayed as such",
    "bridge_tcp_keepalive": "keepalive_interval notices a line that is down",
    "bridge_tcp_user_timeout": "keepalive_interval notices a line that is down",
    "bridge_tls_version": "TLS 1.2 at least",
    "idle_timeout": "a bridge stays connected",
    "local_clientid": "the client id here is rumq-bridge/ and the name",
    "start_type": "a bridge is always connected, or tries to be",
    "threshold": "a bridge is always connected, or tries to be",
}
IDLE = {
    "bridge_attempt_unsubscribe": "filters are subscribed, and given up, as the settings say",
    "bridge_require_ocsp": "it is not asked for",
    "cleansession": "sessions stay, and messages with them, while the line is down",
    "local_cleansession": "sessions stay, and messages with them, while the line is down",
    "local_password": "a bridge of the broker's own needs none",
    "try_private": "neither side gets back what the bridge published",
}
KEYS = {
    "bridge_cafile": "tls_authority", "bridge_certfile": "tls_certificate", "bridge_keyfile": "tls_key",
    "clientid": "client_id", "remote_clientid": "client_id", "local_username": "local_user",
    "remote_username": "user", "username": "user",
}  # fmt: skip
VERSIONS = {"mqttv50": "5", "mqttv311": "3.1.1"}
VERSION = "the other broker has to speak MQTT 5 or 3.1.1"
NOTIFYING = ("notifications", "notifications_local_only", "notification_topic")

Said = list[tuple[OptionLine, str]]


@dataclass(slots=True)
class ConvertedBridges:
    """sections: as [[bridge]] would be read; carried, idle, left_out: as of `Converted`"""

    sections: list[dict[str, Any]] = field(default_factory=list)
    carried: list[OptionLine] = field(default_factory=list)
    idle: Said = field(default_factory=list)
    left_out: Said = field(default_factory=list)


def converted_bridges(lines: list[OptionLine]) -> ConvertedBridges:
    """raises: MosquittoFileError for a value that mosquitto would not take either"""
    out = ConvertedBridges()
    for connection, options in parts(lines):
        if connection is None:
            out.left_out += [(line, "it belongs to a bridge, behind its `connection`") for line in options]
        elif breaking := [(line, why) for line in options if (why := maybe_breaking(line))]:
            out.left_out.append((connection, "is left out as a whole, for a line of it"))
            said = dict(breaking)
            out.left_out += [(line, said.get(line, "of a bridge that is left out")) for line in options]
        elif why := maybe_incomplete(options):
            out.left_out.append((connection, why))
            out.left_out += [(line, "of a bridge that is left out") for line in options]
        else:
            take(connection, options, out)
    return out


def parts(lines: list[OptionLine]) -> Iterator[tuple[OptionLine | None, list[OptionLine]]]:
    """Each `connection` with the lines behind it; None: lines before the first one."""
    connection: OptionLine | None = None
    options: list[OptionLine] = []
    for line in lines:
        if line.key == "connection":
            if connection is not None or options:
                yield connection, options
            connection, options = line, []
        else:
            options.append(line)
    if connection is not None or options:
        yield connection, options


def maybe_breaking(line: OptionLine) -> str:
    """Why the bridge of this line is left out; empty: it is not."""
    if line.key == "bridge_require_ocsp" and not line.flag:
        return ""
    return BREAKING.get(line.key, "")


def maybe_incomplete(options: list[OptionLine]) -> str:
    """Why there is no bridge: mosquitto does not start with one that has no address."""
    keys = {line.key for line in options}
    if not keys & {"address", "addresses"}:
        return "has no address"
    return "" if "topic" in keys else "has no topic: it would relay nothing"


def take(connection: OptionLine, options: list[OptionLine], out: ConvertedBridges) -> None:
    made: dict[str, Any] = {"name": name_of(connection, {each["name"] for each in out.sections}), "topics": []}
    out.carried.append(connection)
    addresses: list[str] = []
    notifying: list[OptionLine] = []
    is_tls = any(line.key == "bridge_cafile" for line in options)
    for line in options:
        if line.key in ("address", "addresses"):
            addresses = line.value.split()
            out.carried.append(line)
        elif line.key == "round_robin":
            made["round_robin"] = line.flag
            out.carried.append(line)
        elif line.key in NOTIFYING:
            notifying.append(line)
        elif line.key == "topic":
            made["topics"].append(line.value)
            out.carried.append(line)
        elif line.key in KEYS:
            made[KEYS[line.key]] = line.value
            out.carried.append(line)
        elif line.key == "keepalive_interval":
            made["keep_alive_seconds"] = line.whole
            out.carried.append(line)
        elif line.key == "restart_timeout":
            made["retry_seconds_max"] = retry_seconds(line)
            out.carried.append(line)
        elif line.key == "bridge_protocol_version" and line.value in VERSIONS:
            made["mqtt_version"] = VERSIONS[line.value]
            out.carried.append(line)
        elif line.key in IDLE:
            out.idle.append((line, IDLE[line.key]))
        else:
            out.left_out.append((line, VERSION if line.key == "bridge_protocol_version" else missing(line)))
    made["url"], *more = [url_of(each, is_tls=is_tls) for each in addresses or [""]]
    if more:
        made["more_urls"] = more
    take_notifying(notifying, made, out)
    out.sections.append(made)


def take_notifying(lines: list[OptionLine], made: dict[str, Any], out: ConvertedBridges) -> None:
    """raises: MosquittoFileError"""
    given = {line.key: line for line in lines}
    topic, local = given.get("notification_topic"), given.get("notifications_local_only")
    if "notifications" in given and not given["notifications"].flag:
        out.idle += [(line, f"nothing else is said, but {STATE}") for line in lines]
        return
    is_local = local is not None and local.flag
    if topic is not None:
        made["notification_topic"] = topic.value
        if is_local:
            made["notifications_local_only"] = True
    for line in lines:
        if topic is not None or is_local:
            out.carried.append(line)
        else:
            out.left_out.append((line, HERE_ALONE))


def retry_seconds(line: OptionLine) -> int:
    """`CONSTANT`, or `BASE CAP`. raises: MosquittoFileError"""
    words = line.value.split()
    if not words or not all(word.isdigit() for word in words):
        raise line.refused("expected one or two whole numbers")
    return max(1, min(int(words[-1]), 3600))


def missing(line: OptionLine) -> str:
    return MISSING.get(line.key, "rumq knows no such option of a bridge")


def url_of(address: str, *, is_tls: bool) -> str:
    """`host`, `host:port`, `[::1]:port` or an IPv6 address alone."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.endswith("]")):
        host, port = address, str(PORT)
    host = host.strip("[]")
    shown = f"[{host}]" if ":" in host else host
    return f"{'mqtts' if is_tls else 'mqtt'}://{shown}:{port}"


def name_of(connection: OptionLine, taken: set[str]) -> str:
    """Of a-z, 0-9, _ and -, and no other bridge's."""
    name = re.sub(r"[^a-z0-9_-]", "-", connection.value.lower()).strip("-_")[:28] or "bridge"
    found, number = name, 2
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found
