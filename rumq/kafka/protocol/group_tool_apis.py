"""Messages by which tools list, describe and delete consumer groups.

The fields are those of https://github.com/apache/kafka/tree/4.0/clients/src/main/resources/common/message"""

from __future__ import annotations

from rumq.kafka.protocol.fields import BOOL, BYTES, INT16, INT32, STRING, Array, Field

THROTTLE = "throttle_time_ms"
NOT_ASKED = -(2**31)  # for which operations there are

DESCRIBE_GROUPS_REQUEST = (Field("groups", Array(STRING)), Field("include_authorized_operations", BOOL, 3))
DESCRIBED_MEMBER = (
    Field("member_id", STRING),
    Field("group_instance_id", STRING, 4, nullable=4, default=None),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("member_metadata", BYTES),
    Field("member_assignment", BYTES),
)
DESCRIBE_GROUPS_ANSWER = (
    Field(THROTTLE, INT32, 1),
    Field(
        "groups",
        Array(
            (
                Field("error_code", INT16),
                Field("group_id", STRING),
                Field("group_state", STRING, default=""),
                Field("protocol_type", STRING, default=""),
                Field("protocol_data", STRING, default=""),
                Field("members", Array(DESCRIBED_MEMBER)),
                Field("authorized_operations", INT32, 3, default=NOT_ASKED),
            )
        ),
    ),
)

LIST_GROUPS_REQUEST = (Field("states_filter", Array(STRING), 4),)
LIST_GROUPS_ANSWER = (
    Field(THROTTLE, INT32, 1),
    Field("error_code", INT16),
    Field(
        "groups", Array((Field("group_id", STRING), Field("protocol_type", STRING), Field("group_state", STRING, 4)))
    ),
)

DELETE_GROUPS_REQUEST = (Field("groups_names", Array(STRING)),)
DELETE_GROUPS_ANSWER = (
    Field(THROTTLE, INT32),
    Field("results", Array((Field("group_id", STRING), Field("error_code", INT16)))),
)

OFFSET_DELETE_REQUEST = (
    Field("group_id", STRING),
    Field("topics", Array((Field("name", STRING), Field("partitions", Array((Field("partition_index", INT32),)))))),
)
OFFSET_DELETE_ANSWER = (
    Field("error_code", INT16),
    Field(THROTTLE, INT32),
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
