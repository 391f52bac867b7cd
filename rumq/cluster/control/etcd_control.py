"""The control plane in etcd. Keys below "<prefix>/<cluster name>/": cluster, node/<name>, shard/<number>,
stamp/<disk>, layout, removed/<node id>."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
import trio

from rumq.cluster.control.control_plane import (
    LEASE_SECONDS,
    ControlHealth,
    ControlSnapshot,
    MemberHealth,
    Replaced,
    describe_node,
    is_same_place,
    settled,
    shards_by_number,
)
from rumq.cluster.control.errors import ControlRefused, LeaseLost, NameTaken, OutcomeUnknown, Unreachable
from rumq.cluster.control.etcd import Body, Etcd, KeyValue
from rumq.cluster.control.etcd_version import known_faults
from rumq.cluster.control.records import ClusterRecord, NodeRecord, ShardRecord, Versioned

WATCH_PAUSE_SECONDS = 0.5
HEALTH_SECONDS = 1.0
T = TypeVar("T")


class EtcdControl:
    """A `ControlPlane`. prefix: "/rumq"; name: of the cluster"""

    def __init__(self, etcd: Etcd, prefix: str, name: str) -> None:
        self._etcd = etcd
        self._prefix = f"{prefix.rstrip('/')}/{name}/".encode()
        self._end = self._prefix[:-1] + b"0"  # "0" follows "/"
        self._lease = 0
        self._is_announced = False

    @property
    def requests(self) -> int:
        """Sent so far."""
        return self._etcd.requests

    async def version_faults(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        why = []
        for endpoint in list(self._etcd.endpoints):
            try:
                version = await self._etcd.version(endpoint)
            except Unreachable as fault:
                why.append(fault.why)
                continue
            found[version] = known_faults(version)
        if not found:
            raise Unreachable("; ".join(why))
        return found

    async def cluster_record(self, make: ClusterRecord) -> ClusterRecord:
        key = self._prefix + b"cluster"
        try:
            done = await self._put_if(key, 0, msgspec.json.encode(make))
        except OutcomeUnknown as fault:  # whichever record is there counts, and ours has an id of its own
            kept = await self._etcd.read(key)
            if not kept:
                raise Unreachable(fault.why) from fault
            return parsed(kept[0], ClusterRecord)
        return make if done is None else parsed(done, ClusterRecord)

    async def announce(self, node: NodeRecord) -> None:
        key = self._prefix + b"node/" + node.name.encode()
        if not self._lease:
            self._lease = await self._etcd.grant(LEASE_SECONDS)
        held = await self._etcd.read(key)
        revision = 0
        if held:
            other = parsed(held[0], NodeRecord)
            is_over = not self._is_announced and is_same_place(other, node)
            if other.incarnation != node.incarnation and not is_over:
                raise NameTaken(node.name, describe_node(node), describe_node(other))
            revision = held[0].mod_revision
        try:
            now = await self._put_if(key, revision, msgspec.json.encode(node), self._lease)
        except OutcomeUnknown as fault:  # an announcement may be repeated
            raise Unreachable(fault.why) from fault
        except ControlRefused as fault:
            if "lease not found" not in fault.why:
                raise
            self._lease = 0
            raise LeaseLost from fault
        if now is not None and parsed(now, NodeRecord).incarnation != node.incarnation:
            raise NameTaken(node.name, describe_node(node), describe_node(parsed(now, NodeRecord)))
        self._is_announced = True

    async def renew(self) -> None:
        if not self._lease or await self._etcd.keep_alive(self._lease) <= 0:
            self._lease = 0
            raise LeaseLost

    async def leave(self) -> None:
        if self._lease:
            lease, self._lease = self._lease, 0
            await self._etcd.revoke(lease)

    async def snapshot(self) -> ControlSnapshot:
        cluster = None
        nodes: list[NodeRecord] = []
        shards: dict[int, Versioned] = {}
        layout: dict[str, int] = {}
        removed: list[str] = []
        for each in await self._etcd.read(self._prefix, self._end):
            kind, _, name = each.key[len(self._prefix) :].decode().partition("/")
            if kind == "cluster":
                cluster = parsed(each, ClusterRecord)
            elif kind == "node":
                nodes.append(parsed(each, NodeRecord))
            elif kind == "shard" and name.isdecimal():
                shards[int(name)] = versioned(each)
            elif kind == "layout":
                layout = parsed(each, dict[str, int])
            elif kind == "removed":
                removed.append(name)
        nodes.sort(key=lambda node: node.id)
        return ControlSnapshot(
            cluster=cluster,
            nodes=nodes,
            shards=shards_by_number(shards),
            layout=layout,
            removed=sorted(removed),
        )

    async def nodes(self) -> list[NodeRecord]:
        return (await self.snapshot()).nodes

    async def shards(self) -> list[Versioned]:
        return (await self.snapshot()).shards

    async def replace(self, shard: int, revision: int, record: ShardRecord) -> Replaced:
        now = await self._put_if(self._shard_key(shard), revision, msgspec.json.encode(record), told=True)
        if now is None:
            return Replaced(False, None)
        return Replaced(versioned(now).record.claim == record.claim, versioned(now))

    async def settle(self, shard: int, revision: int, claim: str) -> Replaced:
        kept = await self._etcd.read(self._shard_key(shard))
        now = versioned(kept[0]) if kept else None
        won = settled(now, revision, claim)
        if won is None:
            raise OutcomeUnknown(f"shard {shard} still has revision {revision}")
        return Replaced(won, now)

    async def stamp(self, disk: str, stamp: int) -> int:
        key = self._prefix + b"stamp/" + disk.encode()
        kept = await self._etcd.read(key)
        held = int(kept[0].value) if kept and kept[0].value.isdigit() else 0
        if stamp > held:
            try:
                await self._put_if(key, kept[0].mod_revision if kept else 0, b"%d" % stamp)
            except OutcomeUnknown as fault:  # a later one takes its place
                raise Unreachable(fault.why) from fault
        return held

    async def layout(self, make: dict[str, int]) -> dict[str, int]:
        key = self._prefix + b"layout"
        try:
            there = await self._put_if(key, 0, msgspec.json.encode(make))
        except OutcomeUnknown as fault:  # the next one sees what is there
            raise Unreachable(fault.why) from fault
        return make if there is None else parsed(there, dict[str, int])

    async def note_removed(self, node: str, *, is_removed: bool) -> None:
        key = self._prefix + b"removed/" + node.encode()
        try:
            if is_removed:
                await self._put_if(key, 0, b"{}")
            else:
                await self._etcd.change([], [{"request_delete_range": {"key": key}}], [])
        except OutcomeUnknown as fault:  # it may be repeated
            raise Unreachable(fault.why) from fault

    async def changes(self, hint: Callable[[], None]) -> None:
        while True:
            try:
                await self._etcd.watch(self._prefix, self._end, hint)
            except (Unreachable, ControlRefused):
                pass  # C3: lists go on; they tell the operator
            hint()
            await trio.sleep(WATCH_PAUSE_SECONDS)

    async def health(self) -> ControlHealth:
        found: dict[str, MemberHealth] = {}

        async def look(endpoint: str) -> None:
            began = trio.current_time()
            try:
                status = await self._etcd.status(endpoint)
            except (Unreachable, ControlRefused) as fault:
                found[endpoint] = MemberHealth(endpoint=endpoint, why=str(fault))
                return
            found[endpoint] = health = MemberHealth(
                endpoint=endpoint,
                version=status.version,
                is_leader=status.leader == status.header.member_id != 0,
                stored_bytes=status.stored_bytes,
                seconds=trio.current_time() - began,
            )
            try:
                members = await self._etcd.members(endpoint)
            except (Unreachable, ControlRefused):
                return
            found[endpoint] = msgspec.structs.replace(health, store=members.names)

        endpoints = sorted(self._etcd.endpoints)
        with trio.move_on_after(HEALTH_SECONDS):
            async with trio.open_nursery() as nursery:
                for endpoint in endpoints:
                    nursery.start_soon(look, endpoint)
        late = f"no answer within {HEALTH_SECONDS:g} s"
        return ControlHealth(
            kind="etcd",
            members=[found.get(each) or MemberHealth(endpoint=each, why=late) for each in endpoints],
        )

    async def close(self) -> None:
        await self._etcd.close()

    def _shard_key(self, shard: int) -> bytes:
        return self._prefix + b"shard/%d" % shard

    async def _put_if(
        self, key: bytes, revision: int, value: bytes, lease: int = 0, *, told: bool = False
    ) -> KeyValue | None:
        """Compare-and-swap. revision: 0 if there must be no such key

        returns: what is there instead; with `told` what is there now, won or not; else None"""
        put: Body = {"key": key, "value": value}
        if lease:
            put["lease"] = lease
        read: Body = {"request_range": {"key": key}}
        done = await self._etcd.change(
            [{"key": key, "target": "MOD", "mod_revision": revision, "result": "EQUAL"}],
            [{"request_put": put}, *([read] if told else [])],
            [read],
        )
        return done.found[0] if done.found else None


def parsed(found: KeyValue, kind: type[T]) -> T:
    """A record as it is stored: JSON, for people with etcdctl too. raises: ControlRefused"""
    try:
        return msgspec.json.decode(found.value, type=kind)
    except msgspec.MsgspecError as fault:
        key = found.key.decode(errors="replace")
        raise ControlRefused(
            f"etcd has something under {key} that is no record of this version of rumq ({fault}): "
            "use another cluster.etcd_prefix, or restore the record"
        ) from fault


def versioned(found: KeyValue) -> Versioned:
    return Versioned(parsed(found, ShardRecord), found.mod_revision)
