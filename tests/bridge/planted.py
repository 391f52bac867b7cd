"""Faults of bridges, as `tests.faults.planted` has those of the log."""

from tests.faults.planted import Planted

RELAY = "tests/bridge/test_relay.py"
BRIDGE = "tests/bridge/test_bridge.py"
RELAY_RUN = "tests/bridge/test_relay_run.py"

PLANTED = [
    # Bridges
    Planted(
        "a bridge tells the source that the target has a message before it has",
        "rumq/bridge/relay.py",
        "        return Moves([], [message])\n\n    def pubrel",
        "        return Moves(self._answered(packet.packet_id), [message])\n\n    def pubrel",
        RELAY,
    ),
    Planted(
        "a bridge completes a message before the target has released its id",
        "rumq/bridge/relay.py",
        "        return Moves([], [Pubrel(packet.packet_id)])",
        "        return Moves([Pubcomp(packet.packet_id)], [Pubrel(packet.packet_id)])",
        RELAY,
    ),
    Planted(
        "a message goes back to a broker that it has passed",
        "rumq/bridge/relay.py",
        "        if self._target.broker_id and self._target.broker_id in passed:",
        "        if self._source_id and self._source_id in passed[:-1]:",
        RELAY,
    ),
    Planted(
        "ids of a source's lost session are not released at the target",
        "rumq/bridge/bridge.py",
        "                await release_ids(connections[OTHER[side]])\n",
        "                await trio.sleep(0)\n",
        BRIDGE,
    ),
    Planted(
        "one connection of a bridge lives on when the other one ends",
        "rumq/bridge/link.py",
        "                lost.append(fault)\n                nursery.cancel_scope.cancel()",
        "                lost.append(fault)",
        BRIDGE,
    ),
    Planted(
        "a remote broker gives orders to this one in topics that begin with a dollar sign",
        "rumq/bridge/topic_rules.py",
        "if matches(each.target_filter, found):",
        "if found:",
        "tests/bridge/test_topic_rules.py",
    ),
    Planted(
        "a bridge reads on from a broker that does not read the answers",
        "rumq/bridge/link.py",
        "if self._relay.answered_bytes[source] > WAITING_BYTES_MAX:",
        "if False:",
        BRIDGE,
    ),
    Planted(
        "messages without payloads wait for the bandwidth without a bound",
        "rumq/bridge/two_way_relay.py",
        "self.paced_bytes[side] += held_bytes(packet)",
        "self.paced_bytes[side] += len(packet.payload)",
        RELAY_RUN,
    ),
    Planted(
        "a bridge keeps whatever comes while it waits for ids to be released",
        "rumq/bridge/side.py",
        "if size > KEPT_BYTES_MAX:",
        "if False:",
        BRIDGE,
    ),
    Planted(
        "a bridge collects a packet that its target does not take",
        "rumq/bridge/two_way_relay.py",
        "if header_len + body_len > self._collected_max[side]:",
        "if False:",
        RELAY_RUN,
    ),
    Planted(
        "addresses that refuse the subscription are asked without a pause",
        "rumq/bridge/remote_addresses.py",
        "        if version == 5:\n",
        "        self._failed = 0\n        if version == 5:\n",
        "tests/bridge/test_remote_addresses.py",
    ),
    Planted(
        "a run sends the target more messages than it takes",
        "rumq/bridge/kernels/relay_run.py",
        "if qos and len(self.messages.by_id) >= self.receive_maximum:",
        "if False:",
        RELAY_RUN,
    ),
    Planted(
        "a run relays a message to a broker that it has passed",
        "rumq/bridge/kernels/relay_run.py",
        "                    return UNDECIDED  # it has been there",
        "                    pass",
        RELAY_RUN,
    ),
    Planted(
        "a run sends a message again to a target that lost its session, unmarked",
        "rumq/bridge/kernels/relay_run.py",
        "if head & 8 and (qos == 0 or self.was_lost):",
        "if head & 8 and qos == 0:",
        RELAY_RUN,
    ),
    Planted(
        "a run puts the source's id between user properties and others",
        "rumq/bridge/kernels/relay_run.py",
        "or found.alias_at >= 0 or found.users_apart",
        "or found.alias_at >= 0",
        RELAY_RUN,
    ),
    Planted(
        "a run answers a message of QoS 1 as the target did, not as the source asked",
        "rumq/bridge/kernels/relay_run.py",
        "0x40 if held.qos == 1 else 0x50",
        "head",
        RELAY_RUN,
    ),
    Planted(
        "a run takes a remaining length in more bytes than it needs",
        "rumq/bridge/kernels/relay_run.py",
        "return i + 1 if data[i] or i == at else -1",
        "return i + 1",
        RELAY_RUN,
    ),
    Planted(
        "ids are not released where another broker answers at another address",
        "rumq/bridge/bridge.py",
        "            self._lost = set(SIDES)\n",
        "            self._lost = set()\n",
        "tests/bridge/test_remote_addresses.py",
    ),
    Planted(
        "once MQTT 5 was refused, 3.1.1 is asked with a new session",
        "rumq/bridge/side.py",
        "told = replace(options, version=version, clean_start=clean_start)",
        "told = replace(options, version=version)",
        "tests/bridge/test_side.py",
    ),
    Planted(
        "a bridge's state stays 1 when its process is gone",
        "rumq/bridge/counts.py",
        "is_fresh and bool(each.get",
        "bool(each.get",
        "tests/bridge/test_counts.py",
    ),
    Planted(
        "the other broker is told of the bridge's state where it is not to be",
        "rumq/process/bridge/bridge_settings.py",
        "will=None if bridge.notifications_local_only else maybe_will(bridge)",
        "will=maybe_will(bridge)",
        "tests/process/bridge/test_bridge_settings.py",
    ),
]
