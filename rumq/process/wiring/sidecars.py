"""Sidecar processes of a broker, by its settings: exporters to Parquet, the servers of Flight, gRPC
and Kafka, the gateway, functions, bridges."""

from __future__ import annotations

import importlib.util
import sys

from rumq.bridge.removed_bridges import has_bridges
from rumq.errors import ConfigError, Fault
from rumq.events.event_log import tell
from rumq.process.listeners.listener_policies import (
    FLIGHT,
    GRPC,
    KAFKA,
    ListenerPolicies,
    as_listener,
    grpc_as_listener,
    kafka_as_listener,
)
from rumq.process.listeners.transports import transport_of
from rumq.process.wiring.gateway_settings import check_gateway as check_files
from rumq.process.wiring.gateway_settings import kept_by_listeners, tokens_of
from rumq.process.wiring.lake_exporters import export_commands, exported_streams
from rumq.settings.table import Settings
from rumq.supervision.sidecars import Sidecar

GRPC_MODULES = ("grpc", "grpc_health", "grpc_reflection", "google.protobuf", "google.rpc")


def check_sidecars(settings: Settings) -> None:
    """raises: ConfigError"""
    exported_streams(settings)
    if settings.flight.port:
        check_flight(settings)
    if settings.gateway.port:
        check_gateway(settings)
    if settings.function:
        from rumq.process.wiring.function_settings import check_functions  # most brokers have none

        check_functions(settings)
    if settings.bridge:
        from rumq.process.bridge.bridge_settings import check_bridges  # most brokers have none

        check_bridges(settings)
    if settings.grpc.port:
        check_grpc(settings)
    if settings.kafka.port:
        check_kafka(settings)


def check_gateway(settings: Settings) -> None:
    """raises: ConfigError for settings that the gateway could not start with"""
    if settings.trace.otlp_endpoint and importlib.util.find_spec("opentelemetry") is None:
        raise ConfigError(
            Fault("settings", "trace.otlp_endpoint", "", 'tracing needs its extra: pip install "rumq[tracing]"')
        )
    check_files(settings)


def check_flight(settings: Settings) -> None:
    """raises: ConfigError for settings that its server could not start with"""
    flight = settings.flight
    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigError(
            Fault("settings", "flight.port", "", "Flight needs pyarrow and numpy: pip install pyarrow numpy")
        )
    policy = ListenerPolicies(settings, says_exposed=False).flight()
    where = kept_by_listeners(settings)
    if policy.authenticator.methods and where and not flight.rules_file:
        expected = (
            f"expected a file of rules: {where} holds for a listener, and users of Flight belong to none; it names the "
            "rules for them, on topics with their mount points"
        )
        raise ConfigError(Fault("settings", "flight.rules_file", '""', expected))
    if flight.tls_certificate:
        transport_of(FLIGHT, as_listener(flight), settings.auth.exposed_files == "refuse")
    elif flight.tls_authority:
        raise ConfigError(
            Fault(
                "settings",
                "flight.tls_certificate",
                "",
                "is missing: tls_authority needs TLS",
            )
        )


def check_grpc(settings: Settings) -> None:
    """raises: ConfigError for settings that its server could not start with"""
    grpc = settings.grpc
    for module in GRPC_MODULES:
        if importlib.util.find_spec(module) is None:
            needs = f'gRPC needs its extra, as {module} is missing: pip install "rumq[grpc]"'
            raise ConfigError(Fault("settings", "grpc.port", "", needs))
    policy = ListenerPolicies(settings, says_exposed=False).grpc()
    tokens_of(settings)
    where = kept_by_listeners(settings)
    if policy.authenticator.methods and where and not settings.gateway.rules_file:
        expected = (
            f"expected a file of rules: {where} holds for a listener, and users of gRPC belong to none; it names the "
            "rules for them and for users of tokens, on topics with their mount points"
        )
        raise ConfigError(Fault("settings", "gateway.rules_file", '""', expected))
    if grpc.tls_certificate:
        transport_of(GRPC, grpc_as_listener(grpc), settings.auth.exposed_files == "refuse")
    elif grpc.tls_authority:
        raise ConfigError(Fault("settings", "grpc.tls_certificate", "", "is missing: tls_authority needs TLS"))


