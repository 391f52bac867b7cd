"""Messages of logins, and those of producers, which are refused.

The fields are those of https://github.com/apache/kafka/tree/4.0/clients/src/main/resources/common/message"""

from __future__ import annotations

from rumq.kafka.protocol.fields import BYTES, INT16, INT32, INT64, STRING, Array, Field

SASL_HANDSHAKE_REQUEST = (Field("mechanism", STRING),)
SASL_HANDSHAKE_ANSWER = (Field("error_code", INT16), Field("mechanisms", Array(STRING)))

SASL_AUTHENTICATE_REQUEST = (Field("auth_bytes", BYTES),)
SASL_AUTHENTICATE_ANSWER = (
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=0, default=None),
    Field("auth_bytes", BYTES, default=b""),
    Field("session_lifetime_ms", INT64, 1),
)

PRODUCE_REQUEST = (
    Field("transactional_id", STRING, nullable=0, default=None),
    Field("acks", INT16),
    Field("timeout_ms", INT32),
    Field(
        "topic_data",
        Array(
            (
                Field("name", STRING),
                Field(
                    "partition_data",
                    Array((Field("index", INT32), Field("records", BYTES, nullable=0, default=None))),
                ),
            )
        ),
    ),
)
RECORD_ERROR = (Field("batch_index", INT32), Field("batch_index_error_message", STRING, nullable=0, default=None))
PRODUCE_ANSWER = (
    Field(
        "responses",
        Array(
            (
                Field("name", STRING),
                Field(
                    "partition_responses",
                    Array(
                        (
                            Field("index", INT32),
                            Field("error_code", INT16),
                            Field("base_offset", INT64, default=-1),
                            Field("log_append_time_ms", INT64, default=-1),
                            Field("log_start_offset", INT64, 5, default=-1),
                            Field("record_errors", Array(RECORD_ERROR), 8, default=()),
                            Field("error_message", STRING, 8, nullable=8, default=None),
                        )
                    ),
                ),
            )
        ),
    ),
    Field("throttle_time_ms", INT32),
)
