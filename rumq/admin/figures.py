"""What /metrics is made of: the figures of one shard. Counters grow from the start of the shard."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from rumq.admin.cluster_rows import TermRow
from rumq.admin.rows import PartitionRow
from rumq.admin.units import field


class HistogramFigures(Struct, kw_only=True):
    """counts: by bucket of `rumq.session.state.histogram`; seconds: the sum"""

    counts: list[int]
    seconds: float


class LaggingClient(Struct, kw_only=True):
    client_id: str
    records: int


class ShardFigures(Struct, kw_only=True):
    """counters, gauges: of `rumq.gateway.metrics.metric_table`, by name"""

    shard: int
    incarnation: Annotated[int, field("of this run of the shard")]
    counted_seconds_ago: Annotated[
        float, field("sessions were counted, and with them connections, messages and bytes", "seconds")
    ] = 0.0
    counters: dict[str, float]
    gauges: dict[str, float]
    listeners: Annotated[dict[str, int], field("clients by listener", "clients")]
    listener_received: Annotated[dict[str, int], field("read from its clients, by listener", "bytes")]
    listener_sent: Annotated[dict[str, int], field("sent to its clients, by listener", "bytes")]
    listener_delayed: Annotated[dict[str, int], field("over its rate: had to wait, by listener", "connections")] = {}
    listener_refused: Annotated[dict[str, int], field("over its rate: refused, by listener", "connections")] = {}
    refused: Annotated[dict[str, int], field("not admitted, or closed for a fault, by reason", "clients")] = {}
    groups: Annotated[dict[str, int], field("records behind, of the shared groups that are farthest behind")] = {}
    build: Annotated[dict[str, int], field("1, by version")] = {}
    undelivered: Annotated[dict[str, int], field("by reason", "messages")]
    histograms: dict[str, HistogramFigures]
    partitions: list[PartitionRow]
    lagging: Annotated[list[LaggingClient], field("the farthest behind, as of the last check")]
    exports: Annotated[dict[str, int], field("records behind, by stream/partition", "records")]
    term: Annotated[TermRow | None, field("in a cluster")] = None


class CallCount(Struct, kw_only=True):
    """Calls of one method that ended with one status."""

    method: str
    code: Annotated[str, field("name of a gRPC status")]
    calls: int


class ServiceFigures(Struct, kw_only=True):
    """What the gRPC server has counted since its process began."""

    calls: list[CallCount]
    seconds: Annotated[dict[str, HistogramFigures], field("durations of calls, by method")]
    open: Annotated[dict[str, int], field("calls that are open, by method")]
    published: Annotated[int, field("published and acknowledged", "messages")]
    records: Annotated[int, field("sent to subscribers", "records")]
    refused_logins: Annotated[int, field("", "calls")]
    refused_calls: Annotated[int, field("beyond the bounds of calls and waiting bytes", "calls")]


class KafkaFigures(Struct, kw_only=True):
    """What the Kafka server has counted since its process began."""

    connections: Annotated[int, field("that are open", "connections")]
    records: Annotated[int, field("in answers to Fetch", "records")]
    bytes: Annotated[int, field("of record batches in answers to Fetch", "bytes")]
    fetches: Annotated[int, field("requests for records", "requests")]
    refused_logins: Annotated[int, field("", "logins")]
    refused_connections: Annotated[int, field("beyond kafka.connections_max", "connections")]
    lost_records: Annotated[int, field("that a client asked for, and that could not be read", "records")]
    groups: Annotated[int, field("consumer groups with members", "groups")] = 0
    group_members: Annotated[int, field("of all consumer groups", "members")] = 0
    commits: Annotated[int, field("offsets that were committed, or forgotten", "offsets")] = 0
