"""Move sessions and retained messages to other home shards after a change of the number of shards.

It reads the old journals and writes new ones, of the next generation; the file SHARDS selects the generation, and is
replaced at the end. An interrupted start begins again. Runs before any shard."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from typing import Any

from commitlog import OpenOptions, Partition, RealFiles, Store, StoreLayout, StreamSpec, open_store
from commitlog.disk.shard_count import ShardCount, read_shard_count, write_shard_count
from commitlog.log.partition_types import PartitionId
from commitlog.log.store import open_partition
from rumq.events.event_log import tell
from rumq.mqtt.topics import matches
from rumq.net.client_placement import home_of
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedShare, ReplayedState
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from rumq.shards.bus.owner_run import OwnerRun
from rumq.shards.peers.query_server import log_tags
from rumq.shards.recovery.fit_to_log import fit_to_log
from rumq.shards.recovery.journal_reader import add_tags, replay
from rumq.shards.recovery.restore import write_now
from rumq.terminal.progress import Progress

CLUSTER_GENERATION = 1  # of the journals of all nodes of a cluster: copies are named by it


def resharded(
    data: str, lock: int, streams: list[StreamSpec], internal: StreamSpec, count: int, *, in_cluster: bool = False
) -> int:
    """Rewrite the journals for `count` shards; returns their generation. raises: OSError, StoreError

    in_cluster: that generation is to be CLUSTER_GENERATION, so they may be written twice"""
    files = RealFiles()
    first = was = read_shard_count(files, data)
    generation = CLUSTER_GENERATION if in_cluster else was.generation
    if was == (count, generation):
        return generation
    if not os.path.isdir(f"{data}/{internal.name}"):
        write_shard_count(files, data, ShardCount(count, generation))  # a new directory: nothing to move
        return generation
    started = time.monotonic()
    sessions = 0
    while was.shards != count or (in_cluster and was.generation != generation):
        is_far = in_cluster and was.generation != generation
        following = ShardCount(count, generation if is_far else was.generation + 1)
        sessions = move(data, lock, streams, internal, was, following)
        was = following
    tell(
        "shard.rehomed", shards=count, before=first.shards, sessions=sessions,
        seconds=round(time.monotonic() - started, 3),
    )  # fmt: skip
    return was.generation


def move(
    data: str, lock: int, streams: list[StreamSpec], internal: StreamSpec, was: ShardCount, following: ShardCount
) -> int:
    """Write the journals of `following` from those of `was`; returns how many sessions. raises: OSError, StoreError"""
    files, count = RealFiles(), following.shards
    now_us = time.time_ns() // 1000
    shutil.rmtree(f"{data}/{internal.name}/g{following.generation}", ignore_errors=True)
    store = open_store(files, data, StoreLayout(streams, matches), OpenOptions(now_us, hot_bytes_max=0), lock=lock)
    moving = Resharding(store, internal, now_us)
    with Progress("moving sessions to other shards", was.shards + count, "journals") as bar:
        for index in range(was.shards):
            moving.read(index, was)
            bar.advance(1)
        for index in range(count):
            moving.write(index, following)
            bar.advance(1)
    for partition in store.own:
        partition.writer.close()
    write_shard_count(files, data, following)
    shutil.rmtree(f"{data}/{internal.name}/g{was.generation}", ignore_errors=True)
    return len(moving.sessions)


class Resharding:
    def __init__(self, store: Store, internal: StreamSpec, now_us: int) -> None:
        self._store, self._internal, self._now_us = store, internal, now_us
        self._own = list(store.own)
        self._layout = tuple(f"{p.stream}/g{p.generation}/p{p.number}" for p in self._own)
        self._next_lsns = [p.next_lsn for p in self._own]
        self.sessions: dict[str, Any] = {}
        self._shares: dict[str, Any] = {}
        self._joined: set[str] = set()  # groups that have members
        self._retained: dict[str, Any] = {}
        self._orders: dict[tuple[str, str, str], Any] = {}
        self._kept: dict[bytes, bytes] = {}
        self._retained_from = [0] * len(self._own)

    def _open(self, number: int, generation: int) -> Partition:
        identity = PartitionId(self._internal, len(self._own), number, generation)
        partition, _ = open_partition(RealFiles(), self._store.root, identity, OpenOptions(self._now_us))
        return partition

    def read(self, index: int, roster: ShardCount) -> None:
        """State of one old shard: sessions, shared groups, the retained messages of its partitions; the operator's
        orders, which are the same in all shards; and values that are kept, which shard 0 has."""
        partition = self._open(index, roster.generation)
        replayed = replay(self._store, partition, tell)
        partition.writer.close()
        fit_to_log(replayed, self._layout, self.same_below(replayed))
        if replayed.sessions:
            for each in self._own:
                add_tags(replayed, log_tags(self._store, each, replayed.tags_from[each.index]))
        for session in replayed.sessions.values():
            self.sessions[session.key] = session
        self._orders.update(replayed.orders)
        self._kept.update(replayed.kept)
        self._joined |= groups_of(replayed.sessions.values())
        for key, share in replayed.shares.items():
            if home_of(key, roster.shards) == index:
                self._shares[key] = share
        for topic, message in replayed.retained.items():
            if message.partition % roster.shards == index:
                self._retained[topic] = message
        for each in self._own:
            if each.index % roster.shards == index:
                self._retained_from[each.index] = replayed.retained_from[each.index]

    def same_below(self, replayed: ReplayedState) -> list[int]:
        """Of each partition, up to where positions of a journal are those of the same records now."""
        runs = dict(zip(replayed.layout, replayed.runs, strict=False))
        below = []
        for partition, name in zip(self._own, self._layout, strict=True):
            run = OwnerRun()
            run.known = runs.get(name, (0, 0))
            below.append(run.met(0, partition.starts, partition.next_lsn))  # 0: the shard's run is over
        return below

    def write(self, index: int, roster: ShardCount) -> None:
        """Write everything with this home shard to its new journal."""
        store, count = self._store, roster.shards
        replayed = ReplayedState()
        replayed.layout, replayed.changed = self._layout, True
        replayed.orders = self._orders
        replayed.kept = self._kept if index == 0 else {}
        for session in self.sessions.values():
            if home_of(session.client_id, count) == index:
                replayed.last_number += 1
                session.number = replayed.last_number
                replayed.sessions[session.number] = session
        # A group is also in the journals of its members' shards, whatever shard is its home.
        joined = groups_of(replayed.sessions.values())
        unread = {asked: ReplayedShare(list(self._next_lsns)) for asked in joined}
        replayed.shares = {
            key: share
            for key, share in (unread | self._shares).items()
            if key in joined or home_of(key, count) == index
        }
        replayed.retained = {t: r for t, r in self._retained.items() if r.partition % count == index}
        replayed.retained_from, replayed.tags_from = list(self._retained_from), list(self._next_lsns)
        store.internal = self._open(index, roster.generation)
        store.own = [p for p in self._own if p.index % count == index]
        shard = build_shard(store, ShardContext(), Platform(tell))
        shard.operation.restorer.restore(replayed, shard.turn.steps.effects.carry_out, is_for_later=True)
        for asked in self._joined & set(replayed.shares) - joined:  # its members are in other shards
            share = shard.router.sharing.shares[asked]
            shard.operation.restorer.journal.recorder.shared(asked, share.reader.cursors, list(share.returned))
        shard.operation.restorer.journal.flush(self._now_us)
        write_now(store.internal)
        shard.stop()
        shard.pump.close()
        store.internal.finish()
        store.internal.writer.close()
        store.own = self._own


def groups_of(sessions: Iterable[ReplayedSession]) -> set[str]:
    """The shared subscriptions that these sessions have, as they wrote them."""
    return {each.entry.asked for session in sessions for each in session.subscriptions.values() if each.kind == "share"}
