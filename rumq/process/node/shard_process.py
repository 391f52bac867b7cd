"""The process of one shard on a node: it follows, until it leads."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from commitlog import LogError, RealFiles, StreamSpec
from commitlog.replica.replica_state import DIRECTORY, StoredReplicaState, load_state
from rumq.cluster.control.agent_messages import SOCKET_NAME
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting_queue import GREETINGS_MAX
from rumq.cluster.node.beats import OpeningBeats
from rumq.cluster.node.copy_disk import CopyDisk, free_bytes_of
from rumq.cluster.node.copy_inquiries import CopyInquiries
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.node.log_copies import CopyId, NodeLogCopies
from rumq.cluster.node.shard_layout import laid_out, met_view
from rumq.cluster.node.standby_process import StandbyContext, StandbyProcess
from rumq.cluster.node.upkeep.copy_packer import CopyPacker
from rumq.cluster.node.upkeep.copy_scrubber import CopyScrubber, put_aside
from rumq.events.event_log import tell
from rumq.net.sockets.fd_limit import raise_limit, room_for_connections
from rumq.net.sockets.fd_passing import FdPassing
from rumq.process.certificates.node_certificates import link_tls, watched_link_tls
from rumq.process.node.node import Node
from rumq.process.shard.cluster_place import ClusterPlace
from rumq.process.shard.process_tuning import freeze
from rumq.process.shard.shard import serve_shard
from rumq.process.shard.shard_store import ShardEnvironment
from rumq.process.wiring.disk_bounds import reserve
from rumq.process.wiring.missing_partition import STATE_STREAM
from rumq.process.wiring.streams import GENERATION
from rumq.shards.moves.given_back import GivenBack
from rumq.supervision.supervisor import IS_READY

FAILED = 1


def run_shard(node: Node) -> int:
    """Follow, until this node leads the shard or is told to stop; then lead."""
    stopping = StopSignal()
    os.write(node.place.ready, IS_READY)
    view = met_view(f"{node.place.data}/{SOCKET_NAME}", lambda: stopping.came)
    if view is None:
        return 0
    place = replace(node.place, streams=laid_out(node.place.streams, view.layout, node.settings))
    shard = place.index
    try:
        copies = NodeLogCopies(RealFiles(), place.data, copies_of(place))
        state = load_state(
            RealFiles(), place.data, shard, node.identity.disk, has_log=copies.has_log and not node.is_new,
            journal=f"{place.data}/{journal_of(place)}",
        )  # fmt: skip
        note_doubt(copies, state, shard)
        doors = FdPassing(node.doors, shard, lambda seconds, call: None)  # what waits goes with the next call
        links = link_tls(node.settings)
        inquiries = CopyInquiries(RealFiles(), place.data, [each.key for each in copies_of(place)])
        packer = packer_of(node, copies)
        standing = StandbyContext(
            node.identity.id, shard, f"{place.data}/{SOCKET_NAME}", node.addresses.sockets[shard],
            GivenBack(doors, place.count).give_back,
            links,
            CopyDisk(f"{place.data}/{DIRECTORY}", reserve(node.settings, place.data), time.monotonic),
            scrub_of(node, copies),
            partial(fits, place.streams),
            greetings_max(len(copies_of(place))),
            look_after(node, links),
            inquiries,
            packer.step,
            partial(setattr, packer, "may_pack"),
        )  # fmt: skip
        standby = StandbyProcess(standing, copies, state, tell)
        warm_up()
        with closing(packer):
            office = standby.run(lambda: stopping.came)
    except (OSError, LogError) as fault:
        tell("cluster.copy_failed", shard=shard, why=str(fault))
        return FAILED
    if office is None:
        return 0
    stopping.release()
    tell("cluster.leads", shard=shard, epoch=office.lead.epoch)
    beats = OpeningBeats(office.lead.epoch, office.links)
    cluster = ClusterPlace(node.identity.id, office, beats, node.addresses.sockets[shard], state, inquiries)
    # Clients come by way of the edge.
    leading = replace(place, doors=node.doors, doorways=replace(place.doorways, sockets=[]), cluster=cluster)
    return serve_shard(node.settings, leading, node.read)


def fits(streams: Sequence[StreamSpec], view: View) -> bool:
    """Whether the cluster has these partitions: an older version may have begun it, which did not say."""
    return all(view.layout.get(spec.name, spec.partitions) == spec.partitions for spec in streams)


def greetings_max(partitions: int) -> int:
    """Connections of strangers that leave half of the free descriptors to the log and to what this process dials."""
    return min(GREETINGS_MAX, room_for_connections(raise_limit(), partitions) // 2)


def look_after(node: Node, links: LinkTls | None) -> Callable[[], None]:
    """Look whether the certificates of links were renewed."""

    def use(fresh: LinkTls) -> None:
        assert links is not None
        links.server, links.client = fresh.server, fresh.client

    watch = watched_link_tls(node.settings, use)
    return (lambda: watch.look_sometimes(time.monotonic())) if watch is not None else lambda: None


def scrub_of(node: Node, copies: NodeLogCopies) -> Callable[[], None]:
    """Read the copies again; a damaged segment is put aside, and this process ends: the next one has it sent anew."""
    files, shard = RealFiles(), node.place.index
    scrubber = CopyScrubber(files, copies, node.settings.log.scrub_bytes_per_second, time.monotonic())

    def scrub() -> None:
        damage = scrubber.step(time.monotonic())
        if damage is not None:
            put_aside(files, damage, tell, shard)
            raise LogError(f"{damage.why}; it was put aside, and is sent again by the leader")

    return scrub


def packer_of(node: Node, copies: NodeLogCopies) -> CopyPacker:
    """Packs what is finished; what it writes leaves the reserve of the disk to records."""
    data = node.place.data
    least = reserve(node.settings, data)
    rate = node.settings.log.pack_bytes_per_second
    return CopyPacker(copies, rate, lambda size: free_bytes_of(data) - size >= least, tell, time.monotonic())


def note_doubt(copies: NodeLogCopies, state: StoredReplicaState, shard: int) -> None:
    """A copy that may have lost what it acknowledged has no say until a leader has repaired it, or until what it lacks
    is there again. R11"""
    why = copies.doubt or state.doubt
    lost = copies.restore_notes(state)
    if why:
        state.distrust()
    elif lost:
        state.miss()
    elif state.is_short:
        state.find_again()
        tell("cluster.copy_whole", shard=shard, opened=state.opened)
    if why or lost:
        tell("cluster.copy_doubted", shard=shard, why=why or lost)


def copies_of(place: ShardEnvironment) -> list[CopyId]:
    """The partitions of a shard, with its journal."""
    found = []
    index = 0
    for spec in place.streams:
        for number in range(spec.partitions):
            if index % place.count == place.index:
                found.append(CopyId(f"{spec.name}/g{GENERATION}/p{number}", spec.name, number))
            index += 1
    return [*found, CopyId(journal_of(place), STATE_STREAM, place.index)]


def journal_of(place: ShardEnvironment) -> str:
    """The key of the shard's journal."""
    return f"{STATE_STREAM}/g{place.generation}/p{place.index}"


def warm_up() -> None:
    """What can be done before this process leads: then little is to be collected, and nothing imported (`run.py`)."""
    freeze()


class StopSignal:
    """came: SIGTERM or SIGINT has come, to a process that waits in its own loop."""

    def __init__(self) -> None:
        self.came = False
        self._numbers = (signal.SIGTERM, signal.SIGINT)
        for number in self._numbers:
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.came = True

    def release(self) -> None:
        """Somebody else takes them from here on."""
        for number in self._numbers:
            signal.signal(number, signal.SIG_DFL)
