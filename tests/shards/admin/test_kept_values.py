"""Values that are kept for the Kafka server: committed before they are answered, and there after a kill."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rumq.admin.socket.kept_values import (
    PAGE_BYTES_MAX,
    AnyQuestion,
    Confirm,
    KeepValues,
    KeptReply,
    OfBridges,
    ReadPage,
    TakeOver,
)
from rumq.shards.admin.kept_values import (
    BRIDGES,
    KAFKA,
    NOT_RECOVERED,
    NOT_WRITTEN,
    RESERVED,
    TAKEN_OVER,
    WRITTEN_SECONDS_MAX,
)
from tests.faults.shard import Shard
from tests.shards.admin.test_standing_orders import Runs
from tests.shards.admin.test_standing_orders import runs as runs


def begin(shard: Shard, asked: AnyQuestion) -> list[KeptReply]:
    """What is answered, when it is."""
    found: list[KeptReply] = []
    question = msgspec.json.decode(msgspec.json.encode(asked))
    later = shard.parts.operation.kept.answer(question)
    later(lambda reply: found.append(msgspec.json.decode(msgspec.json.encode(reply), type=KeptReply)))
    return found


def ask(shard: Shard, asked: AnyQuestion) -> KeptReply:
    found = begin(shard, asked)
    for _ in range(8):
        shard.settle()
    (reply,) = found
    return reply


def take_over(shard: Shard) -> int:
    reply = ask(shard, TakeOver())
    assert not reply.error
    return reply.holder


def values(shard: Shard) -> dict[bytes, bytes]:
    """As one who takes them over reads them."""
    holder, found = take_over(shard), list[tuple[bytes, bytes]]()
    while True:
        page = ask(shard, ReadPage(holder, len(found)))
        assert not page.error
        found += page.values
        if not page.left:
            return dict(found)


@pytest.fixture
def full(runs: Runs) -> Runs:
    """a and b are kept."""
    assert ask(runs.shard, KeepValues(take_over(runs.shard), [(b"a", b"1"), (b"b", b"2")])) == KeptReply()
    return runs


def test_what_was_answered_is_there_after_a_kill_as_it_was_last(full: Runs) -> None:
    assert values(full.kill()) == {b"a": b"1", b"b": b"2"}
    holder = take_over(full.shard)
    ask(full.shard, KeepValues(holder, [(b"a", b""), (b"b", b"3")]))
    assert values(full.kill()) == {b"b": b"3"}


def test_nothing_is_answered_before_it_is_committed(runs: Runs) -> None:
    asked = begin(runs.shard, KeepValues(take_over(runs.shard), [(b"a", b"1")]))
    assert not asked
    runs.shard.parts.turn.begin_turn()  # it is written into the journal, and not synced
    assert not asked
    files = runs.shard.files.after_power_loss(lambda n: 0)
    assert values(Shard(files, seed=5)) == {}
    for _ in range(8):
        runs.shard.settle()
    assert asked == [KeptReply()]
    assert values(Shard(runs.shard.files.after_power_loss(lambda n: 0), seed=6)) == {b"a": b"1"}


def test_what_is_not_committed_in_time_is_not_known_to_be(runs: Runs) -> None:
    holder = take_over(runs.shard)
    runs.shard.parts.writing.commit.is_frozen = True  # as a leader that hears no majority
    found = ask_later(runs.shard, KeepValues(holder, [(b"a", b"1")]))
    runs.shard.after(WRITTEN_SECONDS_MAX + 0.1)
    for _ in range(8):
        runs.shard.settle()
    assert [each.error for each in found] == [NOT_WRITTEN]
    runs.shard.parts.writing.commit.is_frozen = False
    runs.shard.after(0.1)
    assert len(found) == 1, "what comes later is too late"


def ask_later(shard: Shard, asked: AnyQuestion) -> list[KeptReply]:
    found = begin(shard, asked)
    for _ in range(8):
        shard.settle()
    assert not found
    return found


def test_only_the_last_one_who_took_over_is_heard(full: Runs) -> None:
    old = take_over(full.shard)
    new = take_over(full.shard)
    assert new == old + 1
    for asked in (KeepValues(old, [(b"a", b"9")]), ReadPage(old, 0), Confirm(old), Confirm(0)):
        assert ask(full.shard, asked) == KeptReply(TAKEN_OVER)
    assert ask(full.shard, Confirm(new)) == KeptReply()
    after = full.kill()
    assert ask(after, Confirm(new)).error == TAKEN_OVER, "who held them in another run takes them over anew"
    assert take_over(after) == new + 1, "no number comes twice"
    assert values(after) == {b"a": b"1", b"b": b"2"}


def test_two_who_take_over_at_once_have_two_numbers(runs: Runs) -> None:
    first, second = begin(runs.shard, TakeOver()), begin(runs.shard, TakeOver())
    for _ in range(8):
        runs.shard.settle()
    assert [each.holder for each in (*first, *second)] == [1, 2]


def test_whether_it_leads_is_answered_once_it_is_sure(runs: Runs) -> None:
    """A leader that was replaced without knowing it does not hold the lease of the majority (R15)."""
    holder, gate = take_over(runs.shard), runs.shard.parts.cluster.reads
    gate.is_open = lambda: False
    found = ask_later(runs.shard, Confirm(holder))
    gate.is_open = lambda: True
    runs.shard.after(0.1)
    for _ in range(8):
        runs.shard.settle()
    assert found == [KeptReply()]


def test_pages_have_a_bound(runs: Runs) -> None:
    holder = take_over(runs.shard)
    wanted = {b"%d" % number: bytes(PAGE_BYTES_MAX // 2) + b"x" for number in range(5)}
    for each in wanted.items():
        ask(runs.shard, KeepValues(holder, [each]))
    page = ask(runs.shard, ReadPage(holder, 0))
    assert (len(page.values), page.left) == (2, 3)
    assert values(runs.shard) == wanted


def test_nobody_is_answered_before_the_shard_has_recovered(runs: Runs) -> None:
    runs.shard.parts.lifecycle.is_restored = False
    assert ask(runs.shard, TakeOver()).error == NOT_RECOVERED


def test_what_is_no_question_is_refused(runs: Runs) -> None:
    questions: list[dict[str, Any]] = [{}, {"type": "trim"}, {"type": "write", "holder": "me", "values": []}]
    for question in questions:
        with pytest.raises(ValueError):
            runs.shard.parts.operation.kept.answer(question)


def test_a_snapshot_has_what_was_written_and_not_what_was_committed_when_it_began(full: Runs) -> None:
    """Its parts come behind what is written meanwhile: an older value there would be the last one."""
    shard = full.shard
    holder = take_over(shard)
    journal = shard.parts.operation.restorer.journal
    found = begin(shard, KeepValues(holder, [(b"a", b"7")]))
    shard.parts.turn.begin_turn()
    journal.write_snapshot(shard.now_us)
    for _ in range(8):
        shard.settle()
    assert found == [KeptReply()]
    assert values(full.kill()) == {b"a": b"7", b"b": b"2"}


def test_a_snapshot_has_each_value_as_it_is_when_its_part_is_written(full: Runs) -> None:
    shard = full.shard
    holder, parts = take_over(shard), shard.parts.operation.kept.all()
    ask(shard, KeepValues(holder, [(b"a", b"7"), (b"b", b""), (b"c", b"8")]))
    found = {each.name: each.value for each in parts}
    assert found.pop(KAFKA.holders) and found == {b"a": b"7"}, "b has gone, and c has an entry of its own"


def test_kinds_have_holders_and_names_of_their_own(runs: Runs) -> None:
    """Bridges that move to another process do not send Kafka's groups away, and neither reads the other's values."""
    shard = runs.shard
    kafka = take_over(shard)
    bridges = ask(shard, OfBridges(TakeOver())).holder
    assert not ask(shard, KeepValues(kafka, [(b"a", b"1")])).error
    assert not ask(shard, OfBridges(KeepValues(bridges, [(b"a", b"2"), (b"holders", b"3")]))).error
    later = ask(shard, OfBridges(TakeOver())).holder
    assert later == bridges + 1
    assert ask(shard, OfBridges(Confirm(bridges))).error == TAKEN_OVER and not ask(shard, Confirm(kafka)).error
    assert ask(shard, OfBridges(ReadPage(later, 0))).values == [(b"a", b"2"), (b"holders", b"3")]
    assert ask(shard, ReadPage(kafka, 0)).values == [(b"a", b"1")]
    shard = runs.kill()
    assert ask(shard, OfBridges(TakeOver())).holder == later + 1 and values(shard) == {b"a": b"1"}


def test_nobody_writes_before_taking_over_nor_how_many_did(runs: Runs) -> None:
    """A number that is none would end every taking over, and stay in the journal."""
    assert ask(runs.shard, KeepValues(0, [(b"a", b"1")])).error == TAKEN_OVER
    holder = take_over(runs.shard)
    reply = ask(runs.shard, KeepValues(holder, [(b"a", b"1"), (KAFKA.holders, b"\xff" * 9)]))
    assert reply.error == RESERVED
    for name in (BRIDGES.holders, BRIDGES.prefix + b"a"):
        assert ask(runs.shard, KeepValues(holder, [(name, b"1")])).error == RESERVED
    assert take_over(runs.shard) == holder + 1 and values(runs.shard) == {}
