"""Faults of bridges, as `tests.faults.planted` has those of the log."""

from tests.faults.planted import Planted

RELAY = "tests/bridge/test_relay.py"
BRIDGE = "tests/bridge/test_bridge.py"
RELAY_RUN = "tests/bridge/test_relay_run.py"
EXACTLY_ONCE = "tests/bridge/test_exactly_once.py"
RAISED = "tests/shards/delivery/test_raised_qos.py"
RAISED_KERNEL = "tests/mqtt/kernels/test_raised_qos.py"

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
    # QoS 1 as QoS 2
    Planted(
        "whoever asks which broker this is is sent QoS 1 as QoS 2",
        "rumq/session/handshake/connect.py",
        "EXACTLY_ONCE in asked_of(connect)",
        "bool(asked_of(connect))",
        "tests/session/handshake/test_connect.py",
    ),
    Planted(
        "a message of QoS 1 that was sent as QoS 2 comes again as QoS 1",
        "rumq/shards/delivery/redelivery.py",
        'raised = None if state != WAITS_PUBREC else RAISED if raises_qos else b""',
        "raised = None",
        RAISED,
    ),
    Planted(
        "a message comes again with the QoS that its subscription was granted first",
        "rumq/shards/delivery/redelivery.py",
        "max(1, form.qos) if raises_qos else qos",
        "qos",
        RAISED,
    ),
    Planted(
        "the id of a message that cannot come again stays in use at the target",
        "rumq/shards/delivery/redelivery.py",
        "            deliveries.release(packet_id)\n",
        "            window.refuse(packet_id)\n",
        RAISED,
    ),
    Planted(
        "retained messages are not raised",
        "rumq/shards/delivery/retained_delivery.py",
        "raised = RAISED if shape.raises_qos else None",
        "raised = None",
        RAISED,
    ),
    Planted(
        "frames that are to be raised go out as they are stored",
        "rumq/mqtt/kernels/fanout.py",
        " or self.raised is not None)",
        ")",
        RAISED_KERNEL,
    ),
    Planted(
        "a raised message does not say so where its subscription was granted QoS 1",
        "rumq/mqtt/kernels/fanout.py",
        "        is_raised = raises and qos == 1\n",
        "        is_raised = raises and qos == 1 and source_qos == 1\n",
        RAISED_KERNEL,
    ),
    Planted(
        "a message that says it is of QoS 1 is stored with QoS 2",
        "rumq/mqtt/kernels/ingest.py",
        "row_flags = (row_flags & 0xFFFC) | 1",
        "pass",
        RAISED_KERNEL,
    ),
    Planted(
        "the property stays in what is stored, behind a topic alias",
        "rumq/mqtt/kernels/ingest.py",
        "    if first > second:\n",
        "    if first > second and first < 0:\n",
        RAISED_KERNEL,
    ),
    Planted(
        "the local broker is asked whatever the other one said",
        "rumq/bridge/bridge.py",
        "            self._asked[LOCAL] = connection.is_exactly_once\n",
        "            self._asked[LOCAL] = self._asked[REMOTE]\n",
        EXACTLY_ONCE,
    ),
    Planted(
        "ids are not released behind a broker that went back to an older version",
        "rumq/bridge/bridge.py",
        "            released.add(REMOTE)\n",
        "",
        EXACTLY_ONCE,
    ),
    Planted(
        "a bridge forgets from process to process that QoS 1 is carried as QoS 2",
        "rumq/bridge/pairing.py",
        'found.get("exactly_once", False)',
        "False",
        "tests/bridge/test_pairing.py",
    ),
    Planted(
        "messages go out while a bridge subscribes",
        "rumq/session/handshake/connect.py",
        "    if HOLD not in asked_of(connect):\n",
        "    if True:\n",
        "tests/shards/delivery/test_held.py",
    ),
    Planted(
        "retained messages that wait for a client go with its connection",
        "router/subscription_changes.py",
        "        for reader in subscriber.readers():\n            reader.sink = None\n",
        "        subscriber.pending_retained = NONE\n        for reader in subscriber.readers():\n"
        "            reader.sink = None\n",
        "tests/shards/delivery/test_held.py",
    ),
    Planted(
        "a retained message that came while a bridge waited goes out twice",
        "router/readers/subscriber.py",
        "            below = self.pending_retained[asked][1]\n",
        "            pass\n",
        "tests/shards/delivery/test_held.py",
    ),
    Planted(
        "the log does not say which messages of QoS 1 came as QoS 2",
        "rumq/mqtt/kernels/ingest.py",
        "                if not wire.own:  # a will has none",
        "                if not wire.own and row_flags & 2:  # a will has none",
        "tests/bridge/test_two_shards.py",
    ),
    Planted(
        "a message that was sent as QoS 2 comes again as QoS 1, seen from the other log",
        "rumq/shards/delivery/redelivery.py",
        "always_retain=is_retained, raised=raised)",
        "always_retain=is_retained)",
        "tests/bridge/test_two_shards.py",
    ),
]
