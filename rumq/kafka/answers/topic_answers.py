"""Metadata, DescribeConfigs and DescribeCluster: what there is. A caller is shown the topics that it may read.

In a cluster these are the nodes whose Kafka server runs; a partition is led by the node that leads its shard."""

from __future__ import annotations

from typing import Any

from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.named_once import once
from rumq.kafka.nodes.kafka_nodes import NOBODY
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.protocol.fields import NO_UUID
from rumq.kafka.topics.topic_catalog import KafkaTopic

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
READ_AND_DESCRIBE = 1 << 3 | 1 << 8  # of topics, as bits of AclOperation
DESCRIBE_CLUSTER = 1 << 8


async def metadata(client: KafkaClient, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """raises: OSError"""
    await client.door.log.look(1.0)
    wanted, reader = body["topics"], client.reader
    if wanted is None or (version == 0 and not wanted):
        topics = [described(client, topic) for topic in client.door.catalog.readable(reader)]
    else:
        topics = [asked_for(client, each["name"], each["topic_id"]) for each in once(wanted, "name", "topic_id")]
    return {
        "brokers": brokers(client, "node_id"),
        "cluster_id": client.door.cluster_id,
        "controller_id": client.door.number,
        "topics": topics,
    }


def asked_for(client: KafkaClient, name: str | None, topic_id: bytes) -> dict[str, Any]:
    catalog, reader = client.door.catalog, client.reader
    found = catalog.find_id(topic_id, reader) if name is None else catalog.find(name, reader)
    if isinstance(found, ErrorCode):
        return {"error_code": found, "name": name, "topic_id": topic_id if name is None else NO_UUID}
    return described(client, found)


def described(client: KafkaClient, topic: KafkaTopic) -> dict[str, Any]:
    names = client.door.names_of(topic)
    return {
        "name": topic.name,
        "topic_id": topic.id,
        "partitions": [partition(client, topic.stream, number, name) for number, name in enumerate(names)],
        "topic_authorized_operations": READ_AND_DESCRIBE,
    }


def partition(client: KafkaClient, stream: str, number: int, name: str) -> dict[str, Any]:
    """Where it is read: at the node that leads it, which has it first; else here."""
    door = client.door
    leader, holders = NOBODY, [door.number]
    if door.seat is not None:
        leader, holders = door.seat.nodes.leader_of(stream, number), door.seat.nodes.holders_of(stream, number)
    if leader == NOBODY and name in door.log.partitions:
        leader = door.number
    if leader == NOBODY:
        return {"partition_index": number, "leader_id": NOBODY, "error_code": ErrorCode.LEADER_NOT_AVAILABLE}
    holders = holders or [leader]
    return {"partition_index": number, "leader_id": leader, "replica_nodes": holders, "isr_nodes": holders}


def brokers(client: KafkaClient, key: str) -> list[dict[str, Any]]:
    """With this one, which an agent that has just started has not told of yet."""
    door, address = client.door, client.advertised
    serving = [] if door.seat is None else door.seat.nodes.serving
    found = [{key: each.number, "host": each.host, "port": each.port} for each in serving]
    if all(each.number != door.number for each in serving):
        found.append({key: door.number, "host": address.host, "port": address.port})
    return found


def describe_cluster(client: KafkaClient, body: dict[str, Any]) -> dict[str, Any]:
    found = {
        "cluster_id": client.door.cluster_id,
        "controller_id": client.door.number,
        "brokers": brokers(client, "broker_id"),
    }
    if body["include_cluster_authorized_operations"]:
        found["cluster_authorized_operations"] = DESCRIBE_CLUSTER
    return found


def describe_configs(client: KafkaClient, body: dict[str, Any]) -> dict[str, Any]:
    resources = once(body["resources"], "resource_type", "resource_name")
    return {"results": [configs_of(client, each) for each in resources]}


def configs_of(client: KafkaClient, resource: dict[str, Any]) -> dict[str, Any]:
    kind, name = resource["resource_type"], resource["resource_name"]
    found: dict[str, Any] = {"resource_type": kind, "resource_name": name}
    values: dict[str, str] = {}
    if kind == TOPIC_RESOURCE:
        topic = client.door.catalog.find(name, client.reader)
        if isinstance(topic, ErrorCode):
            return found | {"error_code": topic}
        values = client.door.retention(topic.stream)
    elif kind != BROKER_RESOURCE or name not in ("", str(client.door.number)):
        return found | {
            "error_code": ErrorCode.INVALID_REQUEST,
            "error_message": f"only topics and broker {client.door.number} have settings here",
        }
    keys = resource["configuration_keys"]
    shown = {key: value for key, value in values.items() if not keys or key in keys}
    return found | {"configs": [{"name": key, "value": value} for key, value in shown.items()]}
