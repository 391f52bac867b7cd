"""What the endpoints of the gateway share: its settings, the ways to the broker, tokens and rules. A reload replaces
tokens, rules and users in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rumq.auth.identity import Identity
from rumq.auth.rules import Rules
from rumq.config.gateway import Gateway
from rumq.gateway.admission import Admission
from rumq.gateway.certificate_expiry import CertificateExpiry
from rumq.gateway.event_feed import EventFeed
from rumq.gateway.history.sampler import Sampler
from rumq.gateway.host_names import HostNames
from rumq.gateway.publishers import Publishers
from rumq.gateway.records import ServedRecords
from rumq.gateway.relay.relays import Relays
from rumq.gateway.scraped_figures import ScrapedFigures
from rumq.gateway.shard_client import Shards
from rumq.gateway.span_export import SpanCounts
from rumq.gateway.tokens import Token
from rumq.gateway.topic_access import TopicAccess
from rumq.session.state.histogram import Histogram


@dataclass(slots=True)
class Context:
    """event: reports events; now_us, now: µs since 1970, monotonic seconds

    hosts: names that clients may ask for; rules: None: everything is allowed; users: of the password file
    requests: durations of those answered, by method, route and class of status"""

    settings: Gateway
    shards: Shards
    publishers: Publishers
    relays: Relays
    records: ServedRecords
    admission: Admission
    hosts: HostNames
    rules: Rules | None
    users: Sequence[str]
    events: EventFeed
    figures: ScrapedFigures
    history: Sampler
    event: Callable[..., None]
    now: Callable[[], float]
    now_us: Callable[[], int]
    requests: defaultdict[tuple[str, str, str], Histogram] = field(
        default_factory=lambda: defaultdict(Histogram)
    )
    spans: SpanCounts = field(default_factory=SpanCounts)
    certificates: CertificateExpiry = field(default_factory=lambda: CertificateExpiry(dict))
    connections: Callable[[], tuple[int, int]] = lambda: (0, 0)

    def access_of(self, token: Token) -> TopicAccess:
        """Of which topics the token may be told."""
        permit = None if self.rules is None else self.rules.permit(Identity(token.user or None), "")
        return TopicAccess(token, permit)
