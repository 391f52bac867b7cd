"""One data directory, many deaths: clients publish and subscribe while the broker is killed and started again.

Everything random comes from one seed, which is printed; at the end the ledger is held against what the broker says."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer
from tests.faults.kill.doomed import POINTS
from tests.faults.kill.ledger import Entry, Ledger
from tests.faults.kill.traffic import FINAL, RETAIN_EVERY, Publisher, Running, Subscriber

# Small segments and a small memory, so that rolling, sealing, indexing and cold reads happen all the time.
FLAGS = ["--set", "log.segment_bytes_max=65536", "--set", "log.hot_bytes_max=65536"]
LIFE_SECONDS_MAX = 0.6
POINT_PASSES_MAX = 60


class DoomedRumqd(Rumqd):
    """A broker that may be told where to die."""

    point, number = "never", 0

    def command(self) -> list[str]:
        plain = super().command()
        at = plain.index("rumq")
        return [*plain[:at], "tests.faults.kill.doomed", self.point, str(self.number), *plain[at + 1 :]]


class Episode:
    def __init__(self, data: Path, seed: int, *flags: str) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.ledger = Ledger()
        self.broker = DoomedRumqd(data, *FLAGS, *flags)
        self.publishers = [Publisher(f"p{n}", f"t/{n}", self.ledger) for n in range(2)]
        self.subscribers = [
            Subscriber("s1", 1, self.ledger, 3, len(self.publishers)),
            Subscriber("s2", 2, self.ledger, 0, len(self.publishers)),
            Subscriber("s3", 2, self.ledger, 7, len(self.publishers)),
        ]
        self.deaths: list[str] = []

    def run(self, kills: int) -> list[str]:
        """Kill it so often, then let everything come to an end; returns what is wrong."""
        try:
            self.broker.start()
            for subscriber in self.subscribers:
                subscriber.subscribe(self.broker.address)
            self.broker.kill()
            for _ in range(kills):
                self._live_and_die()
            return self.ledger.faults + self._end()
        finally:
            self.broker.end()

    def _live_and_die(self) -> None:
        by_point = self.random.random() < 0.5
        self.broker.point = self.random.choice(POINTS) if by_point else "never"
        self.broker.number = self.random.randint(1, POINT_PASSES_MAX)
        seconds = self.random.uniform(0.0, LIFE_SECONDS_MAX)
        self.deaths.append(f"{self.broker.point} {self.broker.number} or {seconds:.3f} s")
        if not self.broker.try_start():
            return  # it died before it was ready
        running, dead = Running(), threading.Event()
        for publisher in self.publishers:
            running.start(publisher.run, self.broker.address, lambda: not dead.is_set())
        for subscriber in self.subscribers:
            running.start(subscriber.run, self.broker.address)
        self.broker.wait_for_death(seconds)
        dead.set()
        self.broker.kill()
        running.join()

    def _end(self) -> list[str]:
        self.broker.point = "never"
        self.broker.start()
        running = Running()
        for publisher in self.publishers:
            running.start(publisher.run, self.broker.address, lambda: False)
        running.join()
        running = Running()
        for subscriber in self.subscribers:
            running.start(subscriber.run, self.broker.address)
        with Peer(self.broker.address, deadline_s=30) as peer:
            peer.connect("end")
            for publisher in self.publishers:
                peer.publish(publisher.topic, FINAL, qos=2)
            running.join()
            found = everything(peer, len(self.publishers))
            faults = self.ledger.check_log(found)
            faults += self._check_retained(peer, found)
        for subscriber in self.subscribers:
            faults += self.ledger.check_subscriber(subscriber.name, subscriber.qos)
        return faults

    def _check_retained(self, peer: Peer, found: list[bytes]) -> list[str]:
        """The last message with RETAIN of each topic, in the log's order, is the one that a new subscriber gets."""
        wanted = {}
        for payload in found:
            entry = Entry.of(payload)
            if entry.number % RETAIN_EVERY == 0:
                wanted[f"t/{entry.publisher[1:]}"] = payload
        peer.subscribe("t/+", qos=1)
        got = {message.topic: message.payload for message in peer.messages(len(wanted))}
        return [] if got == wanted else [f"retained are {got}, and should be {wanted}"]


def everything(peer: Peer, topics: int) -> list[bytes]:
    peer.subscribe("$log/earliest/t/#", qos=1)
    found: list[bytes] = []
    while topics:
        message = peer.message()
        if message.payload == FINAL:
            topics -= 1
        else:
            found.append(message.payload)
    peer.unsubscribe("$log/earliest/t/#")
    return found


def report(episode: Episode, faults: list[str]) -> str:
    told = "\n".join(faults[:20])
    return f"seed {episode.seed}, {len(faults)} faults:\n{told}\ndeaths: {episode.deaths}"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        one = Episode(Path(folder) / "data", int(sys.argv[1]))
        print(report(one, one.run(int(sys.argv[2]))))
