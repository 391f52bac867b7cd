"""Settings as limits of sessions and of connections that have not logged in."""

from rumq.config import Settings
from rumq.net.pending_logins import PendingLogins
from rumq.session.flow_control.limits import Limits


def limits(settings: Settings) -> Limits:
    m = settings.mqtt
    return Limits(
        packet_bytes_max=m.packet_bytes_max,
        connect_bytes_max=m.connect_bytes_max,
        topic_bytes_max=m.topic_bytes_max,
        topic_levels_max=m.topic_levels_max,
        receive_maximum=m.receive_maximum,
        inflight_max=m.inflight_max,
        keep_alive_seconds_max=m.keep_alive_seconds_max,
        topic_alias_maximum=m.topic_alias_maximum,
        topic_alias_out_maximum=m.topic_alias_out_maximum,
        session_expiry_seconds_max=m.session_expiry_seconds_max,
        sessions_max=m.sessions_max,
        subscriptions_max=m.subscriptions_max,
        subscriptions_bytes_max=m.subscriptions_bytes_max,
        wildcard_levels_max=m.wildcard_levels_max,
        all_subscriptions_bytes_max=m.all_subscriptions_bytes_max,
        all_wildcard_levels_max=m.all_wildcard_levels_max,
        new_topics_per_second_max=m.new_topics_per_second_max,
        new_topic_visits_per_second_max=m.new_topic_visits_per_second_max,
        retain_available=m.retain_available,
        wildcard_available=m.wildcard_available,
        shared_available=m.shared_available,
        subscription_identifiers_available=m.subscription_identifiers_available,
        publisher_available=m.publisher_available,
        maximum_qos=m.maximum_qos,
        client_id_bytes_max=m.client_id_bytes_max,
        connect_seconds_max=settings.listener.connect_seconds_max,
        outbox_bytes_max=m.outbox_bytes_max,
        reason_strings=m.reason_strings,
        durability=tuple((s.name, s.durability) for s in settings.stream) if m.tells_durability else (),
    )


def limit_pending_logins(settings: Settings, pending_logins: PendingLogins) -> None:
    auth = settings.auth
    pending_logins.set_limits(
        auth.unauthenticated_connections_max, auth.address_unauthenticated_connections_max,
        auth.unauthenticated_bytes_max,
    )  # fmt: skip
