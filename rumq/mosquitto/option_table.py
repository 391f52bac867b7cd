"""Options of mosquitto.conf(5) that have no setting of rumq's, and what to say of each. `convert` has the others."""

from __future__ import annotations

import difflib

from rumq.mosquitto.conf import OF_A_BRIDGE, OF_A_LISTENER, PER_LISTENER
from rumq.mosquitto.unsafe_options import PLUGINS

EVENTS = "events go to standard error as events.format and events.level say: docs/reference/events.md"
# Options that have no setting, and why nothing is missing without them.
IDLE = {
    "autosave_interval": "the log is always saved",
    "autosave_on_changes": "the log is always saved",
    "allow_duplicate_messages": "a subscriber with overlapping subscriptions gets a message once",
    "connection_messages": EVENTS, "log_dest": EVENTS, "log_facility": EVENTS, "log_timestamp": EVENTS,
    "log_timestamp_format": EVENTS, "log_type": EVENTS, "websockets_log_level": EVENTS,
    "max_inflight_bytes": "a client's socket and its receive maximum bound what is on its way",
    "per_listener_settings": "each listener has keys of its own",
    "pid_file": "no file is written, the process id is in broker.starting",
    "queue_qos0_messages": "a lasting session finds QoS 0 messages in the log",
    "set_tcp_nodelay": "always on",
    "user": "rumqd runs as the user that starts it",
    "dhparamfile": "OpenSSL chooses the parameters",
    "websockets_headers_size": "8 KiB",
    "persistence_file": "the log has a directory of its own",
}  # fmt: skip
QUEUE = "nothing is queued, a session reads on from the log: mqtt.backlog_records_max bounds how far behind it may be"
# Options that have no setting, and what is missing without them.
MISSING = {
    "check_retain_source": "a retained message stays when its publisher may not publish there any more: clear it with"
    " `rumqd ask clear`",
    "upgrade_outgoing_qos": "a message has the lower QoS of its publisher's and the subscription's (MQTT 5.0, 3.8.4):"
    " publish with the higher one",
    "disable_client_cert_date_checks": "a client whose certificate has expired is refused: give it a new one",
    "max_queued_bytes": QUEUE, "max_queued_messages": QUEUE,
    "memory_limit": "log.hot_bytes_max, log.pending_bytes_max and limits of clients bound memory: config.toml",
    **dict.fromkeys(
        (
            "enable_control_api", "http_dir", "max_topic_alias_broker",
            "packet_buffer_size", "retain_expiry_interval", "tls_engine_kpass_sha1",
        ),
        "rumq has nothing like it",
    ),
}  # fmt: skip
# Options that rumq is without, so that `false` says what it does.
IDLE_IF_FALSE = {
    "check_retain_source": "who published a retained message is not asked when it is delivered",
    "upgrade_outgoing_qos": "a message has the lower QoS of its publisher's and the subscription's",
    "disable_client_cert_date_checks": "dates of certificates are checked",
}
# Options of which a part has a setting, and what is missing.
PARTLY = {
    "message_size_limit": "a payload above it is taken, as no limit is of payloads alone; a packet that is 64 KiB above"
    " it ends the connection, as mqtt.packet_bytes_max says: set that to what the largest packet may be as a whole",
    "global_max_clients": "it bounds the sessions that outlive their connection, of each shard (mqtt.sessions_max)",
    "global_max_connections": "each listener takes so many connections, not all listeners together",
}
# Options of all listeners that have a setting: the rest of those that `general` knows.
GENERAL = frozenset(
    {
        "acl_file", "allow_anonymous", "allow_zero_length_clientid", "auto_id_prefix", "clientid_prefixes",
        "global_max_clients", "global_max_connections",
        "max_inflight_messages", "max_keepalive", "max_packet_size", "message_size_limit", "password_file",
        "persistence", "persistence_location", "persistent_client_expiration", "retain_available", "sys_interval",
    }
)  # fmt: skip
# Options of which every line counts; of others the last one.
ADDS_UP = frozenset({"log_dest", "log_type", "websockets_origin", *PLUGINS})


def unknown(name: str) -> str:
    """What is said of an option that nothing is known of; one that is nearly another one is a typing error."""
    known = {*OF_A_LISTENER, *PER_LISTENER, *OF_A_BRIDGE, *IDLE, *MISSING, *GENERAL}
    if name in OF_A_BRIDGE:
        return "it belongs to a bridge, behind its `connection`"
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    return f"no option of mosquitto's; did you mean {near[0]}?" if near else "rumq knows no such option"
