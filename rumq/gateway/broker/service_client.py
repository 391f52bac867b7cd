"""Asks the gRPC and the Kafka server of this node for their figures, over a Unix socket in the data directory."""

from __future__ import annotations

import msgspec

from rumq.admin.figures import KafkaFigures, ServiceFigures
from rumq.admin.socket.admin_client import ask_socket

NAME, KAFKA_NAME = "grpc.sock", "kafka.sock"
SECONDS_MAX = 1.0


async def maybe_services(directory: str) -> ServiceFigures | None:
    """None: there is no such server, or it does not answer."""
    try:
        line = await ask_socket(directory, NAME, b"figures\n", SECONDS_MAX)
        return msgspec.json.decode(line, type=ServiceFigures)
    except (OSError, ValueError):
        return None


async def maybe_kafka(directory: str) -> KafkaFigures | None:
    """None: there is no such server, or it does not answer."""
    try:
        line = await ask_socket(directory, KAFKA_NAME, b"figures\n", SECONDS_MAX)
        return msgspec.json.decode(line, type=KafkaFigures)
    except (OSError, ValueError):
        return None
