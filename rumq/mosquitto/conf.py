"""Parse mosquitto.conf(5): global options, listeners, bridges. `convert` makes settings of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rumq.mosquitto.errors import MosquittoFileError

# Options that belong to the listener named last, or to the default one.
OF_A_LISTENER = frozenset(
    {
        "bind_address", "bind_interface", "http_dir", "max_connections", "max_qos", "max_topic_alias",
        "max_topic_alias_broker", "mount_point", "port", "protocol", "socket_domain",
        "use_username_as_clientid", "cafile", "capath", "certfile", "ciphers", "ciphers_tls1.3", "crlfile",
        "dhparamfile", "keyfile", "require_certificate", "tls_engine", "tls_engine_kpass_sha1", "tls_keyform",
        "tls_version", "use_identity_as_username", "use_subject_as_username", "psk_hint",
        "websockets_headers_size", "websockets_log_level", "websockets_origin", "enable_proxy_protocol",
        "proxy_protocol_v2_require_tls", "disable_client_cert_date_checks", "accept_protocol_versions",
        "listener_allow_anonymous", "listener_auto_id_prefix", "plugin_use",
    }
)  # fmt: skip
# ... and these, too, where per_listener_settings says so.
PER_LISTENER = frozenset(
    {
        "acl_file", "allow_anonymous", "allow_zero_length_clientid", "auth_plugin",
        "auth_plugin_deny_special_chars", "auto_id_prefix", "password_file", "plugin", "psk_file",
    }
)  # fmt: skip
# Options of the bridge named last by `connection`, beside those that begin with `bridge_`.
OF_A_BRIDGE = frozenset(
    {
        "address", "addresses", "cleansession", "clientid", "connection", "idle_timeout", "keepalive_interval",
        "local_cleansession", "local_clientid", "local_password", "local_username", "notification_topic",
        "notifications", "notifications_local_only", "password", "remote_clientid", "remote_password",
        "remote_username", "restart_timeout", "round_robin", "start_type", "threshold", "topic", "try_private",
        "username",
    }
)  # fmt: skip
# Parts of names whose values nobody else is to read: they are not shown, nor written anywhere.
SECRET = ("pass", "psk", "secret", "token")
NOT_SECRET = frozenset({"password_file", "psk_file", "psk_hint"})
INCLUDES_MAX = 1000


class OptionLine(NamedTuple):
    """One option. value: what stands behind its name"""

    path: str
    number: int
    key: str
    value: str

    @property
    def shown(self) -> str:
        """The option for people to read, without a secret."""
        is_secret = self.key not in NOT_SECRET and any(part in self.key for part in SECRET)
        return f"{self.key} {'***' if is_secret and self.value else self.value}".rstrip()

    def refused(self, problem: str) -> MosquittoFileError:
        return MosquittoFileError(self.path, self.number, f"{self.shown}: {problem}")

    @property
    def flag(self) -> bool:
        """raises: MosquittoFileError"""
        if self.value.lower() not in ("true", "false"):
            raise self.refused("expected true or false")
        return self.value.lower() == "true"

    @property
    def whole(self) -> int:
        """raises: MosquittoFileError"""
        try:
            return int(self.value)
        except ValueError:
            raise self.refused("expected a whole number") from None


@dataclass(slots=True)
class ListenerPart:
    """line: its `listener`, None for the default one; options: the last one of each name; earlier: those before it"""

    line: OptionLine | None
    options: dict[str, OptionLine] = field(default_factory=dict)
    earlier: list[OptionLine] = field(default_factory=list)

    def take(self, line: OptionLine) -> None:
        if line.key in self.options:
            self.earlier.append(self.options[line.key])
        self.options[line.key] = line

    def every(self, *names: str) -> list[OptionLine]:
        """All lines of options that may be there several times, in their order."""
        found = [line for line in [*self.earlier, *self.options.values()] if line.key in names]
        return sorted(found, key=lambda line: (line.path, line.number))


@dataclass(slots=True)
class Conf:
    """What a file says. general: what is of no listener; bridges: every line of them"""

    path: str
    general: ListenerPart = field(default_factory=lambda: ListenerPart(None))
    default: ListenerPart = field(default_factory=lambda: ListenerPart(None))
    listeners: list[ListenerPart] = field(default_factory=list)
    bridges: list[OptionLine] = field(default_factory=list)


def read_conf(path: str) -> Conf:
    """raises: MosquittoFileError"""
    conf = Conf(path)
    lines = list(lines_of(path, INCLUDES_MAX))
    per_listener = any(line.key == "per_listener_settings" and line.flag for line in lines)
    part, in_bridge = conf.default, False
    for line in lines:
        if line.key == "connection":
            in_bridge = True
        elif line.key == "listener":
            in_bridge = False
            part = ListenerPart(line)
            conf.listeners.append(part)
            continue
        if line.key.startswith("bridge_") or (in_bridge and line.key in OF_A_BRIDGE):
            conf.bridges.append(line)
        elif line.key in OF_A_LISTENER or (per_listener and line.key in PER_LISTENER):
            part.take(line)
        else:
            conf.general.take(line)
    return conf


def lines_of(path: str, includes_left: int) -> list[OptionLine]:
    """The options of a file, and in their place those of the directories that it includes."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise MosquittoFileError(path, 0, f"cannot be read: {fault}") from None
    found: list[OptionLine] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        stripped = raw.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key, _, value = stripped.partition(" ")
        line = OptionLine(path, number, key.strip(), value.strip())
        if line.key != "include_dir":
            found.append(line)
            continue
        if includes_left <= 0:
            raise line.refused("includes go too deep")
        try:
            names = sorted(each for each in Path(line.value).iterdir() if each.suffix == ".conf")
        except OSError as fault:
            raise line.refused(f"cannot be read: {fault.strerror}") from None
        for name in names:
            found += lines_of(str(name), includes_left - 1)
    return found
