"""What a neighbour's process does, by name: `prepare` before the others begin, `misbehave` for its time.

Each keeps its own use of the CPU small where it can: frames are built once, what comes is thrown away unread.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from bench.connections import Address, BenchFault, read_exactly
from bench.isolation.frames import connect, publish_packet, suback_bytes, subscribe_packet, unsubscribe_packet
from bench.isolation.neighbours import kafka_port

Figures = dict[str, float]
Options = Mapping[str, float]
SINK_BYTES = 1 << 20
BATCH_BYTES = 1 << 18  # that are sent at once to fill a log


class Act(Protocol):
    def __init__(self, address: Address, options: Options) -> None: ...

    def prepare(self) -> None: ...

    def misbehave(self, until: float) -> Figures:
        """Until the monotonic clock says `until`; what it got done, in figures."""


class Spins:
    """Keeps a core busy and talks to nobody: what the machine, and not the broker, does to the others."""

    def __init__(self, address: Address, options: Options) -> None:
        pass

    def prepare(self) -> None:
        pass

    def misbehave(self, until: float) -> Figures:
        while time.monotonic() < until:
            pass
        return {}


class StopsReading:
    """Subscribes to a busy topic, which somebody else reads all the time, and takes nothing of it, or a little.

    bytes_per_s: what it takes; payload_bytes, messages_per_s: of the busy topic
    """

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.options = address, options

    def prepare(self) -> None:
        reader = connect(self.address, "busy-reader")
        subscribe(reader, ["busy/topic"])
        reader.settimeout(None)
        publisher = connect(self.address, "busy-publisher")
        publisher.settimeout(None)
        for work in (drain, self.publish):
            threading.Thread(target=work, args=(reader if work is drain else publisher,), daemon=True).start()

    def publish(self, connection: socket.socket) -> None:
        frame = publish_packet("busy/topic", bytes(int(self.options["payload_bytes"])))
        due, step = time.monotonic(), 1 / self.options["messages_per_s"]
        while True:
            connection.sendall(frame)
            due += step
            time.sleep(max(0.0, due - time.monotonic()))

    def misbehave(self, until: float) -> Figures:
        stuck = connect(self.address, "stuck", receive_bytes=1 << 16)
        subscribe(stuck, ["busy/topic"])
        taken = 0
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
            if self.options.get("bytes_per_s"):
                taken += len(stuck.recv(int(self.options["bytes_per_s"])))
        stuck.close()
        return {"bytes_taken": taken}


class Floods:
    """Publishes as fast as its socket takes, to a topic that nobody hears.

    qos: 0 or 1; window: messages of QoS 1 in flight at most; payload_bytes
    """

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.options, self.qos = address, options, int(options["qos"])

    def prepare(self) -> None:
        count = int(self.options["window"]) // 2
        payload = bytes(int(self.options["payload_bytes"]))
        self.halves = [
            b"".join(publish_packet("flood/topic", payload, self.qos, 1 + at + half * count) for at in range(count))
            for half in (0, 1)
        ]
        self.count = count
        self.connection = connect(self.address, "flooder")

    def misbehave(self, until: float) -> Figures:
        sent, waited = 0, 0
        while time.monotonic() < until:
            self.connection.sendall(self.halves[sent & 1])
            sent += 1
            # Of QoS 1 one half of the window is on its way while the other one is acknowledged.
            if self.qos and sent - waited > 1:
                read_exactly(self.connection, 4 * self.count)
                waited += 1
        self.connection.close()
        return {"messages": sent * self.count, "bytes": sent * len(self.halves[0])}


class Subscribes:
    """Connects, asks for many filters, and leaves; again and again.

    filters: of one connection; in_packet: of one SUBSCRIBE
    """

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.filters, self.in_packet = (
            address,
            int(options["filters"]),
            int(options["in_packet"]),
        )

    def prepare(self) -> None:
        filters = [f"many/{number}/+/state" for number in range(self.filters)]
        pieces = [filters[at : at + self.in_packet] for at in range(0, self.filters, self.in_packet)]
        self.asked = b"".join(subscribe_packet(piece) for piece in pieces)
        self.answer_bytes = sum(suback_bytes(len(piece)) for piece in pieces)

    def misbehave(self, until: float) -> Figures:
        times = 0
        while time.monotonic() < until:
            connection = connect(self.address, "collector")
            connection.sendall(self.asked)
            read_exactly(connection, self.answer_bytes)
            connection.sendall(b"\xe0\x00")
            connection.close()
            times += 1
        return {"times": times}


def write_log(address: Address, log_bytes: float, payload: bytes) -> None:
    """Records of old/0 to old/63, that are in the log when it returns."""
    batch = b"".join(publish_packet(f"old/{number}", payload) for number in range(64))
    batch *= max(1, BATCH_BYTES // len(batch))
    connection = connect(address, "writer")
    for _ in range(int(log_bytes) // len(batch)):
        connection.sendall(batch)
    # Acknowledged only once it is on the disk, and everything before it.
    connection.sendall(publish_packet("old/0", b"last", 1))
    connection.settimeout(300.0)
    read_exactly(connection, 4)
    connection.close()


class Replays:
    """Has the broker read its log from the beginning and send all of it, again and again.

    log_bytes: how much is written before; payload_bytes: of each message
    """

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.options = address, options

    def prepare(self) -> None:
        write_log(self.address, self.options["log_bytes"], bytes(int(self.options["payload_bytes"])))

    def misbehave(self, until: float) -> Figures:
        taken, times, sink = 0, 0, bytearray(SINK_BYTES)
        while time.monotonic() < until:
            connection = connect(self.address, f"replay-{times}")
            connection.settimeout(1.0)
            connection.sendall(subscribe_packet(["$log/earliest/old/#"]))
            once = 0
            with contextlib.suppress(TimeoutError):
                while once < self.options["log_bytes"] and time.monotonic() < until:
                    once += connection.recv_into(sink)
            connection.close()
            taken, times = taken + once, times + 1
        return {"bytes": taken, "times": times}


class ReadsKafka:
    """Kafka consumers that read the log from its beginning, each all of it, again and again.

    log_bytes: how much is written before; payload_bytes: of each message; consumers"""

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.options = address, options

    def prepare(self) -> None:
        from bench.kafka.reader import KafkaReader  # the Kafka server needs an extra

        write_log(self.address, self.options["log_bytes"], bytes(int(self.options["payload_bytes"])))
        self.readers = [KafkaReader(kafka_port(self.address[1])) for _ in range(int(self.options["consumers"]))]
        self.end = self.readers[0].end("main", 0)

    def misbehave(self, until: float) -> Figures:
        records = [0] * len(self.readers)

        def read(number: int) -> None:
            at = 0
            while time.monotonic() < until:
                _, following = self.readers[number].fetch("main", 0, at)
                records[number] += following - at
                at = following if following < self.end else 0

        threads = [threading.Thread(target=read, args=(number,)) for number in range(len(self.readers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"records": sum(records), "in_log": self.end}


class Storms:
    """Several clients that subscribe and unsubscribe wildcards without end, with many retained messages to get.

    retained: topics; clients; subscribes_per_s: of all clients
    """

    FILTERS = ("#", "+/+/#", "kept/#", "+/+/+", "kept/+/+", "+/#")

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.options = address, options

    def prepare(self) -> None:
        retained = int(self.options["retained"])
        connection = connect(self.address, "keeper")
        for start in range(0, retained, 1000):
            connection.sendall(
                b"".join(
                    publish_packet(f"kept/{start}/{number}", b"some state here", retain=True)
                    for number in range(min(1000, retained - start))
                )
            )
        connection.sendall(publish_packet("kept/0/0", b"last", 1, retain=True))
        read_exactly(connection, 4)
        connection.close()
        clients = int(self.options["clients"])
        self.clients = [connect(self.address, f"storm-{number}") for number in range(clients)]
        self.taken = [0] * clients

    def misbehave(self, until: float) -> Figures:
        drains = []
        for number, client in enumerate(self.clients):
            client.settimeout(None)
            drains.append(threading.Thread(target=self.drain, args=(number, client), daemon=True))
            drains[-1].start()
        half = len(self.clients) / self.options["subscribes_per_s"] / 2
        times = 0
        while time.monotonic() < until:
            asked = self.FILTERS[times % len(self.FILTERS)]
            for client in self.clients:
                client.sendall(subscribe_packet([asked]))
            time.sleep(half)
            for client in self.clients:
                client.sendall(unsubscribe_packet([asked]))
            time.sleep(half)
            times += 1
        for client in self.clients:
            client.shutdown(socket.SHUT_RDWR)
        return {"subscribes": times * len(self.clients), "bytes": sum(self.taken)}

    def drain(self, number: int, connection: socket.socket) -> None:
        sink = bytearray(SINK_BYTES)
        with contextlib.suppress(OSError):
            while taken := connection.recv_into(sink):
                self.taken[number] += taken


class Connects:
    """Connects and leaves at once, so many times a second. Open loop, but it does not run away: in_flight at most."""

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.rate = address, options["connects_per_s"]
        self.accepted = 0

    def prepare(self) -> None:
        pass

    def misbehave(self, until: float) -> Figures:
        due, step, tried = time.monotonic(), 1 / self.rate, 0
        while (now := time.monotonic()) < until:
            if due > now:
                time.sleep(due - now)
            connection = connect(self.address, f"brief-{tried % 1000}")
            connection.sendall(b"\xe0\x00")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.close()
            tried, due = tried + 1, max(due + step, now - 0.1)
        return {"connects": tried}


class WaitsForItsDisk:
    """Publishes to a topic whose stream's disk is slow, as the bench's own clock has it: QoS 1, a few a second."""

    def __init__(self, address: Address, options: Options) -> None:
        self.address, self.options = address, options

    def prepare(self) -> None:
        self.connection = connect(self.address, "patient")

    def misbehave(self, until: float) -> Figures:
        step, sent = 1 / self.options["messages_per_s"], 0
        while time.monotonic() < until:
            self.connection.sendall(publish_packet("slow/topic", b"wait", 1, 1 + sent % 60_000))
            sent += 1
            time.sleep(step)
        self.connection.close()
        return {"messages": sent}


class Waits:
    """Does nothing: the bench itself does the harm."""

    def __init__(self, address: Address, options: Options) -> None:
        pass

    def prepare(self) -> None:
        pass

    def misbehave(self, until: float) -> Figures:
        time.sleep(max(0.0, until - time.monotonic()))
        return {}


ACTS: dict[str, type[Act]] = {
    "spins": Spins,
    "stops reading": StopsReading,
    "floods": Floods,
    "subscribes": Subscribes,
    "replays": Replays,
    "reads Kafka": ReadsKafka,
    "storms": Storms,
    "connects": Connects,
    "waits for its disk": WaitsForItsDisk,
    "waits": Waits,
}


def subscribe(connection: socket.socket, filters: list[str]) -> None:
    connection.sendall(subscribe_packet(filters))
    answer = read_exactly(connection, suback_bytes(len(filters)))
    if 0x80 in answer[4:]:
        raise BenchFault(f"a neighbour may not subscribe to {filters[0]}")


def drain(connection: socket.socket) -> None:
    sink = bytearray(SINK_BYTES)
    with contextlib.suppress(OSError):
        while connection.recv_into(sink):
            pass
