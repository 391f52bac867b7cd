"""`python -m tests.settings.probe run ...`: `rumqd run ...`, which after each reload also says what is in force where.

Its gateway and its servers of Flight, gRPC and Kafka are started with the same. The lines go to standard error, beside
events."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.settings.seen import Broker, Gateway, seen

EVENT = "probe.seen"


def say(process: str, subject: Any) -> None:
    line = json.dumps({"event": EVENT, "process": process, "values": seen(process, subject)}, default=str)
    os.write(2, f"{line}\n".encode())  # one write, and not by way of events, whose level and format change


def probe_broker() -> None:
    from rumq.process.shard.reload import Reload
    from rumq.process.wiring import sidecars

    reload = Reload.reload

    def probed(self: Reload, shard: Any) -> bool:
        done = reload(self, shard)
        say("broker", Broker(shard, self._listeners))
        return done

    Reload.reload = probed  # type: ignore[method-assign]
    for name in ("gateway_command", "flight_command", "grpc_command", "kafka_command"):
        command = getattr(sidecars, name)
        setattr(sidecars, name, lambda data, sources, command=command: with_probe(command(data, sources)))


def with_probe(command: list[str]) -> list[str]:
    return [command[0], "-m", "tests.settings.probe", *command[3:]]


def probe_gateway() -> None:
    from rumq.gateway.broker.span_export import OtlpEndpoint
    from rumq.process.gateway import gateway_server

    reload = gateway_server.reload

    def probed(load: Any, effective: Any, context: Any, exporter: Any) -> None:
        reload(load, effective, context, exporter)
        say("gateway", Gateway(context, exporter))

    def making(self: Any, settings: Any, headers: dict[str, str]) -> None:
        make(self, settings, headers)
        self.made_of = settings, headers

    make = OtlpEndpoint.__init__
    OtlpEndpoint.__init__ = making  # type: ignore[method-assign]
    gateway_server.reload = probed


def probe_flight() -> None:
    from rumq.process.flight import flight_server

    made, tell = flight_server.call_authorization, flight_server.tell
    calls: list[Any] = []

    def making(settings: Any) -> Any:
        calls.append(made(settings))
        return calls[-1]

    def telling(event: str, **fields: Any) -> None:
        tell(event, **fields)
        if event in ("flight.reloaded", "settings.refused"):
            say("flight", calls[-1])

    flight_server.call_authorization, flight_server.tell = making, telling


def probe_grpc() -> None:
    from rumq.process.grpc import grpc_server

    reload = grpc_server.reload

    def probed(load: Any, parts: Any, certificates: Any) -> None:
        reload(load, parts, certificates)
        say("grpc", parts.authorization)

    grpc_server.reload = probed


def probe_kafka() -> None:
    from rumq.process.kafka import kafka_server

    reload = kafka_server.reload

    def probed(load: Any, server: Any, tls: Any) -> None:
        reload(load, server, tls)
        say("kafka", server.door.logins)

    kafka_server.reload = probed


PROBES = {
    "run": probe_broker, "gateway": probe_gateway, "flight": probe_flight, "grpc": probe_grpc, "kafka": probe_kafka,
}  # fmt: skip
if __name__ == "__main__":
    from rumq.cli.main import main

    PROBES[sys.argv[1]]()
    sys.exit(main(sys.argv[1:]))
