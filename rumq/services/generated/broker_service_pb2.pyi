from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Position(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POSITION_UNSPECIFIED: _ClassVar[Position]
    POSITION_EARLIEST: _ClassVar[Position]
    POSITION_LATEST: _ClassVar[Position]
POSITION_UNSPECIFIED: Position
POSITION_EARLIEST: Position
POSITION_LATEST: Position

class UserProperty(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("topic", "payload", "expiry_seconds", "retain", "content_type", "user_properties", "response_topic", "correlation_data")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RETAIN_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    USER_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_DATA_FIELD_NUMBER: _ClassVar[int]
    topic: str
    payload: bytes
    expiry_seconds: int
    retain: bool
    content_type: str
    user_properties: _containers.RepeatedCompositeFieldContainer[UserProperty]
    response_topic: str
    correlation_data: bytes
    def __init__(self, topic: _Optional[str] = ..., payload: _Optional[bytes] = ..., expiry_seconds: _Optional[int] = ..., retain: _Optional[bool] = ..., content_type: _Optional[str] = ..., user_properties: _Optional[_Iterable[_Union[UserProperty, _Mapping]]] = ..., response_topic: _Optional[str] = ..., correlation_data: _Optional[bytes] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: Message
    def __init__(self, message: _Optional[_Union[Message, _Mapping]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class PublishStreamRequest(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("index", "reason", "detail")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    index: int
    reason: str
    detail: str
    def __init__(self, index: _Optional[int] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class PublishStreamResponse(_message.Message):
    __slots__ = ("ids", "refusals")
    IDS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    refusals: _containers.RepeatedCompositeFieldContainer[Refusal]
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., refusals: _Optional[_Iterable[_Union[Refusal, _Mapping]]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("position", "id", "time_us")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    position: Position
    id: int
    time_us: int
    def __init__(self, position: _Optional[_Union[Position, str]] = ..., id: _Optional[int] = ..., time_us: _Optional[int] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("topics", "cursor", "with_publishers")
    class TopicsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Start
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Start, _Mapping]] = ...) -> None: ...
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    WITH_PUBLISHERS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.MessageMap[str, Start]
    cursor: str
    with_publishers: bool
    def __init__(self, topics: _Optional[_Mapping[str, Start]] = ..., cursor: _Optional[str] = ..., with_publishers: _Optional[bool] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("topic", "id", "payload", "time_us", "partition", "lsn", "retain", "publisher", "content_type", "user_properties", "response_topic", "correlation_data", "expiry_seconds")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LSN_FIELD_NUMBER: _ClassVar[int]
    RETAIN_FIELD_NUMBER: _ClassVar[int]
    PUBLISHER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    USER_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_DATA_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    id: int
    payload: bytes
    time_us: int
    partition: str
    lsn: int
    retain: bool
    publisher: str
    content_type: str
    user_properties: _containers.RepeatedCompositeFieldContainer[UserProperty]
    response_topic: str
    correlation_data: bytes
    expiry_seconds: int
    def __init__(self, topic: _Optional[str] = ..., id: _Optional[int] = ..., payload: _Optional[bytes] = ..., time_us: _Optional[int] = ..., partition: _Optional[str] = ..., lsn: _Optional[int] = ..., retain: _Optional[bool] = ..., publisher: _Optional[str] = ..., content_type: _Optional[str] = ..., user_properties: _Optional[_Iterable[_Union[UserProperty, _Mapping]]] = ..., response_topic: _Optional[str] = ..., correlation_data: _Optional[bytes] = ..., expiry_seconds: _Optional[int] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ("records", "cursor", "caught_up", "lost")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    cursor: str
    caught_up: bool
    lost: int
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., cursor: _Optional[str] = ..., caught_up: _Optional[bool] = ..., lost: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("topic", "id", "with_publisher")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    WITH_PUBLISHER_FIELD_NUMBER: _ClassVar[int]
    topic: str
    id: int
    with_publisher: bool
    def __init__(self, topic: _Optional[str] = ..., id: _Optional[int] = ..., with_publisher: _Optional[bool] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: Record
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ...) -> None: ...

class BroadcastRequest(_message.Message):
    __slots__ = ("clients", "message")
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    clients: str
    message: Message
    def __init__(self, clients: _Optional[str] = ..., message: _Optional[_Union[Message, _Mapping]] = ...) -> None: ...

class BroadcastResponse(_message.Message):
    __slots__ = ("named", "sent", "dropped")
    NAMED_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    named: int
    sent: int
    dropped: int
    def __init__(self, named: _Optional[int] = ..., sent: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

class DescribeTopicsRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: str
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class Topic(_message.Message):
    __slots__ = ("topic", "stream", "partition", "last_id", "records_per_second")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LAST_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    topic: str
    stream: str
    partition: int
    last_id: int
    records_per_second: float
    def __init__(self, topic: _Optional[str] = ..., stream: _Optional[str] = ..., partition: _Optional[int] = ..., last_id: _Optional[int] = ..., records_per_second: _Optional[float] = ...) -> None: ...

class DescribeTopicsResponse(_message.Message):
    __slots__ = ("topics", "next_page_token")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[Topic]
    next_page_token: str
    def __init__(self, topics: _Optional[_Iterable[_Union[Topic, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DescribeStreamsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Stream(_message.Message):
    __slots__ = ("stream", "durability", "partitions", "records", "bytes", "topics", "offline_partitions")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    durability: str
    partitions: int
    records: int
    bytes: int
    topics: int
    offline_partitions: int
    def __init__(self, stream: _Optional[str] = ..., durability: _Optional[str] = ..., partitions: _Optional[int] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., topics: _Optional[int] = ..., offline_partitions: _Optional[int] = ...) -> None: ...

class DescribeStreamsResponse(_message.Message):
    __slots__ = ("streams",)
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    streams: _containers.RepeatedCompositeFieldContainer[Stream]
    def __init__(self, streams: _Optional[_Iterable[_Union[Stream, _Mapping]]] = ...) -> None: ...

class DescribeClientsRequest(_message.Message):
    __slots__ = ("clients", "user", "page_size", "page_token")
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    clients: str
    user: str
    page_size: int
    page_token: str
    def __init__(self, clients: _Optional[str] = ..., user: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class Client(_message.Message):
    __slots__ = ("client_id", "user", "connected", "address", "protocol", "published", "delivered", "behind_records", "subscriptions")
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    BEHIND_RECORDS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    user: str
    connected: bool
    address: str
    protocol: str
    published: int
    delivered: int
    behind_records: int
    subscriptions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, client_id: _Optional[str] = ..., user: _Optional[str] = ..., connected: _Optional[bool] = ..., address: _Optional[str] = ..., protocol: _Optional[str] = ..., published: _Optional[int] = ..., delivered: _Optional[int] = ..., behind_records: _Optional[int] = ..., subscriptions: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeClientsResponse(_message.Message):
    __slots__ = ("clients", "next_page_token")
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    clients: _containers.RepeatedCompositeFieldContainer[Client]
    next_page_token: str
    def __init__(self, clients: _Optional[_Iterable[_Union[Client, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
