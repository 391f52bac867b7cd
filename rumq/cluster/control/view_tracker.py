"""What a node makes of what it reads of the control plane: the view, and what is wrong with what it read.

A read may be stale, and a store may have been restored from an old snapshot: then records have lower epochs than were
seen before. The record with the highest epoch stays in the view; a shard whose record stays behind is told, and whoever
leads or claims it replaces that record by a newer one. Knows no clock: times are arguments."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from rumq.cluster.control.control_plane import NOT_THERE, ControlSnapshot
from rumq.cluster.control.durable_file import replace_durably
from rumq.cluster.control.records import ClusterRecord, NodeRecord, Versioned, View
from rumq.events.output import get_logger

BACK_SECONDS = 2.0  # a stale read is over by then; a restored store is not
CLOCK_OFF_SECONDS = 60.0
CLOCK_AGE_SECONDS = 15.0  # age that the clock in a record may have when it is first seen

log = get_logger("rumq.cluster")


class SeenEpochs:
    """The highest epoch seen of each shard, in `<data>/_cluster/epochs.json`: a restart must not forget it."""

    def __init__(self, data: Path) -> None:
        self._path = data / "_cluster" / "epochs.json"
        try:
            self._seen = msgspec.json.decode(self._path.read_bytes(), type=dict[int, int], strict=False)
        except (FileNotFoundError, msgspec.MsgspecError):
            self._seen = {}  # each replica keeps what it has promised for itself; this is for the operator

    def epoch_of(self, shard: int) -> int:
        return self._seen.get(shard, 0)

    def note(self, epochs: dict[int, int]) -> None:
        higher = {shard: epoch for shard, epoch in epochs.items() if epoch > self.epoch_of(shard)}
        if higher:
            self._seen.update(higher)
            with suppress(OSError):  # a full disk must not end the agent; this run remembers
                replace_durably(self._path, msgspec.json.encode(self._seen))


class ViewTracker:
    """node: id of this one; cluster: its record. `view` is None until the first snapshot

    restored: as in the view"""

    def __init__(self, node: str, cluster: ClusterRecord, epochs: SeenEpochs) -> None:
        self.view: View | None = None
        self._node, self._cluster, self._epochs = node, cluster, epochs
        self._behind_since: dict[int, float] = {}
        self._low: set[int] = set()
        self._told_back: set[int] = set()
        self._clocks: dict[str, int] = {}
        self.restored = 0
        self._clocks_off: set[str] = set()
        self._met: dict[str, NodeRecord] = {}  # by id, as they were seen last; few, for a node keeps its disk

    def take(self, snapshot: ControlSnapshot, now: float, now_us: int) -> bool:
        """A list was read. now: monotonic, in seconds; now_us: this node's clock. returns: whether the view changed"""
        found = dict(enumerate(snapshot.shards))
        before = self.view.shards if self.view else []
        shards = [
            self._chosen(number, found.get(number, NOT_THERE), before[number] if before else None, now)
            for number in range(self._cluster.shards)
        ]
        self._look_at_clocks(snapshot.nodes, now_us)
        back = sorted(self._told_back)
        nodes = [
            msgspec.structs.replace(each, leaves=True) if each.id in snapshot.removed else each
            for each in snapshot.nodes
        ]
        self._met.update((node.id, node) for node in nodes)
        view = View(
            cluster=self._cluster.id, node=self._node, replicas=self._cluster.replicas, nodes=nodes, shards=shards,
            is_current=True, epochs_back=back, restored=self.restored, layout=snapshot.layout, removed=snapshot.removed,
            unseen=self._unseen(nodes, shards),
        )  # fmt: skip
        self._epochs.note({number: each.record.epoch for number, each in enumerate(shards)})
        return self._show(view)

    def put(self, shard: int, now: Versioned) -> bool:
        """A change was answered with the record as it is. returns: whether the view changed"""
        if self.view is None or shard >= len(self.view.shards):
            return False
        held = self.view.shards[shard]
        if now.revision <= held.revision or now.record.epoch < held.record.epoch:
            return False
        shards = [*self.view.shards[:shard], now, *self.view.shards[shard + 1 :]]
        self._epochs.note({shard: now.record.epoch})
        unseen = self._unseen(self.view.nodes, shards)
        return self._show(msgspec.structs.replace(self.view, shards=shards, unseen=unseen))

    def _unseen(self, nodes: list[NodeRecord], shards: list[Versioned]) -> list[NodeRecord]:
        gone = {each.record.leader for each in shards} - {node.id for node in nodes}
        return [self._met[node] for node in sorted(gone) if node in self._met]

    def laid_out(self, layout: dict[str, int]) -> bool:
        """The control plane has answered with this layout. returns: whether the view changed"""
        return self.view is not None and self._show(msgspec.structs.replace(self.view, layout=layout))

    def lost(self) -> bool:
        """The control plane does not answer. returns: whether the view changed"""
        return self.view is not None and self._show(msgspec.structs.replace(self.view, is_current=False))

    def may_claim(self, shard: int, epoch: int) -> bool:
        """Whether a record of this epoch may be put there: never one that is older than what was seen before."""
        return shard not in self._low or epoch >= self._epochs.epoch_of(shard)

    @property
    def is_doubtful(self) -> bool:
        """Whether the next read is worth an early look."""
        return bool(self._behind_since.keys() - self._told_back)

    def _chosen(self, number: int, found: Versioned, held: Versioned | None, now: float) -> Versioned:
        is_low = found.record.epoch < self._epochs.epoch_of(number)
        (self._low.add if is_low else self._low.discard)(number)
        if not is_low:
            self._told_back.discard(number)
        if not is_low and (held is None or found.revision >= held.revision):
            self._behind_since.pop(number, None)
            return found
        since = self._behind_since.setdefault(number, now)
        has_lasted = now - since >= BACK_SECONDS
        if not is_low:  # revisions alone went back
            if has_lasted:  # ... and nobody was elected since, so nothing is lost
                del self._behind_since[number]
            return found if has_lasted or held is None else held
        if has_lasted and number not in self._told_back:
            self._told_back.add(number)
            self._tell_back(number, found.record.epoch)
        if held is None:  # this run has not seen the record, an earlier one has
            return Versioned(msgspec.structs.replace(found.record, epoch=self._epochs.epoch_of(number)), found.revision)
        # What is known of the shard is what was seen; what is replaced is the record that is there.
        return Versioned(held.record, found.revision) if has_lasted else held

    def _tell_back(self, shard: int, epoch: int) -> None:
        seen = self._epochs.epoch_of(shard)
        log.error(
            "cluster.epoch_back", shard=shard, epoch=epoch, seen=seen,
            why=f"the control plane has epoch {epoch} of shard {shard}, and epoch {seen} was seen before: it was "
            "restored from an old snapshot. Leaders go on, and write the record there again; who has a vote is what "
            "the replicas have noted",
        )  # fmt: skip

    def _look_at_clocks(self, nodes: list[NodeRecord], now_us: int) -> None:
        for node in nodes:
            if node.id == self._node or self._clocks.get(node.id) == node.clock_us:
                continue
            self._clocks[node.id] = node.clock_us
            ahead = (node.clock_us - now_us) / 1e6
            is_off = ahead > CLOCK_OFF_SECONDS or ahead < -CLOCK_OFF_SECONDS - CLOCK_AGE_SECONDS
            if is_off and node.id not in self._clocks_off:
                log.warning("cluster.clock_off", node=node.id, seconds=round(ahead, 1))
            (self._clocks_off.add if is_off else self._clocks_off.discard)(node.id)

    def _show(self, view: View) -> bool:
        before, self.view = self.view, view
        return before is None or essence(before) != essence(view)


def essence(view: View) -> View:
    """A view without what changes all the time and concerns nobody."""
    nodes = [msgspec.structs.replace(node, clock_us=0) for node in view.nodes]
    unseen = [msgspec.structs.replace(node, clock_us=0) for node in view.unseen]
    return msgspec.structs.replace(view, nodes=nodes, unseen=unseen)
