"""What the endpoints of the gateway share, in groups: who may ask, the ways to the broker, the log, figures, clocks.

A reload replaces tokens, rules and users in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import trio

from rumq.admin.figures import KafkaFigures, ServiceFigures
from rumq.admin.kafka_groups import GroupDone, KafkaRows
from rumq.admin.requests import Request
from rumq.auth.credentials.files import read_secrets
from rumq.auth.credentials.passwords import parse as parse_users
from rumq.auth.identity import Identity
from rumq.auth.rules import RuleSet
from rumq.gateway.access.admission import RequestAdmission
from rumq.gateway.access.credential_files import CredentialFiles
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token
from rumq.gateway.access.topic_access import TopicAccess
from rumq.gateway.broker.event_feed import EventFeed
from rumq.gateway.broker.publishers import PublishConnections
from rumq.gateway.broker.service_client import NotOfKafka
from rumq.gateway.broker.shard_client import ShardQueries
from rumq.gateway.broker.span_export import SpanCounts
from rumq.gateway.consumers.channel_consumers import ChannelConsumers
from rumq.gateway.contract.endpoints import EffectiveSetting
from rumq.gateway.history.sampler import HistorySampler
from rumq.gateway.metrics.certificate_expiry import CertificateExpiry
from rumq.gateway.metrics.function_metrics import Figures
from rumq.gateway.metrics.scraped_figures import ScrapedFigures
from rumq.gateway.records.log_watch import LogWatch
from rumq.gateway.records.records import ServedRecords
from rumq.gateway.relay.relays import Relays
from rumq.queues import Queues
from rumq.session.state.histogram import Histogram
from rumq.settings.table.gateway import Gateway

EXPIRY_SECONDS = 1.0  # connections of a token that expires end so much later at most


async def no_services() -> ServiceFigures | None:
    return None


async def no_kafka() -> KafkaFigures | None:
    return None


async def no_kafka_server(name: str, asked: Request) -> KafkaRows | GroupDone:
    raise NotOfKafka("there is no Kafka server here")


@dataclass(slots=True)
class GatewayClock:
    """now: monotonic seconds; now_us: µs since 1970"""

    now: Callable[[], float]
    now_us: Callable[[], int]


@dataclass(slots=True)
class BrokerAccess:
    """The ways to the broker. relays: of clients over WebSocket; events: of the broker, as they come

    kafka: asks the Kafka server an operation of KAFKA_OPERATIONS"""

    shards: ShardQueries
    publishers: PublishConnections
    relays: Relays
    events: EventFeed
    kafka: Callable[[str, Request], Awaitable[KafkaRows | GroupDone]] = no_kafka_server


@dataclass(slots=True)
class LogAccess:
    """The log of this node, as it is read from disk. followed: wakes requests that wait for records"""

    records: ServedRecords
    followed: LogWatch


class BridgeReport(NamedTuple):
    """figures: by name of the bridge; is_live: their process has written them lately

    elsewhere: which other node runs them, in a sentence; empty: none does"""

    figures: Figures
    is_live: bool
    elsewhere: str = ""


@dataclass(slots=True)
class GatewayFigures:
    """What is measured. scraped: of the shards; history: samples of the last days; connections: (open, shed so far)

    requests: durations of those answered, by method, route and class of status"""

    scraped: ScrapedFigures
    history: HistorySampler
    requests: defaultdict[tuple[str, str, str], Histogram] = field(default_factory=lambda: defaultdict(Histogram))
    spans: SpanCounts = field(default_factory=SpanCounts)
    certificates: CertificateExpiry = field(default_factory=lambda: CertificateExpiry(dict))
    connections: Callable[[], tuple[int, int]] = lambda: (0, 0)
    services: Callable[[], Awaitable[ServiceFigures | None]] = no_services
    kafka: Callable[[], Awaitable[KafkaFigures | None]] = no_kafka
    functions: Callable[[], Figures] = dict  # by name of the function, from its file
    bridges: Callable[[], Figures] = dict  # by name of the bridge, from its file
    bridge_report: Callable[[], BridgeReport] = lambda: BridgeReport({}, is_live=False)


@dataclass(slots=True)
class GatewayRights:
    """Who may ask for what. hosts: names that clients may ask for; rules: None: everything is allowed

    users: of the password file; rechecks: called with the tokens that are valid when rights have changed"""

    admission: RequestAdmission
    hosts: HostNames
    rules: RuleSet | None
    users: Sequence[str]
    credentials: CredentialFiles
    clock: GatewayClock
    rechecks: Sequence[Callable[[Mapping[str, Token]], object]]

    def read_users(self) -> list[str]:
        """Of the password file as it is now. raises: SecretsError"""
        path = self.credentials.password_path
        return sorted(parse_users(read_secrets(path, strict=False), path)) if path else []

    def replace_tokens(self, tokens: Mapping[str, Token]) -> None:
        """Requests and connections that last, of tokens that are gone or other ones, end."""
        self.admission.tokens = tokens
        self.recheck()

    def recheck(self) -> None:
        """Rights have changed, or a token has expired: whoever is connected is looked at again."""
        now_us = self.clock.now_us()
        live = {sha256: each for sha256, each in self.admission.tokens.items() if not each.is_expired(now_us)}
        for recheck in self.rechecks:
            recheck(live)

    async def end_expired(self) -> None:
        """End what tokens hold when they expire, until cancelled."""
        while True:
            before_us = self.clock.now_us()
            await trio.sleep(EXPIRY_SECONDS)
            now_us = self.clock.now_us()
            if any(before_us < each.expires_us <= now_us for each in self.admission.tokens.values()):
                self.recheck()

    def topics_of(self, token: Token) -> TopicAccess:
        """Of which topics the token may be told."""
        permit = None if self.rules is None else self.rules.permit(Identity(token.user or None), "")
        return TopicAccess(token, permit)


@dataclass(slots=True)
class QueueAccess:
    """Queues, and who consumes from them over HTTP. queues: None: this broker has none; event: reports events"""

    consumers_max: int
    event: Callable[..., None]
    queues: Queues | None = None
    consumers: ChannelConsumers = field(init=False)

    def __post_init__(self) -> None:
        self.use(self.queues)

    def use(self, queues: Queues | None) -> None:
        self.queues = queues
        self.consumers = ChannelConsumers(queues, self.consumers_max, self.event)

    def recheck(self, live: Mapping[str, Token]) -> None:
        """live: the tokens that are valid"""
        self.consumers.recheck(lambda token: token in live.values())


@dataclass(slots=True)
class Context:
    """event: reports events; effective_settings: those in force, each with its source"""

    settings: Gateway
    rights: GatewayRights
    broker: BrokerAccess
    log: LogAccess
    queues: QueueAccess
    figures: GatewayFigures
    clock: GatewayClock
    event: Callable[..., None]
    effective_settings: Callable[[], list[EffectiveSetting]] = list
