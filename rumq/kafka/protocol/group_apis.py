"""Messages of consumer groups' members. Those of tools are in `group_tool_apis`.

The fields are those of https://github.com/apache/kafka/tree/4.0/clients/src/main/resources/common/message"""

from __future__ import annotations

from rumq.kafka.protocol.fields import BOOL, BYTES, INT8, INT16, INT32, INT64, STRING, Array, Field

THROTTLE = "throttle_time_ms"

FIND_COORDINATOR_REQUEST = (
    Field("key", STRING, until=3, default=""),
    Field("key_type", INT8, 1),
    Field("coordinator_keys", Array(STRING), 4, default=()),
)
FIND_COORDINATOR_ANSWER = (
    Field(THROTTLE, INT32, 1),
    Field("error_code", INT16, until=3),
    Field("error_message", STRING, 1, 3, nullable=1, default=None),
    Field("node_id", INT32, until=3, default=-1),
    Field("host", STRING, until=3, default=""),
    Field("port", INT32, until=3, default=-1),
    Field(
        "coordinators",
        Array(
            (
                Field("key", STRING),
                Field("node_id", INT32, default=-1),
                Field("host", STRING, default=""),
                Field("port", INT32, default=-1),
                Field("error_code", INT16),
                Field("error_message", STRING, nullable=0, default=None),
            )
        ),
        4,
        default=(),
    ),
)

JOIN_GROUP_REQUEST = (
    Field("group_id", STRING),
    Field("session_timeout_ms", INT32),
    Field("rebalance_timeout_ms", INT32, 1, default=-1),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, 5, nullable=5, default=None),
    Field("protocol_type", STRING),
    Field("protocols", Array((Field("name", STRING), Field("metadata", BYTES)))),
    Field("reason", STRING, 8, nullable=8, default=None),
)
JOIN_GROUP_ANSWER = (
    Field(THROTTLE, INT32, 2),
    Field("error_code", INT16),
    Field("generation_id", INT32, default=-1),
    Field("protocol_type", STRING, 7, nullable=7, default=None),
    Field("protocol_name", STRING, nullable=7, default=""),
    Field("leader", STRING, default=""),
    Field("skip_assignment", BOOL, 9),
    Field("member_id", STRING, default=""),
    Field(
        "members",
        Array(
            (
                Field("member_id", STRING),
                Field("group_instance_id", STRING, 5, nullable=5, default=None),
                Field("metadata", BYTES),
            )
        ),
        default=(),
    ),
)

SYNC_GROUP_REQUEST = (
    Field("group_id", STRING),
    Field("generation_id", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, 3, nullable=3, default=None),
    Field("protocol_type", STRING, 5, nullable=5, default=None),
    Field("protocol_name", STRING, 5, nullable=5, default=None),
    Field("assignments", Array((Field("member_id", STRING), Field("assignment", BYTES)))),
)
SYNC_GROUP_ANSWER = (
    Field(THROTTLE, INT32, 1),
    Field("error_code", INT16),
    Field("protocol_type", STRING, 5, nullable=5, default=None),
    Field("protocol_name", STRING, 5, nullable=5, default=None),
    Field("assignment", BYTES, default=b""),
)

HEARTBEAT_REQUEST = (
    Field("group_id", STRING),
    Field("generation_id", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, 3, nullable=3, default=None),
)
HEARTBEAT_ANSWER = (Field(THROTTLE, INT32, 1), Field("error_code", INT16))

LEAVE_GROUP_REQUEST = (
    Field("group_id", STRING),
    Field("member_id", STRING, until=2, default=""),
    Field(
        "members",
        Array(
            (
                Field("member_id", STRING),
                Field("group_instance_id", STRING, nullable=0, default=None),
                Field("reason", STRING, 5, nullable=5, default=None),
            )
        ),
        3,
        default=(),
    ),
)
LEAVE_GROUP_ANSWER = (
    Field(THROTTLE, INT32, 1),
    Field("error_code", INT16),
    Field(
        "members",
        Array(
            (
                Field("member_id", STRING),
                Field("group_instance_id", STRING, nullable=0, default=None),
                Field("error_code", INT16),
            )
        ),
        3,
        default=(),
    ),
)

OFFSET_COMMIT_REQUEST = (
    Field("group_id", STRING),
    Field("generation_id_or_member_epoch", INT32),
    Field("member_id", STRING),
    Field("group_instance_id", STRING, 7, nullable=7, default=None),
    Field("retention_time_ms", INT64, until=4, default=-1),
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
                            Field("committed_offset", INT64),
                            Field("committed_leader_epoch", INT32, 6, default=-1),
                            Field("committed_metadata", STRING, nullable=0, default=None),
                        )
                    ),
                ),
            )
        ),
    ),
)
OFFSET_COMMIT_ANSWER = (
    Field(THROTTLE, INT32, 3),
    Field(
        "topics",
        Array(
            (
                Field("name", STRING),
                Field("partitions", Array((Field("partition_index", INT32), Field("error_code", INT16)))),
            )
        ),
    ),
)

OFFSET_TOPIC = (Field("name", STRING), Field("partition_indexes", Array(INT32)))
OFFSET_FETCH_REQUEST = (
    Field("group_id", STRING, until=7, default=""),
    Field("topics", Array(OFFSET_TOPIC), until=7, nullable=2, default=()),
    Field(
        "groups",
        Array(
            (
                Field("group_id", STRING),
                Field("member_id", STRING, 9, nullable=9, default=None),
                Field("member_epoch", INT32, 9, default=-1),
                Field("topics", Array(OFFSET_TOPIC), nullable=0, default=None),
            )
        ),
        8,
        default=(),
    ),
    Field("require_stable", BOOL, 7),
)
COMMITTED_TOPIC = (
    Field("name", STRING),
    Field(
        "partitions",
        Array(
            (
                Field("partition_index", INT32),
                Field("committed_offset", INT64, default=-1),
                Field("committed_leader_epoch", INT32, 5, default=-1),
                Field("metadata", STRING, nullable=0, default=""),
                Field("error_code", INT16),
            )
        ),
    ),
)
OFFSET_FETCH_ANSWER = (
    Field(THROTTLE, INT32, 3),
    Field("topics", Array(COMMITTED_TOPIC), until=7, default=()),
    Field("error_code", INT16, 2, 7),
    Field(
        "groups",
        Array(
            (Field("group_id", STRING), Field("topics", Array(COMMITTED_TOPIC), default=()), Field("error_code", INT16))
        ),
        8,
        default=(),
    ),
)
