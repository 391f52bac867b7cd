"""What the operator sees of a shard: its process, partitions, segments, listeners, clients by page."""

from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, publish


def test_a_shard_tells_of_its_process_and_of_what_it_accepts(shard: Shard) -> None:
    Client(shard, "c", 5)
    (row,) = ask(shard, "shards").shards
    assert (row.connected, row.sessions, row.ready, row.accepting, row.draining) == (1, 1, True, True, False)
    shard.parts.writing.admission.free_bytes_min = 1
    shard.parts.writing.admission.free(0)
    (row,) = ask(shard, "shards").shards
    assert not row.accepting, "a full disk"


def test_partitions_segments_and_listeners_are_listed(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "t", "u")
    rows = {row.stream: row for row in ask(shard, "partitions").partitions}
    assert rows["main"].next_lsn == 2 and rows["main"].last_time_us == shard.now_us and rows["main"].bytes > 0
    (segment,) = ask(shard, "segments", stream="main").segments
    assert (segment.base_lsn, segment.end_lsn, segment.sealed) == (0, None, False)
    (listener,) = ask(shard, "listeners").listeners
    assert (listener.listener, listener.connected) == (0, 1)


def test_pages_of_clients_follow_each_other(shard: Shard) -> None:
    for n in range(5):
        Client(shard, f"c{n}", 5)
    first = ask(shard, "clients", limit=2)
    assert [row.client_id for row in first.clients] == ["c0", "c1"] and first.left_out == 3
    assert [row.client_id for row in ask(shard, "clients", limit=2, offset=4).clients] == ["c4"]
    assert len(ask(shard, "clients", sort="bytes").clients) == 5
