"""What new topics cost those who publish to known ones: `python -m bench.new_topics`. On loopback, bounded in time.

Some sessions have as many filters as they may, all of which match one kind of topic; anonymous clients publish to new
topics of that kind. Beside them a publisher and a subscriber of another topic of the same partition measure how long
their messages take, before and during the flood; their process is a real-time one where that is allowed, or the
scheduler of a busy machine adds its tick of 4 ms to what the broker takes. First, in this process, what one new topic
costs the router."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import selectors
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe

from bench.connections import Address, allow_files, read_exactly
from bench.isolation.frames import connect, publish_packet, suback_bytes, subscribe_packet
from bench.peers.rumq import rumqd
from bench.process import cpu_s
from router.matching.groups import GroupTable
from router.readers.reader import GroupKey
from router.readers.subscription import Subscription

LEVELS = 31
FILTERS = 334  # of a session: 10,354 levels from a wildcard on, of which it gets `mqtt.wildcard_levels_max`
FILTERS_A_PACKET = 50
TOPICS_A_SECOND = 2  # of each publisher
INNOCENT_SECONDS = 0.01
START_SECONDS = 60.0


def costly(seed: int) -> list[str]:
    """Filters of one session: each matches every `new_topic`."""
    chance = random.Random(seed)
    return ["/".join(["+", *(chance.choice("+a") for _ in range(LEVELS - 1))]) for _ in range(FILTERS)]


def new_topic(name: str) -> str:
    return "/".join([name, *["a"] * (LEVELS - 1)])


def router_cost(sessions: int, topics: int = 50) -> tuple[float, float]:
    """(milliseconds of CPU, nodes visited) for one new topic, with filters of so many sessions: the median."""
    groups = GroupTable(1)
    for number in range(sessions):
        group = groups.private(GroupKey(frozenset(), shape=number))
        for each in costly(number)[: 10_000 // LEVELS]:
            groups.add(group, Subscription(each))
    spent, visits = [], []
    for number in range(topics):
        before, began = groups.filters.visits, time.process_time_ns()
        groups.match(new_topic(f"t{number}"))
        spent.append((time.process_time_ns() - began) / 1e6)
        visits.append(groups.filters.visits - before)
    return statistics.median(spent), statistics.median(visits)


class Crowd:
    """The sessions with many filters, and the publishers of new topics, in a process of their own."""

    def __init__(self, address: Address, sessions: int, publishers: int) -> None:
        self.address, self.sessions, self.publishers = address, sessions, publishers

    def run(self, pipe: Pipe) -> None:
        readers = [self.subscribed(number) for number in range(self.sessions)]
        writers = [connect(self.address, f"flood-{number}") for number in range(self.publishers)]
        for each in writers:
            each.setblocking(False)
        poller = selectors.DefaultSelector()
        for each in readers:
            each.setblocking(False)
            poller.register(each, selectors.EVENT_READ)
        pipe.send("ready")
        seconds = pipe.recv()
        until = time.monotonic() + seconds
        sent = received = 0
        step = 1 / (TOPICS_A_SECOND * self.publishers)
        due = time.monotonic()
        while time.monotonic() < until:
            for key, _ in poller.select(max(0.0, due - time.monotonic())):
                assert isinstance(key.fileobj, socket.socket)
                received += len(key.fileobj.recv(1 << 20))
            if time.monotonic() >= due:
                due += step
                try:
                    writers[sent % len(writers)].send(publish_packet(new_topic(f"t{sent}"), b"x"))
                except BlockingIOError:
                    pass  # the broker does not read it: it waits
                sent += 1
        pipe.send((sent, received))

    def subscribed(self, number: int) -> socket.socket:
        connection = connect(self.address, f"greedy-{number}")
        filters = costly(number)
        for first in range(0, len(filters), FILTERS_A_PACKET):
            some = filters[first : first + FILTERS_A_PACKET]
            connection.sendall(subscribe_packet(some))
            read_exactly(connection, suback_bytes(len(some)))
        return connection


def latencies(publisher: socket.socket, subscriber: socket.socket, seconds: float) -> list[float]:
    """Milliseconds from PUBLISH to its delivery, of a message each 10 ms, those in flight at the end included."""
    frame = publish_packet("innocent/topic", bytes(16))
    sent_at: list[float] = []
    found: list[float] = []
    until, due, heard = time.monotonic() + seconds, time.monotonic(), 0
    while time.monotonic() < until:
        subscriber.settimeout(max(0.0001, due - time.monotonic()))
        try:
            heard += len(subscriber.recv(1 << 16))
        except TimeoutError:
            pass
        now = time.monotonic()
        while len(found) < heard // len(frame):
            found.append(1e3 * (now - sent_at[len(found)]))
        if now >= due:
            publisher.sendall(frame)
            sent_at.append(time.monotonic())
            due += INNOCENT_SECONDS
    found += [1e3 * (until - at) for at in sent_at[len(found) :]]
    subscriber.settimeout(START_SECONDS)
    read_exactly(subscriber, len(sent_at) * len(frame) - heard)
    return sorted(found)


def shown(name: str, found: Sequence[float]) -> str:
    at = [found[min(len(found) - 1, int(len(found) * share))] for share in (0.5, 0.99, 1.0)]
    return f"{name:12} p50 {at[0]:8.2f} ms   p99 {at[1]:8.2f} ms   max {at[2]:8.2f} ms   ({len(found)} messages)"


def flood(address: Address, pid: int, sessions: int, publishers: int, seconds: float) -> None:
    subscriber, publisher = connect(address, "innocent-s"), connect(address, "innocent-p")
    subscriber.sendall(subscribe_packet(["innocent/topic"]))
    read_exactly(subscriber, suback_bytes(1))
    latencies(publisher, subscriber, 1.0)
    here, there = multiprocessing.Pipe()
    crowd = multiprocessing.Process(target=Crowd(address, sessions, publishers).run, args=(there,))
    crowd.start()
    here.recv()
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    before = cpu_s(pid)
    quiet = latencies(publisher, subscriber, seconds)
    print(shown("quiet", quiet), f"  broker {100 * (cpu_s(pid) - before) / seconds:.0f} % of a core", flush=True)
    here.send(seconds)
    before = cpu_s(pid)
    during = latencies(publisher, subscriber, seconds)
    sent, received = here.recv()
    print(shown("flood", during), f"  broker {100 * (cpu_s(pid) - before) / seconds:.0f} % of a core")
    after = latencies(publisher, subscriber, seconds / 2)
    print(shown("after", after))
    crowd.join(START_SECONDS)
    print(f"{sent} new topics sent, {received} bytes delivered to {sessions} sessions")
    p99 = [found[int(len(found) * 0.99)] for found in (quiet, during)]
    print(f"p99 during the flood / before: {p99[1] / p99[0]:.2f}")


def main(sessions: int, publishers: int, seconds: float) -> None:
    for number in (3, 10, sessions):
        cost, visits = router_cost(number)
        print(f"{number:3} sessions: {cost:8.2f} ms of CPU, {visits:8.0f} nodes for a new topic", flush=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    with tempfile.TemporaryDirectory() as folder:
        place = ["--port", str(address[1]), "--data", folder]
        broker = subprocess.Popen([*rumqd(), "run", *place, "--set", "shards.count=1"], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + START_SECONDS
            while True:
                try:
                    connect(address, "first").close()
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.05)
            flood(address, broker.pid, sessions, publishers, seconds)
        finally:
            broker.terminate()
            broker.wait(START_SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=30, help="with as many filters as they may have")
    parser.add_argument("--publishers", type=int, default=40, help="of two new topics a second each")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    allow_files()
    main(**vars(parser.parse_args()))
