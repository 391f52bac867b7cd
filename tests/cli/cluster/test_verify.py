"""`rumqd cluster verify`: copies are compared by what is in their files; each kind of difference is seen and named."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cli.cluster import verify
from rumq.cli.cluster.verify import NoCopy, Verdict, Verification
from rumq.cluster.control.records import ShardRecord, Versioned, View
from rumq.cluster.node import copy_inquiries
from rumq.cluster.node.copy_inquiries import CopyAnswer, CopyInquiries, CopyQuestion
from tests.cluster.node.upkeep.test_copy_scrubber import log_of
from tests.cluster.node.world import KEY
from tests.commitlog.replica.copying import index, pack

NODES = ("n1#a", "n2#b", "n3#c")


class Site:
    """Three copies of shard 0; n1 leads."""

    def __init__(self, *groups: int) -> None:
        counts = groups or (60, 60, 60)
        self.files = {node: log_of(count) for node, count in zip(NODES, counts, strict=True)}
        self.inquiries = {node: CopyInquiries(files, "data", [KEY]) for node, files in self.files.items()}
        self.away: set[str] = set()
        self.asked: list[str] = []
        self.sleeps: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None
        record = ShardRecord(epoch=1, leader="n1#a", claim="c", replicas=list(NODES))
        self.view = View(cluster="c", node="n1#a", replicas=3, nodes=[], shards=[Versioned(record, 1)], is_current=True)

    def ask(self, node: str, shard: int, question: CopyQuestion) -> CopyAnswer:
        self.asked.append(node)
        if node in self.away:
            raise NoCopy(f"{node} does not answer in time")
        found = self.inquiries[node].ask(msgspec.json.encode(question)).result(60)
        answer = msgspec.json.decode(found, type=CopyAnswer)
        if answer.error:
            raise NoCopy(answer.error)
        return answer

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.meanwhile()

    def verdicts(self) -> dict[str, Verdict]:
        return {each.node: each for each in Verification(self.view, self.ask, self.sleep).run()}

    def states(self) -> list[str]:
        found = self.verdicts()
        return [found[node].state for node in NODES]

    def segments(self, node: str) -> list[str]:
        return sorted(name for name in self.files[node].names(f"data/{KEY}") if name.endswith(".seg"))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(copy_inquiries, "RECORD_BYTES_MAX", 10_000)  # a question reads no whole copy
    return Site()


def test_equal_copies_are_equal_to_the_last_committed_record(site: Site) -> None:
    found = site.verdicts()
    assert {each.state for each in found.values()} == {"equal"} and not site.sleeps
    assert {each.end_lsn for each in found.values()} == {600}
    assert found["n2#b"].words == "0 to 600, as at n1" and len(site.segments("n1#a")) > 3
    assert len(site.asked) > 3 * 3, "in pieces"


def test_a_copy_that_was_packed_is_equal_to_one_that_was_not(site: Site) -> None:
    """Its chunks are other ones, and so are the places at which questions end in them."""
    assert packed(site, "n2#b", 1001) and packed(site, "n3#c", 100_001)
    assert site.states() == ["equal", "equal", "equal"] and not site.sleeps


def test_a_bit_that_flipped_in_a_packed_copy_is_seen(site: Site) -> None:
    assert packed(site, "n2#b", 1001)
    site.files["n2#b"].damage(f"data/{KEY}/{site.segments('n2#b')[0]}", 4096 + 200)
    assert site.states() == ["equal", "different", "equal"]


def packed(site: Site, node: str, salt: int) -> int:
    copy = MirrorPartition(site.files[node], f"data/{KEY}", "main", 0)
    index(copy)
    count = pack(copy, salt)
    copy.close()
    return count


def test_nodes_of_an_earlier_version_are_asked_for_their_bytes(site: Site) -> None:
    asked: list[CopyQuestion] = []
    ask = site.ask

    def earlier(node: str, shard: int, question: CopyQuestion) -> CopyAnswer:
        asked.append(question)
        if question.records and node == "n2#b":
            raise NoCopy("Object contains unknown field `records`")
        return ask(node, shard, question)

    site.ask = earlier  # type: ignore[method-assign]
    assert site.states() == ["equal", "equal", "equal"] and not site.sleeps
    assert sum(each.records for each in asked) == 2, "then no more"
    assert b"records" not in msgspec.json.encode(CopyQuestion("p", 1, 2)), "which it would not understand"


@pytest.mark.parametrize("at", [4096 + 60, 4096 + 300])
def test_a_bit_that_flipped_is_seen_wherever_it_is(site: Site, at: int) -> None:
    """The planted fault: one byte of a chunk's header, or of a body."""
    name = site.segments("n3#c")[2]
    site.files["n3#c"].damage(f"data/{KEY}/{name}", at)
    found = site.verdicts()
    assert [found[node].state for node in NODES] == ["equal", "equal", "different"]
    assert name in found["n3#c"].words or "at lsn 80" in found["n3#c"].words
    assert site.sleeps == [verify.LOOK_SECONDS] * (verify.LOOKS - 1), "and looked at again"


