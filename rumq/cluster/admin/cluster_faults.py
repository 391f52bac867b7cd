"""What an operator of a cluster should act on, each as one sentence with the way out. Pure.

The one source of `rumqd cluster status`, `GET /api/v1/cluster`, the page and the metric `rumq_cluster_wrong`: from what
a node's agent knows, and from what the leaders say of their copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.control.agent_messages import AgentStatus
from rumq.cluster.control.records import ShardRecord, View

DOUBTED = -1  # value of `opened` in a report: the copy is doubted
ENDS_MAX = 3  # of a shard's process within a minute: more often it crashes


def faults(status: AgentStatus, terms: Mapping[int, TermRow] | None = None, *, here: bool = False) -> Iterator[str]:
    """terms: of the leaders that have answered, by shard; None: they were not asked; here: only this node's were"""
    view = status.view
    if view is None:
        yield "the control plane has not answered since this node started: check cluster.etcd and the network"
        return
    answering = [member for member in status.health.members if not member.why]
    if not view.is_current and answering and not status.lost_seconds:
        yield (
            "the control plane answers, and has no record of this cluster: publishing goes on, but no leader can "
            "change; see cluster.record_lost in this node's events; this is the state as it was last known"
        )
    elif not view.is_current:
        yield (
            "the control plane does not answer: publishing goes on, but no leader can change; "
            "this is the state as it was last known"
        )
    stores = {member.store: member.endpoint for member in reversed(answering) if member.store}
    if len(stores) > 1:
        yield (
            f"{' and '.join(sorted(stores.values()))} are not of one etcd, and nodes that ask another one see another "
            "cluster: each was started without the others, or cluster.etcd has a wrong address; "
            "see docs/guides/cluster.md"
        )
    for member in status.health.members:
        if member.why and view.is_current:
            yield f"{member.endpoint} of the control plane does not answer ({member.why}): start it again"
    unformed = [n for n, each in enumerate(view.shards) if not each.revision and n not in view.epochs_back]
    if unformed:
        yield (
            f"{len(unformed)} shards have not begun: a cluster begins when {view.replicas} nodes live, and "
            f"{len(view.nodes)} do; see the events cluster.several_logs and cluster.layouts_differ"
        )
    alive = {node.id for node in view.nodes}
    for number, each in enumerate(view.shards):
        if number in unformed:
            continue
        if number in view.epochs_back:
            yield (
                f"shard {number}: the control plane has an older record than was seen before, and nothing is claimed "
                "from it: restore a newer snapshot of etcd; without one: `rumqd cluster force-leader --help`"
            )
        told = list(faults_of_shard(number, each.record, alive))
        yield from told
        if each.record.leader in alive:
            yield from faults_of_copies(number, each.record, view, alive)
            if terms is not None and (not here or each.record.leader == view.node):
                if number not in terms and hears_nobody(number, status):
                    yield (
                        f"shard {number}: nobody leads it, and {each.record.leader.partition('#')[0]} was the last to "
                        "claim it: wait; if it stays so, see cluster.copies_disagree, cluster.copy_doubted and "
                        "cluster.disk_unwell in the events of its nodes, and docs/guides/cluster.md"
                    )
                    continue
                yield from faults_of_term(number, each.record, terms.get(number), alive)
    yield from faults_of_processes(status, view)


def hears_nobody(shard: int, status: AgentStatus) -> bool:
    """Whether this node has a copy of the shard, and hears no leader."""
    here = next((each for each in status.reports if each.shard == shard), None)
    return here is not None and here.role == "standby" and here.figures.get("hears_leader") is False


