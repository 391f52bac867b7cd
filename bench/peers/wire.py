"""Not a broker: copies bytes from publishers to subscribers unseen, to show the bench's own limit.

It answers CONNECT and SUBSCRIBE and knows from a client's id ("...-p3", "...-s3") who it is. With no
subscriber a publisher's bytes are thrown away. QoS 0 only: nobody here would acknowledge. One process, one
thread; a subscriber that does not read holds everyone up.
"""

import argparse
import select
import socket
import sys
from pathlib import Path

from bench.connections import BenchFault, allow_files, read_exactly
from bench.load.load import Load

COPY_BYTES = 256 * 1024


class Wire:
    name = "wire"

    def why_not(self, load: Load) -> str:
        return "copies QoS 0 only" if load.qos else ""

    def durability(self, load: Load) -> str:
        return "none"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        return [sys.executable, "-m", "bench.peers.wire", "--port", str(port), "--spread", load.spread]

    def version_command(self) -> list[str]:
        return [sys.executable, "--version"]


class Copier:
    def __init__(self, listener: socket.socket, spread: str) -> None:
        self.spread = spread
        self.listener = listener
        self.epoll = select.epoll()
        self.epoll.register(self.listener, select.EPOLLIN)
        self.sources: dict[int, tuple[socket.socket, int]] = {}
        self.sinks: dict[int, socket.socket] = {}
        self.buffer = memoryview(bytearray(COPY_BYTES))

    def run(self) -> None:
        while True:
            for descriptor, _ in self.epoll.poll():
                if descriptor == self.listener.fileno():
                    self.welcome(self.listener.accept()[0])
                else:
                    self.copy(descriptor)

    def welcome(self, connection: socket.socket) -> None:
        """Read CONNECT; a subscriber's SUBSCRIBE is awaited here too, as the bench sends it in any case."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client_id = read_packet(connection)[14:].decode()
        connection.sendall(b"\x20\x02\x00\x00")
        role, number = client_id.rpartition("-")[2][:1], client_id.rpartition("-")[2][1:]
        if role in "ps" and number.isdecimal():
            # A subscriber is registered too: its SUBSCRIBE arrives there.
            self.sources[connection.fileno()] = (connection, -1 if role == "s" else int(number))
            self.epoll.register(connection, select.EPOLLIN)
            if role == "s":
                self.sinks[int(number)] = connection

    def copy(self, descriptor: int) -> None:
        connection, number = self.sources[descriptor]
        try:
            if number < 0:
                read_packet(connection)
                connection.sendall(b"\x90\x03\x00\x01\x00")
                return
            got = connection.recv_into(self.buffer)
            self.pass_on(self.buffer[:got], number)
        except (OSError, KeyError, BenchFault):
            got = 0
        if not got:
            self.epoll.unregister(connection)
            del self.sources[descriptor]
            self.sinks = {number: sink for number, sink in self.sinks.items() if sink is not connection}
            connection.close()

    def pass_on(self, data: memoryview, publisher: int) -> None:
        for sink in self.sinks.values() if self.spread == "all" else [self.sinks[publisher]]:
            sink.sendall(data)


def read_packet(connection: socket.socket) -> bytes:
    """The body of the next packet, whose length fits one byte."""
    return read_exactly(connection, read_exactly(connection, 2)[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers.wire", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--spread", choices=["pairs", "all"], default="all")
    args = parser.parse_args()
    allow_files()
    Copier(socket.create_server(("127.0.0.1", args.port), backlog=1024), args.spread).run()


if __name__ == "__main__":
    main()
