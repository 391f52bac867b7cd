"""What clients are answered, over sockets, from a log that nobody writes."""

import threading
from typing import Any

import pytest

from tests.kafka.decoded import KafkaRecord, batches
from tests.kafka.served import served
from tests.kafka.wire_client import WireClient
from tests.spark.logs import Publisher, message, store_at
from tests.tries import tries

LOG_RECORDS = 300


def records(found: dict[str, Any]) -> list[KafkaRecord]:
    assert found["error_code"] == 0
    return [record for batch in batches(found["records"]) for record in batch.records]


def read_all(client: WireClient, topic: str, **more: Any) -> tuple[list[KafkaRecord], int]:
    """Records, and how many answers it took."""
    at, found, answers = 0, list[KafkaRecord](), 0
    while at < LOG_RECORDS:
        answer = client.fetch(topic, at, **more)
        found += records(answer)
        at = batches(answer["records"])[-1].end
        answers += 1
    return found, answers


@pytest.mark.parametrize("bytes_max", [1, 700, 1 << 20])
def test_all_records_come_once_whatever_an_answer_holds(bytes_max: int, root: str) -> None:
    with served(root) as here:
        found, answers = read_all(WireClient(here.port), "main", bytes_max=bytes_max)
        assert [(each.offset, each.value) for each in found] == [(n, b"%d" % n) for n in range(LOG_RECORDS)]
        assert (answers == LOG_RECORDS) == (bytes_max == 1) and (answers == 1) == (bytes_max == 1 << 20)


@pytest.mark.parametrize("bytes_max", [1, 700, 1 << 20])
def test_a_view_has_the_records_of_its_filter(bytes_max: int, root: str) -> None:
    with served(root) as here:
        found, _ = read_all(WireClient(here.port), "two", bytes_max=bytes_max)
        assert [each.offset for each in found] == list(range(2, LOG_RECORDS, 3))
        assert {each.key for each in found} == {b"plant/2/temp"}


def test_a_view_without_a_record_is_one_empty_batch(root: str) -> None:
    with served(root) as here:
        [batch] = batches(WireClient(here.port).fetch("none", 10)["records"])
        assert (batch.base, batch.end, batch.records) == (10, LOG_RECORDS, [])


def test_offsets_outside_of_the_log_are_out_of_range(root: str) -> None:
    with served(root) as here:
        client = WireClient(here.port)
        end = client.fetch("main", LOG_RECORDS)
        assert (end["error_code"], end["high_watermark"], end["records"]) == (0, LOG_RECORDS, b"")
        assert client.fetch("main", -1)["error_code"] == 1


class Says:
    """A broker that says how far it is."""

    def __init__(self, committed: int | None) -> None:
        self._committed = committed

    async def ask(self, names: set[str]) -> dict[str, int] | None:
        return None if self._committed is None else dict.fromkeys(names, self._committed)


@pytest.mark.parametrize(("committed", "code"), [(None, 78), (LOG_RECORDS, 1), (LOG_RECORDS + 5, 0)])
def test_an_offset_behind_what_is_read_is_asked_of_the_broker_first(
    committed: int | None, code: int, root: str
) -> None:
    """A consumer that was told of a record is never sent back to the beginning."""
    with served(root, committed=Says(committed)) as here:
        assert WireClient(here.port).fetch("main", LOG_RECORDS + 5)["error_code"] == code


def test_times_and_ends_are_found(root: str) -> None:
    with served(root) as here:
        client = WireClient(here.port)

        def at(when: int) -> tuple[int, int]:
            asked = {"topics": [{"name": "main", "partitions": [{"partition_index": 0, "timestamp": when}]}]}
            [topic] = client.ask("ListOffsets", 7, {"replica_id": -1, **asked})["topics"]
            [found] = topic["partitions"]
            assert found["error_code"] == 0
            return found["offset"], found["timestamp"]

        first, last = records(client.fetch("main", 0))[0], records(client.fetch("main", LOG_RECORDS - 1))[0]
        middle = records(client.fetch("main", 100))[0]
        assert at(-1)[0] == LOG_RECORDS and at(-2)[0] == 0 and at(-3) == (LOG_RECORDS - 1, last.timestamp)
        assert at(0) == (0, first.timestamp) and at(last.timestamp + 1) == (-1, -1)
        assert at(middle.timestamp) == (100, middle.timestamp)
        assert at(middle.timestamp - 1) == (100, middle.timestamp)


def test_fetch_by_id_and_by_name_are_the_same_and_other_ids_are_unknown(root: str) -> None:
    with served(root) as here:
        client = WireClient(here.port)
        topics = client.ask("Metadata", 12, {"topics": None})["topics"]
        ids = {each["name"]: each["topic_id"] for each in topics}
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        body = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0}
        for topic_id, code in ((ids["two"], 0), (b"x" * 16, 100)):
            found = client.ask("Fetch", 13, body | {"topics": [{"topic_id": topic_id, "partitions": [asked]}]})
            [partition] = found["responses"][0]["partitions"]
            assert partition["error_code"] == code
        named = client.ask("Metadata", 12, {"topics": [{"name": None, "topic_id": ids["main"]}, {"name": "nope"}]})
        assert [(each["name"], each["error_code"]) for each in named["topics"]] == [("main", 0), ("nope", 3)]


