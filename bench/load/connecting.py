"""The worker's round of connections that come at a rate: TCP, CONNECT, CONNACK, in an open loop. MQTT 3.1.1, 3.1."""

import select
import socket
import time
from array import array

from bench.connections import CONNACK, Address, BenchFault, connect_packet, opened, ready
from bench.kernels.pace import Schedule
from bench.load.load import Load, Published, Round

GRACE_S = 5.0


class Connecting:
    """`load.rate` connections a second, each kept open. Times are from when a connection was due to its CONNACK."""

    def __init__(self, address: Address, load: Load, name: str, epoll: select.epoll) -> None:
        self.address, self.name, self.epoll = address, name, epoll
        self.schedule = Schedule(1, 10**9 // load.rate, False)
        self.connections: list[socket.socket] = []

    def run_round(self, now: Round) -> Published:
        """now.messages: how many connect. raises: BenchFault, OSError"""
        waiting: dict[int, tuple[socket.socket, int]] = {}
        took_ns, late_ns = array("Q"), array("Q")
        cpu_s, start_ns = time.process_time(), time.monotonic_ns()
        stop_ns = start_ns + int((now.seconds_max + GRACE_S) * 1e9)
        sent = 0
        while (sent < now.messages or waiting) and (now_ns := time.monotonic_ns()) < stop_ns:
            for k in range(sent, min(now.messages, self.schedule.due_count(now_ns - start_ns))):
                due_ns = start_ns + self.schedule.due_ns(k)
                late_ns.append(max(0, time.monotonic_ns() - due_ns))
                connection = opened(self.address)
                connection.sendall(connect_packet(f"{self.name}-c{len(self.connections)}"))
                self.connections.append(connection)
                self.epoll.register(connection, select.EPOLLIN)
                waiting[connection.fileno()] = connection, due_ns
                sent += 1
            wait_ns = start_ns + self.schedule.due_ns(sent) - time.monotonic_ns() if sent < now.messages else 10**7
            for descriptor, _ in ready(self.epoll, wait_ns):
                connection, due_ns = waiting.pop(descriptor)
                if (answer := connection.recv(4)) != CONNACK:
                    raise BenchFault(f"CONNACK was {answer.hex(' ')}")
                took_ns.append(time.monotonic_ns() - due_ns)
        return Published(
            started_ns=start_ns, ended_ns=time.monotonic_ns(), sent=sent, unacknowledged=len(waiting), disordered=0,
            late_ns_max=max(late_ns, default=0), cpu_s=time.process_time() - cpu_s, late_ns=late_ns.tobytes(),
            acknowledged_ns=took_ns.tobytes(),
        )  # fmt: skip
