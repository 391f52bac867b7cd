from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WhenFull(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WHEN_FULL_UNSPECIFIED: _ClassVar[WhenFull]
    WHEN_FULL_REFUSE: _ClassVar[WhenFull]
    WHEN_FULL_DROP_OLDEST: _ClassVar[WhenFull]

class DeadLetters(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEAD_LETTERS_UNSPECIFIED: _ClassVar[DeadLetters]
    DEAD_LETTERS_QUEUE: _ClassVar[DeadLetters]
    DEAD_LETTERS_DROP: _ClassVar[DeadLetters]
WHEN_FULL_UNSPECIFIED: WhenFull
WHEN_FULL_REFUSE: WhenFull
WHEN_FULL_DROP_OLDEST: WhenFull
DEAD_LETTERS_UNSPECIFIED: DeadLetters
DEAD_LETTERS_QUEUE: DeadLetters
DEAD_LETTERS_DROP: DeadLetters

class QueueSettings(_message.Message):
    __slots__ = ("ttl_seconds", "records_max", "bytes_max", "when_full")
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_MAX_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    WHEN_FULL_FIELD_NUMBER: _ClassVar[int]
    ttl_seconds: int
    records_max: int
    bytes_max: int
    when_full: WhenFull
    def __init__(self, ttl_seconds: _Optional[int] = ..., records_max: _Optional[int] = ..., bytes_max: _Optional[int] = ..., when_full: _Optional[_Union[WhenFull, str]] = ...) -> None: ...

class ChannelSettings(_message.Message):
    __slots__ = ("visible_seconds", "tries_max", "dead_letters", "is_ordered", "retry_seconds")
    VISIBLE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TRIES_MAX_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    IS_ORDERED_FIELD_NUMBER: _ClassVar[int]
    RETRY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    visible_seconds: float
    tries_max: int
    dead_letters: DeadLetters
    is_ordered: bool
    retry_seconds: float
    def __init__(self, visible_seconds: _Optional[float] = ..., tries_max: _Optional[int] = ..., dead_letters: _Optional[_Union[DeadLetters, str]] = ..., is_ordered: _Optional[bool] = ..., retry_seconds: _Optional[float] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("label", "settings", "created_us", "owner", "depth", "depth_bytes", "oldest_us", "pushed", "refused", "dropped", "channels")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_US_FIELD_NUMBER: _ClassVar[int]
    PUSHED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    label: str
    settings: QueueSettings
    created_us: int
    owner: str
    depth: int
    depth_bytes: int
    oldest_us: int
    pushed: int
    refused: int
    dropped: int
    channels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, label: _Optional[str] = ..., settings: _Optional[_Union[QueueSettings, _Mapping]] = ..., created_us: _Optional[int] = ..., owner: _Optional[str] = ..., depth: _Optional[int] = ..., depth_bytes: _Optional[int] = ..., oldest_us: _Optional[int] = ..., pushed: _Optional[int] = ..., refused: _Optional[int] = ..., dropped: _Optional[int] = ..., channels: _Optional[_Iterable[str]] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ("id", "queue", "topic", "settings", "created_us", "owner", "depth", "consumers", "in_flight", "acknowledged", "rejected", "dead", "share")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_US_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    id: str
    queue: str
    topic: str
    settings: ChannelSettings
    created_us: int
    owner: str
    depth: int
    consumers: int
    in_flight: int
    acknowledged: int
    rejected: int
    dead: int
    share: str
    def __init__(self, id: _Optional[str] = ..., queue: _Optional[str] = ..., topic: _Optional[str] = ..., settings: _Optional[_Union[ChannelSettings, _Mapping]] = ..., created_us: _Optional[int] = ..., owner: _Optional[str] = ..., depth: _Optional[int] = ..., consumers: _Optional[int] = ..., in_flight: _Optional[int] = ..., acknowledged: _Optional[int] = ..., rejected: _Optional[int] = ..., dead: _Optional[int] = ..., share: _Optional[str] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class PushMessage(_message.Message):
    __slots__ = ("topic", "payload", "key", "headers", "content_type", "delay_seconds", "expiry_seconds")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    DELAY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    payload: bytes
    key: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    content_type: str
    delay_seconds: float
    expiry_seconds: int
    def __init__(self, topic: _Optional[str] = ..., payload: _Optional[bytes] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., content_type: _Optional[str] = ..., delay_seconds: _Optional[float] = ..., expiry_seconds: _Optional[int] = ...) -> None: ...

class QueueMessage(_message.Message):
    __slots__ = ("id", "number", "topic", "payload", "tries", "pushed_us", "key", "headers", "content_type", "origin", "dead_tries")
    ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    PUSHED_US_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    DEAD_TRIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    number: int
    topic: str
    payload: bytes
    tries: int
    pushed_us: int
    key: str
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    content_type: str
    origin: str
    dead_tries: int
    def __init__(self, id: _Optional[str] = ..., number: _Optional[int] = ..., topic: _Optional[str] = ..., payload: _Optional[bytes] = ..., tries: _Optional[int] = ..., pushed_us: _Optional[int] = ..., key: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., content_type: _Optional[str] = ..., origin: _Optional[str] = ..., dead_tries: _Optional[int] = ...) -> None: ...

class CreateQueueRequest(_message.Message):
    __slots__ = ("queue", "settings")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    settings: QueueSettings
    def __init__(self, queue: _Optional[str] = ..., settings: _Optional[_Union[QueueSettings, _Mapping]] = ...) -> None: ...

class CreateQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ("part", "page_size", "page_token")
    PART_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    part: str
    page_size: int
    page_token: str
    def __init__(self, part: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "next_page_token")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    next_page_token: str
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RebuildQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class QueuePartition(_message.Message):
    __slots__ = ("stream", "partition", "shard", "durability", "committed_lsn", "offline")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_LSN_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    partition: int
    shard: int
    durability: str
    committed_lsn: int
    offline: str
    def __init__(self, stream: _Optional[str] = ..., partition: _Optional[int] = ..., shard: _Optional[int] = ..., durability: _Optional[str] = ..., committed_lsn: _Optional[int] = ..., offline: _Optional[str] = ...) -> None: ...

class RebuildQueueResponse(_message.Message):
    __slots__ = ("queue", "partitions", "missing", "was_stale")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    WAS_STALE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    partitions: _containers.RepeatedCompositeFieldContainer[QueuePartition]
    missing: _containers.RepeatedScalarFieldContainer[str]
    was_stale: bool
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[QueuePartition, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ..., was_stale: _Optional[bool] = ...) -> None: ...

class ListTopicsRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListTopicsResponse(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, topics: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateChannelRequest(_message.Message):
    __slots__ = ("queue", "topic", "settings", "id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    topic: str
    settings: ChannelSettings
    id: str
    def __init__(self, queue: _Optional[str] = ..., topic: _Optional[str] = ..., settings: _Optional[_Union[ChannelSettings, _Mapping]] = ..., id: _Optional[str] = ...) -> None: ...

class CreateChannelResponse(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: Channel
    def __init__(self, channel: _Optional[_Union[Channel, _Mapping]] = ...) -> None: ...

class GetChannelRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class GetChannelResponse(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: Channel
    def __init__(self, channel: _Optional[_Union[Channel, _Mapping]] = ...) -> None: ...

class ListChannelsRequest(_message.Message):
    __slots__ = ("queue", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListChannelsResponse(_message.Message):
    __slots__ = ("channels", "next_page_token")
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    next_page_token: str
    def __init__(self, channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteChannelRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class DeleteChannelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PushRefusal(_message.Message):
    __slots__ = ("index", "reason", "detail")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    index: int
    reason: str
    detail: str
    def __init__(self, index: _Optional[int] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class PushToQueueRequest(_message.Message):
    __slots__ = ("queue", "messages", "without_ids")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_IDS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    messages: _containers.RepeatedCompositeFieldContainer[PushMessage]
    without_ids: bool
    def __init__(self, queue: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[PushMessage, _Mapping]]] = ..., without_ids: _Optional[bool] = ...) -> None: ...

class PushToQueueResponse(_message.Message):
    __slots__ = ("ids", "refusals")
    IDS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    refusals: _containers.RepeatedCompositeFieldContainer[PushRefusal]
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., refusals: _Optional[_Iterable[_Union[PushRefusal, _Mapping]]] = ...) -> None: ...

class PushStreamRequest(_message.Message):
    __slots__ = ("queue", "messages", "without_ids")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_IDS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    messages: _containers.RepeatedCompositeFieldContainer[PushMessage]
    without_ids: bool
    def __init__(self, queue: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[PushMessage, _Mapping]]] = ..., without_ids: _Optional[bool] = ...) -> None: ...

class PushStreamResponse(_message.Message):
    __slots__ = ("ids", "refusals")
    IDS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    refusals: _containers.RepeatedCompositeFieldContainer[PushRefusal]
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., refusals: _Optional[_Iterable[_Union[PushRefusal, _Mapping]]] = ...) -> None: ...

class SubscribeToChannelRequest(_message.Message):
    __slots__ = ("channel", "credit", "auto_acknowledge")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    AUTO_ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    credit: int
    auto_acknowledge: bool
    def __init__(self, channel: _Optional[str] = ..., credit: _Optional[int] = ..., auto_acknowledge: _Optional[bool] = ...) -> None: ...

class SubscribeToChannelResponse(_message.Message):
    __slots__ = ("consumer", "messages")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    messages: _containers.RepeatedCompositeFieldContainer[QueueMessage]
    def __init__(self, consumer: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[QueueMessage, _Mapping]]] = ...) -> None: ...

class AcknowledgeRequest(_message.Message):
    __slots__ = ("consumer", "answers")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    answers: Answers
    def __init__(self, consumer: _Optional[str] = ..., answers: _Optional[_Union[Answers, _Mapping]] = ...) -> None: ...

class Answers(_message.Message):
    __slots__ = ("acknowledge", "reject", "delay_seconds", "extend", "extend_seconds")
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    REJECT_FIELD_NUMBER: _ClassVar[int]
    DELAY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    EXTEND_SECONDS_FIELD_NUMBER: _ClassVar[int]
    acknowledge: _containers.RepeatedScalarFieldContainer[str]
    reject: _containers.RepeatedScalarFieldContainer[str]
    delay_seconds: float
    extend: _containers.RepeatedScalarFieldContainer[str]
    extend_seconds: float
    def __init__(self, acknowledge: _Optional[_Iterable[str]] = ..., reject: _Optional[_Iterable[str]] = ..., delay_seconds: _Optional[float] = ..., extend: _Optional[_Iterable[str]] = ..., extend_seconds: _Optional[float] = ...) -> None: ...

class Answered(_message.Message):
    __slots__ = ("requests", "done", "not_held")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    NOT_HELD_FIELD_NUMBER: _ClassVar[int]
    requests: int
    done: int
    not_held: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, requests: _Optional[int] = ..., done: _Optional[int] = ..., not_held: _Optional[_Iterable[str]] = ...) -> None: ...

class AcknowledgeResponse(_message.Message):
    __slots__ = ("answered",)
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    answered: Answered
    def __init__(self, answered: _Optional[_Union[Answered, _Mapping]] = ...) -> None: ...

class ConsumeRequest(_message.Message):
    __slots__ = ("channel", "credit", "answers")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    channel: str
    credit: int
    answers: Answers
    def __init__(self, channel: _Optional[str] = ..., credit: _Optional[int] = ..., answers: _Optional[_Union[Answers, _Mapping]] = ...) -> None: ...

class ConsumeResponse(_message.Message):
    __slots__ = ("messages", "answered")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[QueueMessage]
    answered: Answered
    def __init__(self, messages: _Optional[_Iterable[_Union[QueueMessage, _Mapping]]] = ..., answered: _Optional[_Union[Answered, _Mapping]] = ...) -> None: ...

class PeekQueueRequest(_message.Message):
    __slots__ = ("queue", "topic", "after_us", "limit")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    AFTER_US_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    topic: str
    after_us: int
    limit: int
    def __init__(self, queue: _Optional[str] = ..., topic: _Optional[str] = ..., after_us: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class PeekQueueResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[QueueMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[QueueMessage, _Mapping]]] = ...) -> None: ...

class PurgeQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class PurgeQueueResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: int
    def __init__(self, messages: _Optional[int] = ...) -> None: ...

class PurgeChannelRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class PurgeChannelResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: int
    def __init__(self, messages: _Optional[int] = ...) -> None: ...

class RedriveQueueRequest(_message.Message):
    __slots__ = ("queue", "limit")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    limit: int
    def __init__(self, queue: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class RedriveQueueResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: int
    def __init__(self, messages: _Optional[int] = ...) -> None: ...

class GetHeartbeatRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetHeartbeatResponse(_message.Message):
    __slots__ = ("node", "time_us", "queues", "serving", "why")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    node: str
    time_us: int
    queues: int
    serving: bool
    why: str
    def __init__(self, node: _Optional[str] = ..., time_us: _Optional[int] = ..., queues: _Optional[int] = ..., serving: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...