def faults_of_shard(number: int, record: ShardRecord, alive: set[str]) -> Iterator[str]:
    for members in filter(None, (record.replicas, record.old_replicas)):
        gone = [each for each in members if each not in alive]
        if len(gone) * 2 >= len(members):
            yield (
                f"shard {number}: {len(gone)} of {len(members)} replicas are gone ({' '.join(gone)}), so nothing is "
                "acknowledged: start them again; if their disks are lost for ever: `rumqd cluster force-leader --help`"
            )
            return
        if gone:
            name = gone[0].partition("#")[0]
            back = sorted(each for each in alive if each.partition("#")[0] == name)  # with another disk
            order = f"rumqd cluster move {number} --from {gone[0] if back else name} --to {back[0] if back else 'NODE'}"
            names = " and ".join(each.partition("#")[0] for each in gone)
            yield (
                f"shard {number}: its {'copy' if len(gone) == 1 else 'copies'} at {names} "
                f"{'is' if len(gone) == 1 else 'are'} gone: start {'it' if len(gone) == 1 else 'them'} again with the "
                f"same disk, or have another node take over ({order})"
            )
    if record.leader not in alive:
        yield f"shard {number} has no leader that lives; one of its replicas takes over within seconds"


def faults_of_copies(number: int, record: ShardRecord, view: View, alive: set[str]) -> Iterator[str]:
    """Too few, or not yet as ordered."""
    learners = " ".join(record.learners)
    if len(record.replicas) < view.replicas:
        way = f"{learners} are being filled: wait" if learners else f"rumqd cluster add NODE --shard {number}"
        yield f"shard {number} has {len(record.replicas)} of {view.replicas} copies: {way}"
    elif learners:
        yield (
            f"shard {number}: {learners} is being filled before it counts: wait; another order for this shard takes "
            "its place"
        )
    if record.old_replicas is not None:
        yield f"shard {number}: its copies go from {' '.join(record.old_replicas)} to {' '.join(record.replicas)}: wait"
    for each in record.learners:
        if each not in alive:
            yield f"shard {number}: {each} is to be filled, and is gone: start it again, or order another node"


def faults_of_term(number: int, record: ShardRecord, term: TermRow | None, alive: set[str]) -> Iterator[str]:
    """What the leader says, against the record. term: None if it has not answered"""
    leader = record.leader.partition("#")[0]
    if term is None:
        yield (
            f"shard {number}: its leader at {leader} does not answer: see the events of {leader}, and the network "
            "between the nodes"
        )
        return
    members = set(term.members)
    if (term.epoch, term.leader) != (record.epoch, record.leader) or (members and members != set(record.members)):
        yield (
            f"shard {number}: {term.leader} leads epoch {term.epoch} with {' '.join(term.members) or 'its members'}, "
            f"and the control plane has {record.leader}, epoch {record.epoch} with {' '.join(record.members)}: if it "
            f"stays so, rumqd cluster move {number} --to another of its nodes"
        )
        return
    if not term.has_quorum:
        yield (
            f"shard {number}: its leader at {leader} hears too few copies, and acknowledges nothing: look at the "
            "network, and at cluster.copy_failed of the others"
        )
    elif not term.is_open:
        yield f"shard {number}: its leader at {leader} is taking office: wait"
    for each in record.members:
        if each in alive and each not in term.in_sync:
            lacks = term.behind_records.get(each)
            what = "is being compared, fails or cannot be reached" if lacks is None else f"lacks {lacks} records"
            yield (
                f"shard {number}: the copy at {each.partition('#')[0]} {what}: wait; if it stays so, look at "
                "cluster.copy_failed, cluster.copy_doubted and shard.failed in the events of that node"
            )


def faults_of_processes(status: AgentStatus, view: View) -> Iterator[str]:
    """Of the node that was asked."""
    for shard, count in sorted(status.ends.items()):
        if count >= ENDS_MAX:
            yield (
                f"the process of shard {shard} on this node has ended {count} times within a minute: see "
                "cluster.copy_failed and shard.failed in its events"
            )
    running = {each.shard for each in status.processes if each.role == "shard"}
    for shard, each in enumerate(view.shards):
        if status.processes and shard not in running and view.node in each.record.members:
            yield (
                f"no process of shard {shard} runs on this node, which has a copy: see shard.failed in its events, or "
                "what it printed"
            )
    for report in status.reports:
        if report.figures.get("opened") == DOUBTED:
            yield (
                f"shard {report.shard}: the copy on this node may lack what it had acknowledged, and has no vote until "
                "a leader has repaired it: see cluster.copy_doubted"
            )