def check_kafka(settings: Settings) -> None:
    """raises: ConfigError for settings that its server could not start with"""
    kafka = settings.kafka
    if importlib.util.find_spec("crc32c") is None:
        raise ConfigError(Fault("settings", "kafka.port", "", 'Kafka needs its extra: pip install "rumq[kafka]"'))
    policy = ListenerPolicies(settings, says_exposed=False).kafka()
    where = kept_by_listeners(settings)
    if policy.authenticator.methods and where and not kafka.rules_file:
        expected = (
            f"expected a file of rules: {where} holds for a listener, and users of Kafka belong to none; it names the "
            "rules for them, on topics with their mount points"
        )
        raise ConfigError(Fault("settings", "kafka.rules_file", '""', expected))
    if kafka.tls_certificate:
        transport_of(KAFKA, kafka_as_listener(kafka), settings.auth.exposed_files == "refuse")
    elif kafka.tls_authority:
        raise ConfigError(Fault("settings", "kafka.tls_certificate", "", "is missing: tls_authority needs TLS"))


def sidecars(settings: Settings, data: str, sources: list[str]) -> list[Sidecar]:
    """Of a broker alone. sources: command line flags that give another process the same settings"""
    return [*leader_sidecars(settings, data), *node_sidecars(settings, data, sources)]


def leader_sidecars(settings: Settings, data: str) -> list[Sidecar]:
    """In a cluster they go with the leader of shard 0, so that one node exports."""
    return [Sidecar(command, lake_died) for command in export_commands(settings, data)]


def node_sidecars(settings: Settings, data: str, sources: list[str]) -> list[Sidecar]:
    """In a cluster every node has them: Flight serves the copies of that node, the gateway asks the whole cluster."""
    found = []
    if settings.flight.port:
        found.append(Sidecar(flight_command(data, sources), flight_died, reloads=True))
    if settings.gateway.port:
        found.append(Sidecar(gateway_command(data, sources), gateway_died, reloads=True))
    if settings.function:
        found.append(Sidecar(functions_command(data, sources), functions_died))
    if settings.bridge or has_bridges(data):
        found.append(Sidecar(bridges_command(data, sources), bridges_died, reloads=True))
    if settings.grpc.port:
        found.append(Sidecar(grpc_command(data, sources), grpc_died, reloads=True))
    if settings.kafka.port:
        found.append(Sidecar(kafka_command(data, sources), kafka_died, reloads=True))
    return found


def functions_command(data: str, sources: list[str]) -> list[str]:
    return [sys.executable, "-m", "rumq", "functions", "run", "--for-broker", *sources, "--set", f"data.dir={data}"]


def bridges_command(data: str, sources: list[str]) -> list[str]:
    return [sys.executable, "-m", "rumq", "bridge", "run", "--for-broker", *sources, "--set", f"data.dir={data}"]


def grpc_command(data: str, sources: list[str]) -> list[str]:
    return [sys.executable, "-m", "rumq", "grpc", "--for-broker", *sources, "--set", f"data.dir={data}"]


def kafka_command(data: str, sources: list[str]) -> list[str]:
    return [sys.executable, "-m", "rumq", "kafka", "--for-broker", *sources, "--set", f"data.dir={data}"]


def flight_command(data: str, sources: list[str]) -> list[str]:
    return [sys.executable, "-m", "rumq", "flight", "--for-broker", *sources, "--set", f"data.dir={data}"]


def gateway_command(data: str, sources: list[str]) -> list[str]:
    return [sys.executable, "-m", "rumq", "gateway", "--for-broker", *sources, "--set", f"data.dir={data}"]


def lake_died(why: str, start_seconds: float) -> None:
    tell("lake.died", why=why, start_seconds=start_seconds)


def flight_died(why: str, start_seconds: float) -> None:
    tell("flight.died", why=why, start_seconds=start_seconds)


def gateway_died(why: str, start_seconds: float) -> None:
    tell("gateway.died", why=why, start_seconds=start_seconds)


def functions_died(why: str, start_seconds: float) -> None:
    tell("functions.died", why=why, start_seconds=start_seconds)


def bridges_died(why: str, start_seconds: float) -> None:
    tell("bridges.died", why=why, start_seconds=start_seconds)


def grpc_died(why: str, start_seconds: float) -> None:
    tell("grpc.died", why=why, start_seconds=start_seconds)


def kafka_died(why: str, start_seconds: float) -> None:
    tell("kafka.died", why=why, start_seconds=start_seconds)
