"""The worker's round of connections that only ping: PINGREQ from each in turn, in an open loop. MQTT 3.1.1, 3.12."""

import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Sequence

from bench.connections import BenchFault, ready
from bench.kernels.pace import Schedule
from bench.load.load import Load, Published, Round

PING, ANSWER = b"\xc0\x00", b"\xd0\x00"
# Not longer than this after the last one: what is unanswered then stays so.
GRACE_S = 5.0
RECEIVE_BYTES = 1024


class Pinging:
    """Connection `k mod n` pings at its time, `load.rate` of all connections a second."""

    def __init__(self, connections: Sequence[socket.socket], load: Load, epoll: select.epoll) -> None:
        self.connections, self.epoll = connections, epoll
        self.by_descriptor = {connection.fileno(): connection for connection in connections}
        count = len(connections)
        self.schedule = Schedule(count, 10**9 * count // load.rate, load.phase == "burst")

    def run_round(self, now: Round) -> Published:
        """now.messages: pings of all together. raises: BenchFault"""
        count = len(self.connections)
        due_at: dict[int, deque[int]] = {descriptor: deque() for descriptor in self.by_descriptor}
        waiting = 0
        took_ns, late_ns = array("Q"), array("Q")
        cpu_s, start_ns = time.process_time(), time.monotonic_ns()
        stop_ns = start_ns + int((now.seconds_max + GRACE_S) * 1e9)
        sent = 0
        while (sent < now.messages or waiting) and (now_ns := time.monotonic_ns()) < stop_ns:
            due = min(now.messages, self.schedule.due_count(now_ns - start_ns))
            for k in range(sent, due):
                connection = self.connections[k % count]
                late_ns.append(max(0, time.monotonic_ns() - start_ns - self.schedule.due_ns(k)))
                connection.send(PING)
                due_at[connection.fileno()].append(start_ns + self.schedule.due_ns(k))
                waiting += 1
            sent = max(sent, due)
            wait_ns = start_ns + self.schedule.due_ns(sent) - time.monotonic_ns() if sent < now.messages else 10**7
            for descriptor, _ in ready(self.epoll, wait_ns):
                answers, pinged = self.by_descriptor[descriptor].recv(RECEIVE_BYTES), due_at[descriptor]
                count_here = len(answers) // len(ANSWER)
                if not count_here or answers != ANSWER * count_here or count_here > len(pinged):
                    raise BenchFault(f"PINGREQ was answered by {answers.hex(' ') or 'the end of the connection'}")
                now_ns = time.monotonic_ns()
                took_ns.extend(now_ns - pinged.popleft() for _ in range(count_here))
                waiting -= count_here
        return Published(
            started_ns=start_ns, ended_ns=time.monotonic_ns(), sent=sent, unacknowledged=waiting, disordered=0,
            late_ns_max=max(late_ns, default=0), cpu_s=time.process_time() - cpu_s, late_ns=late_ns.tobytes(),
            acknowledged_ns=took_ns.tobytes(),
        )  # fmt: skip
