"""The options of format "rumq" for reading from a broker over the network. docs/guides/spark.md, "From other machines".

Secrets are in files, which options name, and which are read when they are used."""

from __future__ import annotations

from collections.abc import Mapping

from rumq.table.errors import BadOption, UnknownOption
from rumq.table.flight_location import ADDRESS, FlightLocation, maybe_addresses

NAMES = (
    "broker", "username", "passwordFile", "tokenFile", "tlsCa", "tlsCertificate", "tlsKey", "readTimeoutMs",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "awayTimeoutMs",
)  # fmt: skip


def maybe_flight_location(said: Mapping[str, str]) -> FlightLocation | None:
    """said: by names in lower case. None: the log is read from its files. raises: BadOption, UnknownOption"""
    given = {name: said[name.lower()] for name in NAMES if name.lower() in said}
    if "broker" not in given:
        for name in given:
            raise UnknownOption(name, "it is for reading from a broker, .option('broker', 'grpc://host:8815')")
        return None
    broker = given["broker"]
    addresses = maybe_addresses(broker)
    if addresses is None:
        more = " (MQTT is for writing)" if broker.startswith("mqtt") else ""
        raise BadOption("broker", broker, f"{ADDRESS}{more}")
    if "path" in said:
        raise BadOption("broker", broker, "it or a path, as in .load(), not both")
    check_pairs(given, addresses[0])
    return FlightLocation(
        addresses[0],
        given.get("username"),
        given.get("passwordFile"),
        given.get("tokenFile"),
        given.get("tlsCa"),
        given.get("tlsCertificate"),
        given.get("tlsKey"),
        whole_number(given, "readTimeoutMs", 120_000, 1) / 1000,
        whole_number(given, "fetchOffset.numRetries", 3, 0),
        whole_number(given, "fetchOffset.retryIntervalMs", 1000, 0) / 1000,
        whole_number(given, "awayTimeoutMs", 300_000, 0) / 1000,
        addresses[1:],
    )


def check_pairs(given: Mapping[str, str], address: str) -> None:
    """raises: BadOption for options that need or contradict another one"""
    for name, other in (
        ("username", "passwordFile"),
        ("passwordFile", "username"),
        ("tlsKey", "tlsCertificate"),
    ):
        if name in given and other not in given:
            raise BadOption(name, given[name], f"{other} as well")
    if "tokenFile" in given and "username" in given:
        raise BadOption("tokenFile", given["tokenFile"], "it or username with passwordFile, not both")
    for name in ("tlsCa", "tlsCertificate"):
        if name in given and not address.startswith("grpc+tls"):
            raise BadOption(name, given[name], "TLS: broker = grpc+tls://...")


def whole_number(given: Mapping[str, str], name: str, default: int, least: int) -> int:
    value = given.get(name, str(default))
    if not (value.isascii() and value.isdigit() and int(value) >= least):
        raise BadOption(name, value, f"a whole number, {least} or more")
    return int(value)
