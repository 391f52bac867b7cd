"""What the endpoints of the gateway share: its settings, the ways to the broker, tokens and rules. A reload replaces
tokens, rules and users in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from rumq.auth.credentials.files import read_secrets
from rumq.auth.credentials.passwords import parse as parse_users
from rumq.auth.identity import Identity
from rumq.auth.rules import Rules
from rumq.gateway.access.admission import Admission
from rumq.gateway.access.credential_files import CredentialFiles
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token
from rumq.gateway.access.topic_access import TopicAccess
from rumq.gateway.broker.event_feed import EventFeed
from rumq.gateway.broker.publishers import Publishers
from rumq.gateway.broker.shard_client import Shards
from rumq.gateway.broker.span_export import SpanCounts
from rumq.gateway.consumers.channel_consumers import ChannelConsumers
from rumq.gateway.contract.endpoints import EffectiveSetting
from rumq.gateway.history.sampler import Sampler
from rumq.gateway.metrics.certificate_expiry import CertificateExpiry
from rumq.gateway.metrics.scraped_figures import ScrapedFigures
from rumq.gateway.records.log_watch import LogWatch
from rumq.gateway.records.records import ServedRecords
from rumq.gateway.relay.relays import Relays
from rumq.queues import Queues
from rumq.session.state.histogram import Histogram
from rumq.settings.table.gateway import Gateway

EXPIRY_SECONDS = 1.0  # connections of a token that expires end so much later at most


@dataclass(slots=True)
class Context:
    """event: reports events; now_us, now: µs since 1970, monotonic seconds

    hosts: names that clients may ask for; rules: None: everything is allowed; users: of the password file
    effective_settings: those in force, each with its source
    requests: durations of those answered, by method, route and class of status"""

    settings: Gateway
    shards: Shards
    publishers: Publishers
    relays: Relays
    records: ServedRecords
    followed: LogWatch
    admission: Admission
    hosts: HostNames
    rules: Rules | None
    users: Sequence[str]
    credentials: CredentialFiles
    events: EventFeed
    figures: ScrapedFigures
    history: Sampler
    event: Callable[..., None]
    now: Callable[[], float]
    now_us: Callable[[], int]
    requests: defaultdict[tuple[str, str, str], Histogram] = field(default_factory=lambda: defaultdict(Histogram))
    effective_settings: Callable[[], list[EffectiveSetting]] = list
    spans: SpanCounts = field(default_factory=SpanCounts)
    certificates: CertificateExpiry = field(default_factory=lambda: CertificateExpiry(dict))
    connections: Callable[[], tuple[int, int]] = lambda: (0, 0)
    queues: Queues | None = None
    consumers: ChannelConsumers = field(init=False)

    def __post_init__(self) -> None:
        self.use_queues(self.queues)

    def use_queues(self, queues: Queues | None) -> None:
        """None: this broker has none."""
        self.queues = queues
        self.consumers = ChannelConsumers(queues, self.settings.consumers_max, self.event)

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
        now_us = self.now_us()
        live = {sha256: each for sha256, each in self.admission.tokens.items() if not each.is_expired(now_us)}
        self.relays.recheck(live)
        self.followed.wake()
        self.consumers.recheck(lambda token: token in live.values())

    async def end_expired(self) -> None:
        """End what tokens hold when they expire, until cancelled."""
        while True:
            before_us = self.now_us()
            await trio.sleep(EXPIRY_SECONDS)
            now_us = self.now_us()
            if any(before_us < each.expires_us <= now_us for each in self.admission.tokens.values()):
                self.recheck()

    def access_of(self, token: Token) -> TopicAccess:
        """Of which topics the token may be told."""
        permit = None if self.rules is None else self.rules.permit(Identity(token.user or None), "")
        return TopicAccess(token, permit)