def test_a_session_is_never_opened_and_none_is_known(root: str) -> None:
    body = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1, "isolation_level": 0, "topics": []}
    with served(root) as here:
        client = WireClient(here.port)
        assert client.ask("Fetch", 11, body | {"session_id": 0, "session_epoch": 0})["session_id"] == 0
        assert client.ask("Fetch", 11, body | {"session_id": 5, "session_epoch": 1})["error_code"] == 70


def test_groups_and_producers_are_refused_in_words(root: str) -> None:
    with served(root) as here:
        client = WireClient(here.port)
        found = client.ask("FindCoordinator", 3, {"key": "g", "key_type": 0})
        assert found["error_code"] == 30 and "consumer groups are not served" in found["error_message"]
        [each] = client.ask("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]})["coordinators"]
        assert (each["key"], each["error_code"]) == ("g", 30)
        data = [{"name": "main", "partition_data": [{"index": 0, "records": b"nonsense"}]}]
        produced = client.ask("Produce", 8, {"acks": 1, "timeout_ms": 1, "topic_data": data})
        [answer] = produced["responses"][0]["partition_responses"]
        assert answer["error_code"] == 29 and answer["error_message"].startswith("read-only: publish over MQTT")
        client.send("Produce", 8, {"acks": 0, "timeout_ms": 1, "topic_data": data})
        assert client.frame() == b""  # who wants no answer is told by the end


@pytest.mark.parametrize("name", ["JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"])
def test_every_request_of_a_group_is_refused_in_every_version(name: str, root: str) -> None:
    from rumq.kafka.protocol.apis import APIS

    api = next(each for each in APIS.values() if each.name == name)
    body: dict[str, Any] = {
        "group_id": "g", "member_id": "", "protocol_type": "consumer", "protocols": [], "members": [],
        "assignments": [], "generation_id": 0, "session_timeout_ms": 1,
    }  # fmt: skip
    partition = {"partition_index": 0, "committed_offset": 1}
    if name == "OffsetCommit":
        body["topics"] = [{"name": "main", "partitions": [partition]}]
        body["generation_id_or_member_epoch"] = 0
    if name == "OffsetFetch":
        body["topics"] = [{"name": "main", "partition_indexes": [0]}]
        body["groups"] = [{"group_id": "g", "topics": None}]
    with served(root) as here:
        client = WireClient(here.port)
        for version in range(api.least, api.most + 1):
            assert 30 in codes_in(client.ask(name, version, body)), version


def codes_in(answer: Any) -> set[int]:
    if isinstance(answer, dict):
        own = {answer["error_code"]} if "error_code" in answer else set()
        return own.union(*map(codes_in, answer.values()))
    return set().union(*map(codes_in, answer)) if isinstance(answer, list) else set()


def test_a_wait_ends_with_the_next_record_or_with_its_time(tmp_path: Any) -> None:
    root = str(tmp_path / "data")
    store = store_at(root)
    publisher = Publisher(store.own[0])
    publisher.chunk([message("plant/2/a", b"first")])
    with served(root) as here:
        client = WireClient(here.port)
        assert records(client.fetch("main", 1, max_wait_ms=10)) == []
        found: list[KafkaRecord] = []
        waiting = threading.Thread(target=lambda: found.extend(records(client.fetch("main", 1, max_wait_ms=30_000))))
        waiting.start()
        while waiting.is_alive():
            publisher.chunk([message("plant/2/a", b"next")])
            waiting.join(0.05)
    store.close()
    assert {each.value for each in found} == {b"next"} and found[0].offset == 1


def test_who_asks_the_same_again_is_parked_and_hears_of_the_next_record(tmp_path: Any) -> None:
    root = str(tmp_path / "data")
    store = store_at(root)
    publisher = Publisher(store.own[0])
    publisher.chunk([message("plant/2/a", b"first")])
    with served(root) as here:
        client = WireClient(here.port)
        assert records(client.fetch("main", 1, max_wait_ms=120)) == []
        assert any(here.call(len, here.server.parked) for _ in tries())
        assert all(records(client.fetch("main", 1, max_wait_ms=120)) == [] for _ in range(3))
        assert here.call(len, here.server.parked) == 1 and here.server.door.figures.fetches == 4
        publisher.chunk([message("plant/2/a", b"next")])
        publisher.chunk([message("plant/2/a", b"last")])
        found: list[KafkaRecord] = []
        while not found:
            found = records(client.fetch("main", 1, max_wait_ms=120))
        client.close()
        assert any(here.call(len, here.server.parked) == 0 for _ in tries())
    store.close()
    assert found[0].value == b"next"


def test_lost_records_are_a_hole_and_an_event(tmp_path: Any) -> None:
    root = str(tmp_path / "data")
    store = store_at(root)
    for n in range(3):
        Publisher(store.own[0], f"c{n}").chunk([message("t", b"payload %d" % n)] * 4)
    store.close()
    [path] = list((tmp_path / "data/main/g1/p0").glob("*.seg"))
    data = bytearray(path.read_bytes())
    data[data.index(b"payload 1")] ^= 1
    path.write_bytes(data)
    with served(root) as here:
        found = records(WireClient(here.port).fetch("main", 0))
        assert [each.offset for each in found] == [0, 1, 2, 3, 8, 9, 10, 11]
        [event] = here.told("kafka.gap")
        assert (event["first_lsn"], event["next_lsn"]) == (4, 8)
        assert here.server.door.figures.lost_records == 4
