"""What a connection is to the answers: who it is, where it came in, and the parts of the server that they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import trio

from rumq.auth.identity import Certificate
from rumq.flight.serving.call_authorization import FlightCaller
from rumq.kafka.access.logins import BegunScram, KafkaLogins
from rumq.kafka.access.read_turns import ReadTurns
from rumq.kafka.access.shares import KafkaShares
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.log.served_log import KafkaLog, LogPartition
from rumq.kafka.nodes.group_seat import GroupSeat
from rumq.kafka.topics.topic_catalog import KafkaTopic, TopicCatalog, TopicReader, partition_name, partition_names

ALONE = 1  # the number of a broker alone
LOGINS_MAX = 160  # threads: more than refusals that may be delayed (rumq.flight.serving.login_turns)
Event = Callable[..., None]


class AdvertisedAddress(NamedTuple):
    """Where clients connect to."""

    host: str
    port: int


class FetchBounds(NamedTuple):
    """answer_bytes_max: of one answer's records; waiting: bytes of answers that clients are still to take"""

    answer_bytes_max: int
    waiting: KafkaShares


class FoundNothing(NamedTuple):
    """Of a Fetch. seconds: that it may wait; partitions: it stands at the end of all of them"""

    seconds: float
    partitions: list[LogPartition]


@dataclass
class DoorFigures:
    """Counted for metrics."""

    records: int = 0
    bytes: int = 0
    fetches: int = 0
    refused_logins: int = 0
    refused_connections: int = 0
    lost_records: int = 0


@dataclass
class KafkaDoor:
    """The parts of the server that all connections share. cluster_id: as clients are told it

    advertised: None: clients are told the address that they have connected to
    clears: cleared retained messages are null; retention: of a stream, for DescribeConfigs
    event: reports to the operator; now_us: µs since 1970
    own_groups: of a broker alone; None: they are refused; seat: of a node of a cluster, else None"""

    log: KafkaLog
    catalog: TopicCatalog
    logins: KafkaLogins
    bounds: FetchBounds
    cluster_id: str
    advertised: AdvertisedAddress | None
    clears: bool
    retention: Callable[[str], dict[str, str]]
    event: Event
    now_us: Callable[[], int]
    own_groups: GroupService | None = None
    seat: GroupSeat | None = None
    figures: DoorFigures = field(default_factory=DoorFigures)
    turns: ReadTurns = field(default_factory=ReadTurns)
    login_threads: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(LOGINS_MAX))

    @property
    def groups(self) -> GroupService | None:
        """None: they are not served here, or not now."""
        return self.own_groups if self.seat is None else self.seat.groups

    @property
    def number(self) -> int:
        """Of this server among the brokers that clients are told."""
        return ALONE if self.seat is None else self.seat.nodes.own_number

    def names_of(self, topic: KafkaTopic) -> list[str]:
        """The partitions of a topic, in order; in a cluster also those of which there is no copy here."""
        here = partition_names(topic, self.log.partitions)
        count = 0 if self.seat is None else self.seat.nodes.partitions_of(topic.stream)
        return here + [partition_name(topic.stream, number) for number in range(len(here), count)]


@dataclass
class KafkaClient:
    """One connection. peer: its address without port; network: its IPv4 address or IPv6 /64; local: where it came in

    caller: None until it has logged in; mechanism: of a login that has begun; scram: one that waits for its end
    asked_at: when its request was there; was_parked: since then
    found_nothing: of its request; None: it is no Fetch, or something was there"""

    door: KafkaDoor
    peer: str
    network: str
    local: AdvertisedAddress
    certificate: Certificate | None = None
    caller: FlightCaller | None = None
    mechanism: str = ""
    takes_raw_login: bool = False
    scram: BegunScram | None = None
    rotation: int = 0
    asked_at: float = 0.0
    was_parked: bool = False
    found_nothing: FoundNothing | None = None

    @property
    def reader(self) -> TopicReader:
        assert self.caller is not None
        return TopicReader(self.caller.permit)

    @property
    def user(self) -> str:
        return "" if self.caller is None or self.caller.user is None else self.caller.user

    @property
    def has_expired(self) -> bool:
        """Whether its login was for a time that is over."""
        until = None if self.caller is None else self.caller.expires_us
        return until is not None and until <= self.door.now_us()

    @property
    def holders(self) -> tuple[str, ...]:
        """For whom bytes are counted."""
        network = f"network {self.network}"
        return (network, f"user {self.user}") if self.user else (network,)

    @property
    def advertised(self) -> AdvertisedAddress:
        return self.door.advertised or self.local
