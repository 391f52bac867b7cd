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
        "            self._sock.detach()\n            self._sock = None\n",
        "            self._sock.close()\n            self._sock = None\n",
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
]
