"""What must hold after a run, from the ledger, from a replay through each node, and from each node's files.

Every acknowledged message is in every copy at one lsn; a (partition, lsn) has one value for ever; order and number are
those of `Ledger`. Reads files with `rumqd log read`, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conformance.peer import Address, Peer
from tests.conformance.wire import Packet, Prop
from tests.faults.kill.ledger import Entry, Ledger
from tests.faults.kill.traffic import FINAL

FORMAT = "%k %n %t %p"
READ_SECONDS_MAX = 120.0


class Place(NamedTuple):
    partition: str
    lsn: int


class Found(NamedTuple):
    topic: str
    payload: bytes


Copy = dict[Place, Found]


def copy_of(data: Path) -> Copy:
    """What the files of a node hold of the workload's topics."""
    command = [
        sys.executable,
        "-m",
        "rumq",
        "log",
        "read",
        "--data",
        str(data),
        "--topic",
        "t/#",
        "-F",
        FORMAT,
    ]
    done = subprocess.run(command, capture_output=True, timeout=READ_SECONDS_MAX, check=False)
    copy = {}
    for line in done.stdout.splitlines():
        partition, lsn, topic, payload = line.split(b" ", 3)
        copy[Place(partition.decode(), int(lsn))] = Found(topic.decode(), payload)
    if done.returncode:
        raise AssertionError(f"rumqd log read {data}: {done.stderr.decode()[-500:]}")
    return copy


def settled_copies(datas: Mapping[str, Path], seconds: float) -> dict[str, Copy]:
    """The copies of all nodes, once they are equal or the time is over."""
    until = time.monotonic() + seconds
    while True:
        copies = {name: copy_of(data) for name, data in datas.items()}
        values = list(copies.values())
        if all(each == values[0] for each in values) or time.monotonic() > until:
            return copies
        time.sleep(0.5)


def check_copies(copies: Mapping[str, Copy], ledger: Ledger) -> list[str]:
    """Acknowledged messages are in every copy, at the same place; no place has two values."""
    faults = []
    places: dict[Place, dict[Found, list[str]]] = {}
    for name, copy in copies.items():
        for place, found in copy.items():
            places.setdefault(place, {}).setdefault(found, []).append(name)
    for place, values in sorted(places.items()):
        if len(values) > 1:
            faults.append(f"{place.partition} lsn {place.lsn} differs: {values}")
        elif len(names := next(iter(values.values()))) < len(copies):
            faults.append(f"{place.partition} lsn {place.lsn} is only at {' '.join(names)}: {next(iter(values))}")
    for name, copy in copies.items():
        there = {found.payload for found in copy.values()}
        faults += [
            f"acknowledged and not in the files of {name}: {e}" for e in ledger.acknowledged if e.payload not in there
        ]
    return faults


def replay(address: Address, topics: int, seconds: float) -> list[tuple[Found, int]]:
    """Everything of the workload's topics through a node, with the lsn that it tells, up to each last one."""
    found: list[tuple[Found, int]] = []
    with Peer(address, deadline_s=seconds) as peer:
        peer.connect("")
        peer.subscribe("$log/earliest/t/#", qos=1)
        while topics:
            message = peer.message()
            if message.payload == FINAL:
                topics -= 1
            else:
                found.append((Found(message.topic, message.payload), lsn_of(message)))
    return found


def lsn_of(message: Packet) -> int:
    pairs = [pair for pair in message.all(Prop.USER_PROPERTY) if isinstance(pair, tuple)]
    return next(int(value) for key, value in pairs if key == "rumq-lsn")


def check_replays(
    replays: Mapping[str, Sequence[tuple[Found, int]]], copies: Mapping[str, Copy], ledger: Ledger
) -> list[str]:
    """Each node's replay is complete, in order, and has the lsns of the files."""
    faults = []
    lsns = {(found, place.lsn) for copy in copies.values() for place, found in copy.items()}
    for name, seen in replays.items():
        faults += [
            f"replay through {name}: {fault}" for fault in ledger.check_log([found.payload for found, _ in seen])
        ]
        faults += [
            f"replay through {name}: {f} at lsn {lsn}, the files have it elsewhere"
            for f, lsn in seen
            if (f, lsn) not in lsns
        ]
    return faults


def acknowledged_nowhere(copies: Mapping[str, Copy], ledger: Ledger) -> list[Entry]:
    """The loss: acknowledged, and on no node's disk."""
    there = {found.payload for copy in copies.values() for found in copy.values()}
    return sorted(entry for entry in ledger.acknowledged if entry.payload not in there)