def test_a_segment_that_is_gone_is_a_difference(site: Site) -> None:
    name = site.segments("n2#b")[1]
    site.files["n2#b"].remove(f"data/{KEY}/{name}")
    assert site.states() == ["equal", "different", "equal"]


def test_records_that_differ_are_seen(site: Site) -> None:
    """Two logs of the same length, as of two leaders of one epoch."""
    site.files["n2#b"] = other_log(60)
    site.inquiries["n2#b"] = CopyInquiries(site.files["n2#b"], "data", [KEY])
    assert site.states() == ["equal", "different", "equal"]


def other_log(groups: int) -> SimulatedFiles:
    from tests.commitlog.records import append, mark, opened, some_records, write

    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=20_000).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group + (5 if group == 30 else 0)))
        write(partition)
    mark(partition)
    return files.after_kill()


def test_a_copy_that_lacks_what_is_committed_is_behind_and_what_it_has_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(60, 60, 40)
    found = site.verdicts()
    assert [found[node].state for node in NODES] == ["equal", "equal", "behind"]
    assert "600 is committed" in found["n3#c"].words and found["n3#c"].end_lsn < 600


def test_a_copy_that_catches_up_meanwhile_is_equal() -> None:
    site = Site(60, 60, 40)

    def caught_up() -> None:
        site.inquiries["n3#c"] = CopyInquiries(log_of(60), "data", [KEY])

    site.meanwhile = caught_up
    assert site.states() == ["equal"] * 3 and len(site.sleeps) == 1


def test_a_node_that_does_not_answer_is_away_and_the_others_are_compared(site: Site) -> None:
    site.away = {"n1#a"}
    site.files["n3#c"].damage(f"data/{KEY}/{site.segments('n3#c')[0]}", 4096 + 300)
    found = site.verdicts()
    assert [found[node].state for node in NODES] == ["away", "equal", "different"]
    assert "does not answer in time" in found["n1#a"].words


def test_the_exit_status_and_the_json_say_whether_all_are_equal(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "asker", lambda data: site.ask)
    monkeypatch.setattr(verify.time, "sleep", site.sleep)
    assert verify.print_verification("d", site.view, as_json=False) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 of 3 copies are equal"
    site.files["n3#c"].damage(f"data/{KEY}/{site.segments('n3#c')[0]}", 4096 + 300)
    assert verify.print_verification("d", site.view, as_json=True) == 1
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["equal"] is False
    assert {each["node"]: each["state"] for each in told["copies"]} == {
        "n1": "equal", "n2": "equal", "n3": "different",
    }  # fmt: skip


def test_a_stranger_question_is_a_sentence(site: Site) -> None:
    inquiries = site.inquiries["n1#a"]
    for question, says in (
        (b"[]", "object"), (b'{"partition": "../../etc"}', "there is no"), (b'{"x": 1}', "unknown field"),
    ):  # fmt: skip
        answer = msgspec.json.decode(inquiries.ask(question).result(60), type=CopyAnswer)
        assert says in answer.error
