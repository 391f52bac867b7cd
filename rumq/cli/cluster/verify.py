"""`rumqd cluster verify`: whether the copies of each shard are equal, segment by segment, up to their committed marks.

Every node that has a copy reads it and tells digests; here they are compared. What differs is looked at again, for a
copy that is being repaired differs for a moment. docs/guides/cluster.md"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import trio

from commitlog.read.copy_digest import SegmentDigest
from rumq.admin.node_answer import DIRECTORY, SOCKET_NAME, NodeAnswer
from rumq.admin.socket.admin_client import ask_socket
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import COPY
from rumq.cluster.node.copy_inquiries import CopyAnswer, CopyQuestion
from rumq.errors import RumqError

SECONDS_MAX = 15.0  # of an answer
LOOKS, LOOK_SECONDS = 5, 1.0  # at a copy that differs, is behind or does not answer, before it is told

UNKNOWN = "unknown field `records`"  # in the answer of an earlier version

Ask = Callable[[str, int, CopyQuestion], CopyAnswer]
"""Asks a node (by its id) about its copy of a shard. raises: NoCopy"""


class NoCopy(RumqError):
    """A node does not tell of its copy."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why


class Verdict(NamedTuple):
    """Of one copy of a partition. state: "equal", "different", "behind" or "away"; words: how far, or what is wrong"""

    shard: int
    partition: str
    node: str
    state: str
    words: str
    end_lsn: int


