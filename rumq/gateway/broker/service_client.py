"""Asks the gRPC and the Kafka server of this node for their figures, and the latter about consumer groups, over a Unix
socket in the data directory."""

from __future__ import annotations

import msgspec

from rumq.admin.figures import KafkaFigures, ServiceFigures
from rumq.admin.kafka_groups import KAFKA_OPERATIONS, GroupDone, KafkaLine, KafkaReply, KafkaRows
from rumq.admin.requests import Request
from rumq.admin.socket.admin_client import ask_socket
from rumq.errors import RumqError

NAME, KAFKA_NAME = "grpc.sock", "kafka.sock"
FIGURES_LINE = b"figures\n"
SECONDS_MAX, GROUPS_SECONDS_MAX = 1.0, 5.0


class KafkaServerAway(RumqError):
    """It is not there, or does not answer what it is asked."""


class KafkaGroupInUse(RumqError):
    """A group has members."""


class NotOfKafka(RumqError):
    """There is no Kafka server, or no such group."""


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
        line = await ask_socket(directory, KAFKA_NAME, FIGURES_LINE, SECONDS_MAX)
        return msgspec.json.decode(line, type=KafkaFigures)
    except (OSError, ValueError):
        return None


async def ask_kafka(directory: str, name: str, request: Request) -> KafkaRows | GroupDone:
    """About consumer groups. name: of KAFKA_OPERATIONS

    raises: KafkaServerAway, NotOfKafka, KafkaGroupInUse, PermissionError"""
    question = KafkaLine(ask=name, request=msgspec.Raw(msgspec.json.encode(request)))
    try:
        line = await ask_socket(directory, KAFKA_NAME, msgspec.json.encode(question) + b"\n", GROUPS_SECONDS_MAX)
        reply = msgspec.json.decode(line, type=KafkaReply)
        if not (reply.missing or reply.conflict or reply.refused):
            return msgspec.json.decode(reply.answer, type=KAFKA_OPERATIONS[name].answer)
    except PermissionError:
        raise
    except FileNotFoundError:
        raise NotOfKafka("there is no Kafka server here: kafka.port turns it on") from None
    except (OSError, ValueError) as fault:
        why = (fault.strerror if isinstance(fault, OSError) else "") or str(fault)
        raise KafkaServerAway(f"the Kafka server does not answer ({why}): ask again, and see its events") from None
    if reply.missing:
        raise NotOfKafka(reply.missing)
    if reply.conflict:
        raise KafkaGroupInUse(reply.conflict)
    raise KafkaServerAway(reply.refused)
