"""Consumer groups of a Kafka server as settings make them: a broker's own, a node's seat, or neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.commit_file import NAME, CommitFile
from rumq.kafka.groups.commit_store import CommitsLost
from rumq.kafka.nodes.shard_commits import ShardCommits, take_over
from rumq.process.kafka import group_parts
from rumq.process.kafka.group_parts import KafkaGroups, groups_of, inherit, reachable_kafka, seat_of
from rumq.settings.load import Flag, load_settings
from rumq.settings.table import Settings
from tests.kafka.nodes.test_shard_commits import Leader, commit, lose

NODE = {"cluster.name": "demo", "cluster.node": "n1", "cluster.host": "127.0.0.1", "cluster.etcd": '["e:2379"]'}


def settings_of(**more: str) -> Settings:
    flags = NODE | {key.replace("__", "."): value for key, value in more.items()}
    return load_settings(flags=[Flag(key, value, "--set") for key, value in flags.items() if value]).settings


def broker_files(*commits: Commit) -> SimulatedFiles:
    """Of a data directory that was a broker's alone."""
    files = SimulatedFiles()
    files.make_directory("d")
    files.sync_directory(".")
    if commits:
        file = CommitFile(files, "d")
        file.append(commits, tuple)
        file.close()
    return files


def inherited(files: SimulatedFiles, leader: Leader) -> ShardCommits:
    async def scene() -> ShardCommits:
        commits = await take_over(leader)
        await inherit(files, "d", commits)
        return commits

    return trio.run(scene)


def test_a_broker_that_becomes_a_node_brings_what_its_groups_have_committed_once() -> None:
    files, leader = broker_files(commit(0, 3), commit(1, 4)), Leader({})
    assert inherited(files, leader).read() == [commit(0, 3), commit(1, 4)] and len(leader.values) == 2
    assert not files.exists(f"d/{NAME}") and files.exists(f"d/{NAME}.inherited")
    leader.values.clear()
    assert inherited(files.after_power_loss(lambda n: 0), leader).read() == [], "what was forgotten stays so"


def test_what_could_not_be_brought_is_brought_by_the_next_try() -> None:
    files, leader = broker_files(commit(0, 3)), Leader({})

    async def scene() -> None:
        commits = await take_over(leader)
        leader.fails = lose
        with pytest.raises(CommitsLost):
            await inherit(files, "d", commits)

    trio.run(scene)
    leader.fails = lambda: None
    assert inherited(files, leader).read() == [commit(0, 3)]


def test_a_file_that_cannot_be_read_is_told_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(group_parts, "tell", lambda event, **fields: told.append(event))
    files = broker_files()
    handle = files.create(f"d/{NAME}")
    files.write(handle, 0, [b"rumq-kafka-commits-9\n" + bytes(40)])
    files.close(handle)
    assert inherited(files, Leader({})).read() == []
    assert told == ["kafka.commits_failed"] and files.exists(f"d/{NAME}")


def test_a_node_has_a_seat_and_a_broker_alone_has_a_file(tmp_path: Path) -> None:
    async def groups(settings: Settings) -> KafkaGroups:
        return await groups_of(settings)

    node = trio.run(groups, settings_of(data__dir=str(tmp_path), log__durability="quorum"))
    assert node.own is None and node.seat is not None and node.may_serve and not node.seat.refusal
    assert node.seat.nodes.name == "n1" and node.address(9092) == "localhost:9092"
    held = node._replace(may_serve=False)
    assert held.address(9092) == "", "clients are told of the process that serves them"


@pytest.mark.parametrize(
    ("durability", "replicas", "is_served"),
    [("quorum", "3", True), ("disk", "3", False), ("process", "3", False), ("disk", "1", True)],
)
def test_groups_are_served_where_a_majority_keeps_them(durability: str, replicas: str, is_served: bool) -> None:
    settings = settings_of(log__durability=durability, cluster__replicas=replicas)
    assert (seat_of(settings, "d").refusal == "") == is_served


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"kafka__advertised": "kafka.example.org:19092"}, ("kafka.example.org", 19092)),
        ({"kafka__host": "10.0.0.7"}, ("10.0.0.7", 0)),
        ({"kafka__host": "*"}, ("127.0.0.1", 0)),
        ({"kafka__host": "*", "cluster__advertise": "n1.example.org:7883"}, ("n1.example.org", 0)),
    ],
)
def test_a_node_tells_an_address_that_clients_reach(more: dict[str, str], told: tuple[str, int]) -> None:
    """As its own settings say; else that by which other nodes reach it."""
    assert reachable_kafka(settings_of(**more)) == told
