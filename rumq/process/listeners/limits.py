"""Settings as limits of sessions and of connections that have not logged in."""

import msgspec

from rumq.net.pending_logins import PendingLogins
from rumq.process.listeners.broker_secret import broker_id
from rumq.session.flow_control.limits import Limits
from rumq.settings.table import Settings


def limits(settings: Settings) -> Limits:
    durability = tuple((s.name, s.durability) for s in settings.stream) if settings.mqtt.tells_durability else ()
    return Limits(
        **msgspec.structs.asdict(settings.mqtt), connect_seconds_max=settings.listener.connect_seconds_max,
        durability=durability, broker_id=broker_id(settings.data.dir, settings.cluster.name),
    )  # fmt: skip


def limit_pending_logins(settings: Settings, pending_logins: PendingLogins) -> None:
    auth = settings.auth
    pending_logins.set_limits(
        auth.unauthenticated_connections_max, auth.address_unauthenticated_connections_max,
        auth.unauthenticated_bytes_max,
    )  # fmt: skip
