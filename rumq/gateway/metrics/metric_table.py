"""Every metric of /metrics: name, kind, labels, unit and meaning. docs/reference/metrics.md is made from this table."""

from __future__ import annotations

from rumq.gateway.metrics.metric import Metric
from rumq.gateway.metrics.process_metrics import BRIDGES, FUNCTIONS, GATEWAY, KAFKA, SERVICES

__all__ = [
    "BRIDGES", "CLIENTS", "CLUSTER", "COUNTERS", "FUNCTIONS", "GATEWAY", "GAUGES", "HISTOGRAMS", "KAFKA", "LABELLED",
    "LEADER", "PARTITIONS", "SERVICES", "TABLE", "Metric",
]  # fmt: skip

COUNTERS = (
    Metric(
        "rumq_packets_received_total",
        "counter",
        "packets_received",
        "MQTT packets of every type from clients",
    ),
    Metric("rumq_packets_sent_total", "counter", "packets_sent", "MQTT packets of every type to clients"),
    Metric("rumq_messages_published_total", "counter", "messages_published", "PUBLISH packets accepted"),
    Metric("rumq_messages_delivered_total", "counter", "messages_delivered", "PUBLISH packets sent to clients"),
    Metric(
        "rumq_messages_refused_total",
        "counter",
        "messages_refused",
        "PUBLISH packets refused: full, offline, too many topics",
    ),
    Metric(
        "rumq_published_bytes_total",
        "counter",
        "published_bytes",
        "bytes of accepted messages, as stored: bandwidth of the router",
    ),
    Metric("rumq_received_bytes_total", "counter", "received_bytes", "MQTT bytes read from client connections"),
    Metric("rumq_sent_bytes_total", "counter", "sent_bytes", "MQTT bytes sent to client connections"),
    Metric("rumq_logins_total", "counter", "logins", "CONNECTs accepted"),
    Metric("rumq_sockets_total", "counter", "sockets", "connections accepted, with and without a login"),
    Metric("rumq_sessions_expired_total", "counter", "sessions_expired", "sessions that expired"),
    Metric("rumq_shard_handed_over_total", "counter", "handed_over", "messages for partitions of other shards"),
    Metric("rumq_shard_taken_over_total", "counter", "taken_over", "messages from clients of other shards"),
    Metric("rumq_turns_total", "counter", "turns", "turns of the shard's loop"),
    Metric("rumq_log_written_bytes_total", "counter", "log_written_bytes", "bytes given to the log's writers"),
    Metric("rumq_bus_sent_bytes_total", "counter", "bus_sent_bytes", "bytes sent to other shards over the bus"),
    Metric(
        "rumq_copy_read_bytes_total",
        "counter",
        "copy_read_bytes",
        "bytes of replayed records that were read from this node's copies instead of from their leaders",
    ),
    Metric(
        "rumq_cpu_seconds_total",
        "counter",
        "cpu_seconds",
        "CPU time of the shard's process, in all its threads",
    ),
    Metric("rumq_traces_total", "counter", "traces", "messages that were traced, and replays of such"),
    Metric(
        "rumq_traces_over_rate_total",
        "counter",
        "traces_over_rate",
        "messages that were not traced because of trace.traces_per_second_max",
    ),
)
GAUGES = (
    Metric("rumq_connected_clients", "gauge", "connected", "clients that are connected"),
    Metric("rumq_sessions", "gauge", "sessions", "sessions, with and without a connection"),
    Metric("rumq_subscriptions", "gauge", "subscriptions", "subscriptions of all sessions"),
    Metric("rumq_shared_subscriptions", "gauge", "shared_subscriptions", "members of shared groups"),
    Metric("rumq_retained_messages", "gauge", "retained_messages", "retained messages"),
    Metric("rumq_retained_bytes", "gauge", "retained_bytes", "bytes of retained messages in memory"),
    Metric("rumq_memory_bytes", "gauge", "memory_bytes", "memory of the process, without mapped files"),
    Metric("rumq_uptime_seconds", "gauge", "uptime_seconds", "since the shard's process began"),
    Metric("rumq_ready", "gauge", "ready", "1: sessions of earlier runs are here and clients are accepted"),
    Metric("rumq_accepting", "gauge", "accepting", "1: messages are accepted in every partition of the shard"),
    Metric("rumq_draining", "gauge", "draining", "1: the operator drains the broker"),
    Metric(
        "rumq_consumer_lag_records",
        "gauge",
        "lag_records",
        "records that sessions have not read yet, all together, every 10 s",
    ),
    Metric(
        "rumq_consumer_lag_records_max",
        "gauge",
        "lag_records_max",
        "the same, of the session that is farthest behind",
    ),
    Metric(
        "rumq_consumer_lag_seconds_max",
        "gauge",
        "lag_seconds_max",
        "age of the oldest record here that a session has not read",
    ),
    Metric("rumq_disk_free_bytes", "gauge", "disk_free_bytes", "free on the file system of the log"),
    Metric("rumq_disk_bytes", "gauge", "disk_bytes", "size of that file system"),
    Metric(
        "rumq_disk_wanted_bytes",
        "gauge",
        "disk_wanted_bytes",
        "free space below which segments are removed, or publishers refused",
    ),
    Metric("rumq_disk_full_seconds", "gauge", "disk_full_seconds", "until it is full; never: a year"),
    Metric(
        "rumq_stop_phase",
        "gauge",
        "stop_phase",
        "0: it runs; a stop: 1 no new connections, 2 clients told, 3 log written, 4 shards drained, 5 log sealed",
    ),
    Metric("rumq_lagging_sessions", "gauge", "lagging_sessions", "sessions with any lag"),
    Metric("rumq_bans", "gauge", "bans", "clients, users and addresses that are banned"),
)
LABELLED = (
    Metric(
        "rumq_listener_clients",
        "gauge",
        "listeners",
        "clients that are connected, by listener",
        ("listener",),
    ),
    Metric(
        "rumq_listener_received_bytes_total",
        "counter",
        "listener_received",
        "MQTT bytes read from clients, by listener",
        ("listener",),
    ),
    Metric(
        "rumq_listener_sent_bytes_total",
        "counter",
        "listener_sent",
        "MQTT bytes sent to clients, by listener",
        ("listener",),
    ),
    Metric(
        "rumq_listener_delayed_total",
        "counter",
        "listener_delayed",
        "new connections that waited, for they were over connections_per_second_max, by listener",
        ("listener",),
    ),
    Metric(
        "rumq_listener_refused_total",
        "counter",
        "listener_refused",
        "new connections that were refused, for too many waited, by listener",
        ("listener",),
    ),
    Metric(
        "rumq_clients_refused_total",
        "counter",
        "refused",
        "clients that were not admitted or closed for a fault, by reason: of MQTT 5, or the transport (tls, websocket)",
        ("reason",),
    ),
    Metric(
        "rumq_group_lag_records",
        "gauge",
        "groups",
        "records that a shared group has not handed out, of the 20 a shard that are farthest behind",
        ("group",),
    ),
    Metric("rumq_build_info", "gauge", "build", "1: the version that this shard runs", ("version",)),
    Metric(
        "rumq_messages_undelivered_total",
        "counter",
        "undelivered",
        "messages that were not delivered (the ledger), by reason",
        ("reason",),
    ),
    Metric(
        "rumq_client_lag_records",
        "gauge",
        "lagging",
        "records behind, of the 20 sessions a shard that are farthest behind",
        ("client_id",),
    ),
    Metric(
        "rumq_export_behind_records",
        "gauge",
        "exports",
        "sealed records that are not exported to the lake yet",
        ("stream", "partition"),
    ),
)
PARTITION = ("stream", "partition")
PARTITIONS = (
    Metric("rumq_partition_records", "gauge", "records", "records kept", PARTITION),
    Metric("rumq_partition_appended_total", "counter", "next_lsn", "records appended, ever", PARTITION),
    Metric("rumq_partition_bytes", "gauge", "bytes", "bytes of its segments on disk", PARTITION),
    Metric(
        "rumq_partition_pending_bytes",
        "gauge",
        "pending_bytes",
        "bytes appended and not yet written",
        PARTITION,
    ),
    Metric(
        "rumq_partition_uncommitted_records",
        "gauge",
        "uncommitted",
        "records that may not be acknowledged yet",
        PARTITION,
    ),
    Metric("rumq_partition_topics", "gauge", "topics", "topics known", PARTITION),
    Metric("rumq_partition_segments", "gauge", "segments", "segment files", PARTITION),
    Metric("rumq_partition_offline", "gauge", "offline", "1: it accepts nothing, for its disk fails", PARTITION),
)
HISTOGRAMS = (
    Metric(
        "rumq_publish_ack_seconds",
        "histogram",
        "publish_ack",
        "from the turn that read a message of QoS 1 or 2 to the one that acknowledges it",
    ),
    Metric(
        "rumq_publish_delivery_seconds",
        "histogram",
        "publish_delivery",
        "from the append of a message to its hand-over to subscribers at the end of the log",
    ),
    Metric(
        "rumq_log_write_seconds",
        "histogram",
        "log_write",
        "from the hand-over of a write group to the writer until it is written, with fsync where the stream has it",
    ),
    Metric("rumq_turn_seconds", "histogram", "turn", "turns in which something came, without waiting and sending"),
    Metric(
        "rumq_replication_seconds",
        "histogram",
        "replicated",
        "in a cluster, from when a write group is on the leader's disk until a majority has it",
    ),
)
CLIENT = ("client_id",)
CLIENTS = (
    Metric(
        "rumq_client_published_total",
        "counter",
        "published",
        "messages that it published in this session",
        CLIENT,
    ),
    Metric(
        "rumq_client_delivered_total",
        "counter",
        "delivered",
        "messages that it was sent in this session",
        CLIENT,
    ),
    Metric("rumq_client_received_bytes_total", "counter", "bytes_in", "bytes read from its connection", CLIENT),
    Metric("rumq_client_sent_bytes_total", "counter", "bytes_out", "bytes sent over its connection", CLIENT),
    Metric("rumq_client_in_flight", "gauge", "in_flight", "sent at QoS 1 or 2 and not acknowledged", CLIENT),
    Metric("rumq_client_behind_records", "gauge", "behind_records", "records that it has not read yet", CLIENT),
    Metric("rumq_client_connected", "gauge", "connected", "1: it is connected", CLIENT),
)
SHARD = ("shard",)
FOLLOWER = ("shard", "node")
CLUSTER = (
    Metric(
        "rumq_cluster_nodes",
        "gauge",
        "nodes",
        "nodes that live, and those that have copies and do not",
        ("state",),
    ),
    Metric(
        "rumq_cluster_wrong",
        "gauge",
        "wrong",
        "what is wrong, as `rumqd cluster status` tells it; 0: nothing",
    ),
    Metric("rumq_cluster_node_drained", "gauge", "drained", "1: this node leads nothing, for it is drained"),
    Metric("rumq_cluster_control_up", "gauge", "control_up", "1: the control plane (etcd) answers this node"),
    Metric(
        "rumq_cluster_control_lost_seconds",
        "gauge",
        "lost_seconds",
        "since when it has not answered; 0: it does",
    ),
    Metric(
        "rumq_cluster_control_renew_seconds",
        "gauge",
        "renew_seconds",
        "that the last renewal of the lease took",
    ),
    Metric(
        "rumq_cluster_control_requests_total",
        "counter",
        "requests",
        "requests of this node to the control plane",
    ),
    Metric(
        "rumq_cluster_leader",
        "gauge",
        "leader",
        "1: this node leads the shard, as the asked node sees it",
        FOLLOWER,
    ),
    Metric("rumq_cluster_led", "gauge", "led", "1: the shard has a leader that lives", SHARD),
    Metric("rumq_cluster_epoch", "gauge", "epoch", "of the shard: one higher with each leader", SHARD),
    Metric("rumq_cluster_members", "gauge", "members", "copies of the shard that have a vote", SHARD),
    Metric("rumq_cluster_members_gone", "gauge", "gone", "those of them whose node does not live", SHARD),
    Metric(
        "rumq_cluster_failovers_total",
        "counter",
        "failovers",
        "leaders of the shard that were replaced",
        SHARD,
    ),
    Metric(
        "rumq_cluster_hand_overs_total",
        "counter",
        "hand_overs",
        "leaders of the shard that gave the lead away",
        SHARD,
    ),
)
LEADER = (
    Metric("rumq_cluster_quorum", "gauge", "has_quorum", "1: a majority has answered within 2 s", SHARD),
    Metric("rumq_cluster_in_sync", "gauge", "in_sync", "copies in sync, the leader's included", SHARD),
    Metric(
        "rumq_cluster_behind_records",
        "gauge",
        "behind_records",
        "records that a follower lacks; none: it is away",
        FOLLOWER,
    ),
    Metric("rumq_cluster_behind_bytes", "gauge", "behind_bytes", "the same in bytes of files", FOLLOWER),
)
TABLE = (
    *COUNTERS, *GAUGES, *LABELLED, *PARTITIONS, *HISTOGRAMS, *CLUSTER, *LEADER, *CLIENTS, *FUNCTIONS, *BRIDGES,
    *GATEWAY, *SERVICES, *KAFKA,
)  # fmt: skip
