"""How many partitions a shard's process opens: as many as the cluster has, which its agent says."""

import threading
from pathlib import Path
from typing import Any

import pytest

from commitlog import StreamSpec
from rumq.cluster.control.agent_messages import Seen
from rumq.cluster.control.control_plane import NOT_THERE
from rumq.cluster.control.records import ShardRecord, Versioned, View
from rumq.cluster.node.shard_layout import WrongLayout, is_settled, laid_out, met_view
from rumq.settings.load import Flag, load_settings
from tests.cluster.node.world import Agent

RECORD = Versioned(ShardRecord(epoch=0, leader="", claim="c", replicas=["n1#1"]), 1)
STREAMS = [StreamSpec("plant", ("p/#",), 2, "disk"), StreamSpec("main", ("#",), 3, "disk")]


def view(*shards: Versioned, **fields: Any) -> View:
    return View(cluster="c", node="n1#1", replicas=3, nodes=[], shards=list(shards), is_current=True, **fields)


def test_a_new_directory_gets_the_partitions_that_the_cluster_has() -> None:
    assert [each.partitions for each in laid_out(STREAMS, {"main": 1, "other": 9}, load_settings().settings)] == [
        2, 1,
    ]  # fmt: skip
    assert laid_out(STREAMS, {}, load_settings().settings) == STREAMS, "an older version has formed the cluster"


def test_settings_that_want_others_are_told_the_number() -> None:
    flag = Flag("stream", '[{name="main", filters=["#"], partitions=4}]', "--set")
    settings = load_settings(flags=[flag]).settings
    with pytest.raises(WrongLayout, match=r"partitions = 4, and this cluster has 1, .* leave `partitions` out"):
        laid_out(STREAMS, {"main": 1}, settings)
    assert laid_out(STREAMS, {"main": 4}, settings)[1].partitions == 4


def test_nothing_is_known_before_each_shard_has_a_record() -> None:
    assert not is_settled(view()) and not is_settled(view(RECORD, NOT_THERE))
    assert is_settled(view(RECORD, RECORD)) and is_settled(view(RECORD, NOT_THERE, epochs_back=[1]))


def test_it_waits_for_the_agent_and_for_the_other_nodes(tmp_path: Path) -> None:
    """The agent comes late, and goes once."""
    path = tmp_path / "agent.sock"
    found: list[View | None] = []
    stopping = threading.Event()
    thread = threading.Thread(target=lambda: found.append(met_view(str(path), stopping.is_set)))
    thread.start()
    agent = Agent(path)
    agent.first = [Seen(view(RECORD, NOT_THERE))]
    while not agent.heard:
        agent.turn()
    assert thread.is_alive()
    whole = view(RECORD, RECORD, layout={"main": 1})
    agent.say(Seen(whole))
    thread.join(30)
    assert found == [whole]


def test_a_signal_ends_the_waiting(tmp_path: Path) -> None:
    assert met_view(str(tmp_path / "agent.sock"), lambda: True) is None
