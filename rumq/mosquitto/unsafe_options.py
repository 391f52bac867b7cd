"""Options of mosquitto.conf(5) without which a listener would be less secure: rumq does not open such a listener."""

from __future__ import annotations

from collections.abc import Callable

from rumq.mosquitto.conf import OptionLine

# Modules decide who comes in and what he may do; two names for a module of all listeners are mosquitto 2.1's.
PLUGINS = frozenset({"plugin", "auth_plugin", "global_plugin", "plugin_load", "plugin_use"})
HARMLESS_PLUGINS = ("mosquitto_persist_sqlite", "mosquitto_persist_lmdb")
SUITES = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


def plugin(line: OptionLine) -> str:
    if any(name in line.value for name in HARMLESS_PLUGINS):
        return ""
    return (
        "rumq loads no plugins, and this one may decide who comes in: set up users and rules "
        "(docs/guides/security.md), and take the line out"
    )


def suites(line: OptionLine) -> str:
    if frozenset(line.value.split(":")) >= SUITES:
        return ""
    return (
        "which suites of TLS 1.3 are taken cannot be chosen, they are "
        + ", ".join(sorted(SUITES))
        + ": take the line out if "
        "all will do"
    )


def always(why: str) -> Callable[[OptionLine], str]:
    return lambda _: why


def if_true(why: str) -> Callable[[OptionLine], str]:
    return lambda line: why if line.flag else ""


NO_PSK = (
    "rumq has no TLS with a shared key (Python's has none before 3.13): give the listener certfile and keyfile, and "
    "clients users and passwords"
)
ENGINE = "keys are PEM files, and no engine of OpenSSL is loaded"
UNSAFE: dict[str, Callable[[OptionLine], str]] = {
    **dict.fromkeys(PLUGINS, plugin),
    "bind_interface": always("rumq binds to addresses, not interfaces: name its address, `listener PORT ADDRESS`"),
    "ciphers_tls1.3": suites,
    "enable_proxy_protocol": always("set listener.proxies in a config.toml, which says whose headers are believed"),
    "proxy_protocol_v2_require_tls": if_true("whether a proxy's client spoke TLS is not asked"),
    "psk_hint": always(NO_PSK),
    "tls_engine": always(ENGINE),
    "tls_keyform": lambda line: "" if line.value == "pem" else ENGINE,
}


def unsafe(line: OptionLine) -> str:
    """Why a listener with this line stays closed; empty where nothing is less safe without it."""
    found = UNSAFE.get(line.key)
    return found(line) if found is not None else ""
