"""Faults of one connection that its tests must notice: a line as it is, the same line wrong, and the test that fails
then."""

from tests.faults.planted import Planted

IDLE = "tests/session/protocol/test_idle.py"

PLANTED = [
    Planted(
        "who subscribes first is never attached",
        "rumq/session/protocol/connected.py",
        "            self.activate()\n            self.deliveries.start()\n",
        "            self.activate()\n",
        IDLE,
    ),
    Planted(
        "an idle client's first message waits in what all idle clients share",
        "rumq/session/protocol/connected.py",
        "                if not self.is_active:\n                    self.ensure_active()\n",
        "",
        IDLE,
    ),
    Planted(
        "a socket that is no object any more is closed too soon",
        "rumq/net/connection.py",
        "            self.extras.sock.detach()\n",
        "            self.extras.sock.close()\n",
        "tests/net/test_connection.py",
    ),
    Planted(
        "a descriptor counts for two connections once another has it",
        "rumq/net/sockets/connection_table.py",
        "        self._count += by_fd[fd] is None\n",
        "        self._count += 1\n",
        "tests/net/sockets/test_connection_table.py",
    ),
    Planted(
        "the router is told that a session ends which it has never heard of",
        "rumq/session/state/registry.py",
        "        if session.has_subscriber:\n            self._commands.put(End(",
        "        if session:\n            self._commands.put(End(",
        "tests/session/state/test_registry.py",
    ),
    Planted(
        "a relay of another node is known by its descriptor alone",
        "rumq/shards/moves/relayed_clients.py",
        "found.inode == os.fstat(connection.fd).st_ino",
        "connection.fd >= 0",
        "tests/shards/moves/test_relayed_clients.py",
    ),
    Planted(
        "who takes another's place on the wheel does not know its own",
        "rumq/session/state/deadlines.py",
        "            last.due_place = place\n",
        "",
        "tests/session/state/test_deadline_wheel.py",
    ),
    Planted(
        "what is due on the wheel stays there",
        "rumq/session/state/deadlines.py",
        "        for item in found:\n            self.cancel(item)\n",
        "",
        "tests/session/state/test_deadline_wheel.py",
    ),
    Planted(
        "an address that was written otherwise comes back changed",
        "rumq/net/kernels/addresses.py",
        "(digits and not part) or part > 6553",
        "part > 6553",
        "tests/net/kernels/test_addresses.py",
    ),
    Planted(
        "who is accepted blocks",
        "rumq/net/kernels/sockets.py",
        "    accepted.setblocking(False)\n",
        "",
        "tests/net/kernels/test_sockets.py",
    ),
    Planted(
        "who sends something is counted as one that is silent, too",
        "rumq/net/pending_logins.py",
        "            del holder.at(before)[connection]\n            holder.at(state)",
        "            holder.at(state)",
        "tests/net/test_pending_logins.py",
    ),
    Planted(
        "MQTT 3.1 is told of a session that was there",
        "rumq/session/handshake/connect.py",
        "ACCEPTED[present and connect.version > 3]",
        "ACCEPTED[present]",
        "tests/session/handshake/test_connect.py",
    ),
    Planted(
        "an event has the time and the level of another one",
        "rumq/events/event_ring.py",
        "stamp = self._stamps[number % self._events_max]",
        "stamp = self._stamps[(number + 1) % self._events_max]",
        "tests/gateway/broker/test_event_feed.py",
    ),
]
