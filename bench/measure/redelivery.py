"""One run of a session that was away: messages wait for it, the broker is killed and started again, the client returns.

The rate is from the CONNACK of its return to the last message. Publishers and subscriber run in this process, one
after the other: only the broker has anything else to do."""

import select
import socket
import tempfile
import time
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec

from bench.connections import BenchFault, connect_packet, open_connections, opened, read_exactly
from bench.connections import subscribe as subscribe_to
from bench.load import publish
from bench.load import subscribe as hearing
from bench.load.load import Heard, Load, Published, Round
from bench.load.publisher import Publisher
from bench.measure.figures import Figures, cpu, memory
from bench.peers.peer import Broker
from bench.progress import Progress, create

MESSAGES = 100_000
PUBLISH_S, DELIVER_S = 60.0, 60.0
# A broker that saves its queues now and then, and not before it acknowledges, has done so by then.
SAVED_S = 3.0
SESSION_PRESENT = b"\x20\x02\x01\x00"
During = Callable[[], AbstractContextManager[None]]


def redelivery(load: Load, broker: Broker, during: During = nullcontext) -> tuple[Figures, Published, Heard]:
    """Returns the broker's figures, what was published and what was heard, as if it was sent at the CONNACK.

    raises: BenchFault, also where the session is gone"""
    if broker.again is None:
        raise BenchFault("it cannot be killed and started again")
    client_id = f"bench-{time.monotonic_ns()}"
    (connection,) = open_connections(broker.address, [client_id], lasting=True)
    subscribe_to(connection, load.topic_filter(0), load.qos)
    connection.close()
    with tempfile.NamedTemporaryFile(prefix="bench-progress-") as file:
        create(Path(file.name), load.publishers, (1, 1))
        progress = Progress(Path(file.name), load.publishers, (1, 1))
        now = Round(number=1, messages=MESSAGES // load.publishers, seconds_max=PUBLISH_S, lead=2**40)
        published = publish_all(load, broker, now, progress)
        time.sleep(SAVED_S)
        broker = broker.again()
        rss_before, cpu_before_s = memory(broker), cpu(broker)
        with during():
            connection, returned_ns = returned(broker, client_id)
            heard = hear_all(load, connection, now, progress)
    connection.close()
    delivered = max(1, heard.received - heard.late)
    figures = {
        "restart_s": broker.start_s,
        "rss_bytes": memory(broker),
        "rss_growth_bytes": memory(broker) - rss_before,
        "cpu_us_per_delivery": 1e6 * (cpu(broker) - cpu_before_s) / delivered,
    }
    published = msgspec.structs.replace(published, started_ns=returned_ns, ended_ns=returned_ns, cpu_s=0.0)
    return figures, published, heard


def publish_all(load: Load, broker: Broker, now: Round, progress: Progress) -> Published:
    names = [f"bench-publisher-{number}" for number in range(load.publishers)]
    connections = open_connections(broker.address, names)
    epoll = select.epoll()
    for connection in connections:
        connection.setblocking(False)
        epoll.register(connection, select.EPOLLIN)
    publishers = [Publisher(one, load, number) for number, one in enumerate(connections)]
    published = publish.run_round(publishers, epoll, load, now, progress, 0)
    for connection in connections:
        connection.close()
    epoll.close()
    if published.unacknowledged:
        raise BenchFault(f"{published.unacknowledged} messages were not acknowledged within {PUBLISH_S:.0f} s")
    return published


def returned(broker: Broker, client_id: str) -> tuple[socket.socket, int]:
    """The connection of the client that is back, and when its CONNACK came, in ns."""
    connection = opened(broker.address)
    connection.sendall(connect_packet(client_id, lasting=True))
    answer = read_exactly(connection, len(SESSION_PRESENT))
    if answer != SESSION_PRESENT:
        raise BenchFault(f"CONNACK was {answer.hex(' ')}: the session is gone")
    return connection, time.monotonic_ns()


def hear_all(load: Load, connection: socket.socket, now: Round, progress: Progress) -> Heard:
    connection.setblocking(False)
    subscriber = hearing.Subscriber(connection, load, 0, array("Q"))
    subscriber.begin(now.number)
    epoll = select.epoll()
    epoll.register(connection, select.EPOLLIN)
    limit = msgspec.structs.replace(now, seconds_max=DELIVER_S)
    heard = hearing.run_round([subscriber], epoll, load, limit, progress, 0)
    epoll.close()
    return heard
