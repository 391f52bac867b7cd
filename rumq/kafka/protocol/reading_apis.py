"""Messages that reading consists of: ApiVersions, Metadata, ListOffsets, Fetch, and what is asked about topics.

The fields are those of https://github.com/apache/kafka/tree/4.0/clients/src/main/resources/common/message"""

from __future__ import annotations

from rumq.kafka.protocol.fields import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    NO_UUID,
    RECORDS,
    STRING,
    UUID,
    Array,
    Field,
)

UNKNOWN_OPERATIONS = -(1 << 31)  # of authorized operations: not asked for

API_VERSIONS_REQUEST = (
    Field("client_software_name", STRING, 3, default=""),
    Field("client_software_version", STRING, 3, default=""),
)
API_VERSIONS_ANSWER = (
    Field("error_code", INT16),
    Field("api_keys", Array((Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16)))),
    Field("throttle_time_ms", INT32, 1),
)

METADATA_REQUEST = (
    Field(
        "topics",
        Array((Field("topic_id", UUID, 10, default=NO_UUID), Field("name", STRING, nullable=10, default=None))),
        nullable=1,
        default=None,
    ),
    Field("allow_auto_topic_creation", BOOL, 4, default=True),
    Field("include_cluster_authorized_operations", BOOL, 8, 10),
    Field("include_topic_authorized_operations", BOOL, 8),
)
BROKER = (
    Field("node_id", INT32),
    Field("host", STRING),
    Field("port", INT32),
    Field("rack", STRING, 1, nullable=1, default=None),
)
METADATA_PARTITION = (
    Field("error_code", INT16),
    Field("partition_index", INT32),
    Field("leader_id", INT32),
    Field("leader_epoch", INT32, 7, default=-1),
    Field("replica_nodes", Array(INT32), default=()),
    Field("isr_nodes", Array(INT32), default=()),
    Field("offline_replicas", Array(INT32), 5, default=()),
)
METADATA_ANSWER = (
    Field("throttle_time_ms", INT32, 3),
    Field("brokers", Array(BROKER)),
    Field("cluster_id", STRING, 2, nullable=2, default=None),
    Field("controller_id", INT32, 1),
    Field(
        "topics",
        Array(
            (
                Field("error_code", INT16),
                Field("name", STRING, nullable=12, default=""),
                Field("topic_id", UUID, 10, default=NO_UUID),
                Field("is_internal", BOOL, 1),
                Field("partitions", Array(METADATA_PARTITION), default=()),
                Field("topic_authorized_operations", INT32, 8, default=UNKNOWN_OPERATIONS),
            )
        ),
    ),
    Field("cluster_authorized_operations", INT32, 8, 10, default=UNKNOWN_OPERATIONS),
)

LIST_OFFSETS_REQUEST = (
    Field("replica_id", INT32),
    Field("isolation_level", INT8, 2),
    Field(
        "topics",
        Array(
            (
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        (
                            Field("partition_index", INT32),
                            Field("current_leader_epoch", INT32, 4, default=-1),
                            Field("timestamp", INT64),
                        )
                    ),
                ),
            )
        ),
    ),
)
LIST_OFFSETS_ANSWER = (
    Field("throttle_time_ms", INT32, 2),
    Field(
        "topics",
        Array(
            (
                Field("name", STRING),
                Field(
                    "partitions",
                    Array(
                        (
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                            Field("timestamp", INT64, default=-1),
                            Field("offset", INT64, default=-1),
                            Field("leader_epoch", INT32, 4, default=-1),
                        )
                    ),
                ),
            )
        ),
    ),
)

FETCH_PARTITION = (
    Field("partition", INT32),
    Field("current_leader_epoch", INT32, 9, default=-1),
    Field("fetch_offset", INT64),
    Field("last_fetched_epoch", INT32, 12, default=-1),
    Field("log_start_offset", INT64, 5, default=-1),
    Field("partition_max_bytes", INT32),
)
FORGOTTEN_TOPIC = (
    Field("topic", STRING, 7, 12, default=""),
    Field("topic_id", UUID, 13, default=NO_UUID),
    Field("partitions", Array(INT32)),
)
FETCH_REQUEST = (
    Field("replica_id", INT32),
    Field("max_wait_ms", INT32),
    Field("min_bytes", INT32),
    Field("max_bytes", INT32),
    Field("isolation_level", INT8),
    Field("session_id", INT32, 7),
    Field("session_epoch", INT32, 7, default=-1),
    Field(
        "topics",
        Array(
            (
                Field("topic", STRING, until=12, default=""),
                Field("topic_id", UUID, 13, default=NO_UUID),
                Field("partitions", Array(FETCH_PARTITION)),
            )
        ),
    ),
    Field("forgotten_topics_data", Array(FORGOTTEN_TOPIC), 7, default=()),
    Field("rack_id", STRING, 11, default=""),
)
ABORTED = (Field("producer_id", INT64), Field("first_offset", INT64))
FETCHED_PARTITION = (
    Field("partition_index", INT32),
    Field("error_code", INT16),
    Field("high_watermark", INT64, default=-1),
    Field("last_stable_offset", INT64, default=-1),
    Field("log_start_offset", INT64, 5, default=-1),
    Field("aborted_transactions", Array(ABORTED), nullable=0, default=None),
    Field("preferred_read_replica", INT32, 11, default=-1),
    Field("records", RECORDS, nullable=0, default=()),
)
FETCH_ANSWER = (
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, 7),
    Field("session_id", INT32, 7),
    Field(
        "responses",
        Array(
            (
                Field("topic", STRING, until=12, default=""),
                Field("topic_id", UUID, 13, default=NO_UUID),
                Field("partitions", Array(FETCHED_PARTITION)),
            )
        ),
    ),
)

DESCRIBE_CONFIGS_REQUEST = (
    Field(
        "resources",
        Array(
            (
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field("configuration_keys", Array(STRING), nullable=0, default=None),
            )
        ),
    ),
    Field("include_synonyms", BOOL),
    Field("include_documentation", BOOL, 3),
)
SYNONYM = (Field("name", STRING), Field("value", STRING, nullable=0, default=None), Field("source", INT8))
CONFIG = (
    Field("name", STRING),
    Field("value", STRING, nullable=0, default=None),
    Field("read_only", BOOL, default=True),
    Field("config_source", INT8, default=4),
    Field("is_sensitive", BOOL),
    Field("synonyms", Array(SYNONYM), default=()),
    Field("config_type", INT8, 3, default=2),
    Field("documentation", STRING, 3, nullable=3, default=None),
)
DESCRIBE_CONFIGS_ANSWER = (
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            (
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=0, default=None),
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field("configs", Array(CONFIG), default=()),
            )
        ),
    ),
)

DESCRIBE_CLUSTER_REQUEST = (Field("include_cluster_authorized_operations", BOOL),)
CLUSTER_BROKER = (
    Field("broker_id", INT32),
    Field("host", STRING),
    Field("port", INT32),
    Field("rack", STRING, nullable=0, default=None),
)
DESCRIBE_CLUSTER_ANSWER = (
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=0, default=None),
    Field("cluster_id", STRING),
    Field("controller_id", INT32),
    Field("brokers", Array(CLUSTER_BROKER)),
    Field("cluster_authorized_operations", INT32, default=UNKNOWN_OPERATIONS),
)