class Verification:
    """Of all shards of a view."""

    def __init__(self, view: View, ask: Ask, sleep: Callable[[float], None]) -> None:
        self._view, self._ask, self._sleep = view, ask, sleep
        self._by_records = True  # False once a node of an earlier version knows only digests of bytes

    def run(self) -> Iterator[Verdict]:
        """A verdict on each copy of each partition, as they come."""
        for shard, each in enumerate(self._view.shards):
            nodes = list(dict.fromkeys([*each.record.members]))
            if nodes:
                yield from self._shard(shard, nodes, each.record.leader)

    def _shard(self, shard: int, nodes: Sequence[str], leader: str) -> Iterator[Verdict]:
        ends: dict[str, dict[str, tuple[int, int]]] = {}
        away: dict[str, str] = {}
        for node in nodes:
            try:
                ends[node] = self._patient(node, shard, CopyQuestion()).ends
            except NoCopy as fault:
                away[node] = fault.why
        partitions = sorted({key for found in ends.values() for key in found})
        for partition in partitions or [""]:
            for node, why in away.items():
                yield Verdict(shard, partition, node, "away", why, 0)
            if len(ends) > 1:
                yield from self._partition(shard, partition, list(ends), leader)
            else:
                for node in ends:
                    end = ends[node][partition][1]
                    yield Verdict(shard, partition, node, "equal", "the only copy that could be read", end)

    def _partition(self, shard: int, partition: str, nodes: list[str], leader: str) -> Iterator[Verdict]:
        """Of those that answer. The leader's copy is what the others are compared with, if it is among them."""
        nodes = sorted(nodes, key=lambda node: node != leader)
        wanted = self._ends(shard, partition, nodes)
        mark = max(end for _, end in wanted.values())
        for _ in range(LOOKS):  # what is committed at one is known to all a moment later
            late = [node for node in nodes if wanted[node][1] < mark]
            if not late:
                break
            self._sleep(LOOK_SECONDS)
            wanted.update(self._ends(shard, partition, late))
        behind = {node: wanted[node][1] for node in nodes if wanted[node][1] < mark}
        base = nodes[0]
        for node in nodes[1:]:
            start = max(wanted[base][0], wanted[node][0])
            end = min(mark, wanted[base][1], wanted[node][1])
            wrong = self._maybe_difference(shard, partition, base, node, start, end)
            if wrong is not None:
                yield Verdict(shard, partition, node, "different", wrong, end)
            elif node in behind:
                lacks = f"ends at {behind[node]}, and {mark} is committed"
                yield Verdict(shard, partition, node, "behind", lacks, behind[node])
            else:
                yield Verdict(shard, partition, node, "equal", f"{start} to {end}, as at {name_of(base)}", end)
        state = "behind" if base in behind else "equal"
        yield Verdict(shard, partition, base, state, "what the others are compared with", wanted[base][1])

    def _ends(self, shard: int, partition: str, nodes: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {node: self._patient(node, shard, CopyQuestion()).ends.get(partition, (0, 0)) for node in nodes}

    def _maybe_difference(self, shard: int, partition: str, base: str, node: str, start: int, end: int) -> str | None:
        """What differs, after several looks; None: nothing."""
        while start < end:
            why: str | None = None
            for look in range(LOOKS):
                if look:
                    self._sleep(LOOK_SECONDS)
                    firsts = self._ends(shard, partition, [base, node]).values()  # retention may have gone on
                    start = max(start, *(first for first, _ in firsts))
                ours, theirs = self._digests(shard, partition, (base, node), start, end)
                why = first_difference(ours.segments, theirs.segments, base, node)
                if why is None and ours.next_lsn != theirs.next_lsn:
                    why = f"{name_of(base)} goes on at lsn {ours.next_lsn}, {name_of(node)} at {theirs.next_lsn}"
                if why is None:
                    start = max(ours.next_lsn, start + 1)
                    break
            if why is not None:
                return why
        return None

    def _digests(
        self, shard: int, partition: str, nodes: tuple[str, str], start: int, end: int
    ) -> tuple[CopyAnswer, CopyAnswer]:
        """raises: NoCopy"""
        if self._by_records:
            question = CopyQuestion(partition, start, end, records=True)
            try:
                return self._patient(nodes[0], shard, question), self._patient(nodes[1], shard, question)
            except NoCopy as fault:
                if UNKNOWN not in fault.why:
                    raise
                self._by_records = False
        question = CopyQuestion(partition, start, end)
        return self._patient(nodes[0], shard, question), self._patient(nodes[1], shard, question)

    def _patient(self, node: str, shard: int, question: CopyQuestion) -> CopyAnswer:
        """raises: NoCopy"""
        for look in range(LOOKS):
            if look:
                self._sleep(LOOK_SECONDS)
            try:
                return self._ask(node, shard, question)
            except NoCopy as fault:
                if look == LOOKS - 1 or UNKNOWN in fault.why:
                    raise
        raise AssertionError


def first_difference(
    ours: Sequence[SegmentDigest], theirs: Sequence[SegmentDigest], base: str, node: str
) -> str | None:
    for our, their in zip(ours, theirs, strict=False):
        if our != their:
            if our.name != their.name:
                return f"{our.base_lsn} is in {our.name} at {name_of(base)}, in {their.name} here"
            spans = (
                ""
                if our[1:3] == their[1:3]
                else f" ({our.base_lsn} to {our.end_lsn}, here {their.base_lsn} to {their.end_lsn})"
            )
            return f"{our.name} has other records than at {name_of(base)}{spans}"
    if len(ours) != len(theirs):
        more = max(ours, theirs, key=len)[min(len(ours), len(theirs))]
        return f"{more.name} is only at {name_of(base if len(ours) > len(theirs) else node)}"
    return None


def name_of(node: str) -> str:
    return node.partition("#")[0]


def asker(data: str) -> Ask:
    """Asks by way of the node of a data directory on this machine."""

    def ask(node: str, shard: int, question: CopyQuestion) -> CopyAnswer:
        line = msgspec.json.encode({"ask": COPY, "node": node, "shard": shard, "question": question})
        try:
            got = trio.run(ask_socket, f"{data}/{DIRECTORY}", SOCKET_NAME, line + b"\n", SECONDS_MAX)
            answer = msgspec.json.decode(got, type=NodeAnswer)
        except (OSError, msgspec.MsgspecError) as fault:
            raise NoCopy(f"this node does not answer: {fault}") from None
        if answer.error or not answer.replies:
            raise NoCopy(answer.error or "; ".join(each.why for each in answer.missing) or "no answer")
        found = msgspec.json.decode(answer.replies[0], type=CopyAnswer)
        if found.error:
            raise NoCopy(found.error)
        return found

    return ask


def print_verification(data: str, view: View | None, *, as_json: bool) -> int:
    """Returns the exit status: 1 unless every copy is equal."""
    if view is None:
        raise RumqError(
            "this node has not met its cluster yet: the control plane (etcd) has not answered it; try again when "
            "`rumqd cluster status` shows shards"
        )
    wrong = total = 0
    rows: list[Mapping[str, Any]] = []
    for each in Verification(view, asker(data), time.sleep).run():
        total += 1
        wrong += each.state != "equal"
        if as_json:
            rows.append(each._asdict() | {"node": name_of(each.node)})
        else:
            print(
                f"{each.state:<10}shard {each.shard}  {each.partition}  {name_of(each.node)}: {each.words}",
                flush=True,
            )
    if as_json:
        print(msgspec.json.encode({"equal": not wrong, "copies": rows}).decode())
    else:
        print(f"{total - wrong} of {total} copies are equal" + (f", {wrong} are not" if wrong else ""))
    return 1 if wrong else 0
