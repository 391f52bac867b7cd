"""Metrics of the processes beside the broker: the gateway itself, gRPC, functions on batches, bridges."""

from __future__ import annotations

from rumq.gateway.metrics.metric import Metric

FUNCTION = ("function",)
FUNCTIONS = (
    Metric(
        "rumq_function_records_total", "counter", "records",
        "records of the log that a function is done with, those that its filters leave out too", FUNCTION,
    ),
    Metric("rumq_function_results_total", "counter", "results", "messages published for a function", FUNCTION),
    Metric(
        "rumq_function_passed_records_total", "counter", "passed",
        "records that went on unchanged, for the function could not do their batch", FUNCTION,
    ),
    Metric(
        "rumq_function_refused_records_total", "counter", "refused",
        "records of which nothing was published, for the function could not do their batch", FUNCTION,
    ),
    Metric(
        "rumq_function_failures_total", "counter", "failures",
        "failures by kind: raised, stalled, died, memory, result, load; publish: the broker or the log was not there",
        ("function", "kind"),
    ),
    Metric("rumq_function_behind_records", "gauge", "behind", "records that a function has not done yet", FUNCTION),
    Metric(
        "rumq_function_held_partitions", "gauge", "held",
        "partitions in which a function waits at a batch that it could not do or publish", FUNCTION,
    ),
)  # fmt: skip
BRIDGE, RELAYED = ("bridge",), ("bridge", "direction")
BRIDGES = (
    Metric("rumq_bridge_up", "gauge", "up", "1: a bridge is connected to both brokers", BRIDGE),
    Metric(
        "rumq_bridge_connections_total", "counter", "connections", "times that a bridge was connected to both", BRIDGE
    ),
    Metric(
        "rumq_bridge_messages_total", "counter", "messages",
        "messages that the target of a bridge has taken, also one that came again; direction: out or in", RELAYED,
    ),
    Metric("rumq_bridge_bytes_total", "counter", "bytes", "their payloads", RELAYED),
    Metric(
        "rumq_bridge_doubtful_total", "counter", "doubtful",
        "messages sent again to a target that had lost its session: it may have them twice", RELAYED,
    ),
    Metric("rumq_bridge_refused_total", "counter", "refused", "messages that the target refused for good", RELAYED),
    Metric("rumq_bridge_looped_total", "counter", "looped", "messages left out: they have been at the target", RELAYED),
    Metric(
        "rumq_bridge_dropped_total", "counter", "dropped", "messages of QoS 0 that the target was too slow for", RELAYED
    ),
    Metric(
        "rumq_bridge_unmapped_total", "counter", "unmapped", "messages that no rule of the bridge names now", RELAYED
    ),
)  # fmt: skip
GATEWAY = (
    Metric("rumq_up", "gauge", "", "1: every shard answers; in a cluster: every shard that this node leads"),
    Metric("rumq_gateway_connections", "gauge", "", "HTTP connections"),
    Metric("rumq_gateway_mqtt_clients", "gauge", "", "clients of MQTT over WebSocket that have logged in"),
    Metric("rumq_gateway_connections_shed_total", "counter", "", "HTTP connections that were closed to make room"),
    Metric("rumq_gateway_refused_total", "counter", "", "requests refused for want of a valid token"),
    Metric(
        "rumq_certificate_expires_seconds",
        "gauge",
        "",
        "when a certificate of the node expires, since 1970; of: listeners, nodes, gateway, flight",
        ("of", "file"),
    ),
    Metric(
        "rumq_certificate_usable",
        "gauge",
        "",
        "0: its file holds no certificate now, and the one that was read before is in force",
        ("of", "file"),
    ),
    Metric("rumq_gateway_requests_total", "counter", "", "requests, by class of their status", ("status",)),
    Metric(
        "rumq_gateway_request_seconds",
        "histogram",
        "",
        "requests by method, route and class of status, until the answer is begun; other paths are the route *",
        ("method", "route", "status"),
    ),
    Metric("rumq_gateway_published_total", "counter", "", "messages published over REST and acknowledged"),
    Metric("rumq_spans_exported_total", "counter", "", "spans that the OTLP endpoint has taken"),
    Metric(
        "rumq_spans_lost_total",
        "counter",
        "",
        "spans that were not exported: the endpoint refused, was slow or away",
    ),
)
SERVICES = (
    Metric("rumq_grpc_calls_total", "counter", "", "gRPC calls that ended, by status", ("method", "code")),
    Metric("rumq_grpc_call_seconds", "histogram", "", "how long gRPC calls took until they ended", ("method",)),
    Metric("rumq_grpc_open_calls", "gauge", "", "gRPC calls that are open; of Subscribe: subscribers", ("method",)),
    Metric("rumq_grpc_published_total", "counter", "published", "messages published over gRPC and acknowledged"),
    Metric("rumq_grpc_records_total", "counter", "records", "records sent to gRPC's subscribers"),
    Metric("rumq_grpc_refused_logins_total", "counter", "refused_logins", "gRPC calls without a valid login"),
    Metric(
        "rumq_grpc_refused_calls_total", "counter", "refused_calls",
        "gRPC calls beyond grpc.calls_max or grpc.waiting_bytes_max",
    ),
)  # fmt: skip
KAFKA = (
    Metric("rumq_kafka_connections", "gauge", "connections", "Kafka connections that are open"),
    Metric("rumq_kafka_records_total", "counter", "records", "records sent to Kafka clients"),
    Metric("rumq_kafka_bytes_total", "counter", "bytes", "bytes of record batches sent to Kafka clients"),
    Metric("rumq_kafka_fetches_total", "counter", "fetches", "requests of Kafka clients for records"),
    Metric("rumq_kafka_refused_logins_total", "counter", "refused_logins", "Kafka connections without a valid login"),
    Metric(
        "rumq_kafka_refused_connections_total", "counter", "refused_connections",
        "Kafka connections beyond kafka.connections_max, or beyond half of it of one network",
    ),
    Metric(
        "rumq_kafka_lost_records_total", "counter", "lost_records",
        "records that Kafka clients asked for, and that could not be read",
    ),
    Metric("rumq_kafka_groups", "gauge", "groups", "consumer groups of Kafka clients that have members"),
    Metric("rumq_kafka_group_members", "gauge", "group_members", "members of all these groups"),
    Metric("rumq_kafka_commits_total", "counter", "commits", "offsets that groups have committed, or forgotten"),
)  # fmt: skip
