"""rumqd and mosquitto for random sessions: the same limits, or none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import free_port
from tests.broker_process import Rumqd
from tests.conformance.peer import Address
from tests.mosquitto.mosquitto_process import MOSQUITTO, running

# What rumq does without being asked: it keeps messages of QoS 0 for those that are away, and any number of others.
CONF = """
user root
listener {port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
sys_interval 0
max_queued_messages 0
queue_qos0_messages true
"""


@contextmanager
def both(folder: Path, shards: int) -> Iterator[tuple[Address, Address]]:
    """The addresses of rumqd and of mosquitto."""
    assert MOSQUITTO is not None
    port = free_port()
    conf = folder / "mosquitto.conf"
    conf.write_text(CONF.format(port=port))
    ours = Rumqd(folder / "data", "--shards", str(shards), "--set", "sys.interval_seconds=0")
    with running([MOSQUITTO, "-c", str(conf)], port):
        ours.start()
        try:
            yield tuple(ours.address), ("127.0.0.1", port)
        finally:
            ours.stop()
