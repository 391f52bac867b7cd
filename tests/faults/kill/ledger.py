"""What was published and what was acknowledged, kept by who is not killed; and what must follow from it.

Each publish is noted before it is sent, each acknowledgement after it came. Knows no broker."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple


class Entry(NamedTuple):
    """One message: the publisher's name and the number it gave."""

    publisher: str
    number: int

    @property
    def payload(self) -> bytes:
        return f"{self.publisher}:{self.number}".encode()

    @classmethod
    def of(cls, payload: bytes) -> Entry:
        publisher, _, number = payload.decode().partition(":")
        return cls(publisher, int(number))


@dataclass
class Ledger:
    """qos: of everything that was published. resent: published again, as its acknowledgement had not come."""

    qos: dict[Entry, int] = field(default_factory=dict)
    resent: set[Entry] = field(default_factory=set)
    acknowledged: set[Entry] = field(default_factory=set)
    got: dict[str, list[tuple[Entry, bool]]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def publishes(self, entry: Entry, qos: int) -> None:
        with self.lock:
            if entry in self.qos:
                self.resent.add(entry)
            self.qos[entry] = qos

    def acknowledges(self, entry: Entry) -> None:
        with self.lock:
            self.acknowledged.add(entry)

    def receives(self, subscriber: str, payload: bytes, dup: bool) -> None:
        with self.lock:
            self.got[subscriber].append((Entry.of(payload), dup))

    # What must be

    def check_log(self, found: list[bytes]) -> list[str]:
        """I1, I2 and I3 of what a replay of everything brings."""
        entries = [Entry.of(payload) for payload in found]
        counts = Counter(entries)
        faults = [f"acknowledged and not in the log: {e}" for e in self.acknowledged if not counts[e]]
        faults += [f"in the log and never published: {e}" for e in counts if e not in self.qos]
        for entry, count in counts.items():
            if count > 1 and self.qos.get(entry) == 2:
                faults.append(f"of QoS 2 and {count} times in the log: {entry}")
            elif count > 1 and entry not in self.resent:
                faults.append(f"published once and {count} times in the log: {entry}")
        return faults + out_of_order("the log", entries, self.qos)

    def check_subscriber(self, name: str, qos: int) -> list[str]:
        """I1 to I3 of what one persistent session got, by the lower of its QoS and the message's."""
        entries = [entry for entry, _ in self.got[name]]
        counts = Counter(entries)
        faults = [f"{name} never got what was acknowledged: {e}" for e in self.acknowledged if not counts[e]]
        seen: Counter[Entry] = Counter()
        for entry, dup in self.got[name]:
            seen[entry] += 1
            if seen[entry] == 1:
                continue
            if min(qos, self.qos[entry]) == 2:
                faults.append(f"{name} got a message of QoS 2 again: {entry}")
            elif not dup and entry not in self.resent:
                faults.append(f"{name} got a message again without DUP: {entry}")
        return faults + out_of_order(name, entries, self.qos)


def out_of_order(where: str, entries: list[Entry], qos: dict[Entry, int]) -> list[str]:
    """First occurrences of a publisher's messages of one QoS must come in the order of their numbers."""
    faults = []
    last: dict[tuple[str, int], int] = {}
    for entry in dict.fromkeys(entries):
        key = entry.publisher, qos.get(entry, 0)
        if entry.number < last.get(key, -1):
            faults.append(f"{where}: {entry} came behind {last[key]}")
        last[key] = max(entry.number, last.get(key, -1))
    return faults
