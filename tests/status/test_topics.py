"""What one broker tells of itself, over a clock that the test turns and a disk that counts what it is asked."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import NOW
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet, Prop, Will
from tests.faults.shard import Client, Shard

SECONDS = 10
NOT_AUTHORIZED = 0x87
LASTING: dict[str, Any] = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 86_400)]}


class CountingFiles(SimulatedFiles):
    """changes: how often something was written or synced"""

    changes = 0

    def write(self, *args: Any) -> None:
        self.changes += 1
        super().write(*args)

    def sync(self, handle: int) -> None:
        self.changes += 1
        super().sync(handle)


@pytest.fixture
def shard() -> Iterator[Shard]:
    shard = Shard(CountingFiles(), status_seconds=SECONDS)
    yield shard
    shard.end()


def told(client: Client) -> dict[str, str]:
    """Topic below $SYS -> the newest text."""
    return {m.topic.removeprefix("$SYS/"): m.payload.decode() for m in published(client)}


def published(client: Client) -> list[Packet]:
    return [packet for packet in client.take() if packet.kind == Kind.PUBLISH]


def watching(shard: Shard, *filters: str, version: int = 5, qos: int = 0, **connect: Any) -> Client:
    client = Client(shard, "watcher", version, keep_alive=0, **connect)
    client.say(wire.subscribe(1, [(each, qos) for each in filters or ("$SYS/#",)], version=version))
    return client


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_whoever_subscribes_is_greeted_with_everything(shard: Shard, version: int, qos: int) -> None:
    greeting = published(watching(shard, version=version, qos=qos))
    assert {(message.retain, message.qos) for message in greeting} == {(True, 0)}
    texts = {message.topic: message.payload for message in greeting}
    assert texts["$SYS/broker/version"] == b"rumq version 1"
    assert texts["$SYS/broker/uptime"] == b"0 seconds"
    assert texts["$SYS/broker/clients/connected"] == b"0"
    assert len(texts) == len(greeting) > 25


@pytest.mark.parametrize("version", [4, 5])
def test_what_changes_comes_live_and_what_does_not_stays_away(shard: Shard, version: int) -> None:
    watcher = watching(shard, version=version)
    watcher.take()
    shard.after(SECONDS)
    live = published(watcher)
    assert {message.retain for message in live} == {False}
    texts = {message.topic: message.payload for message in live}
    assert texts["$SYS/broker/uptime"] == b"10 seconds"
    assert texts["$SYS/broker/clients/connected"] == b"1"
    assert "$SYS/broker/version" not in texts and "$SYS/broker/clients/expired" not in texts
    assert len(texts) == len(live)
    shard.after(SECONDS - 1)
    assert published(watcher) == []


def test_the_numbers_are_those_of_the_traffic(shard: Shard) -> None:
    publisher, reader = Client(shard, "p", 5), Client(shard, "r", 5, **LASTING)
    reader.say(wire.subscribe(1, [("a/#", 1), ("$share/g/b", 0)]))
    before = publisher.bytes_in + reader.bytes_in
    packets = [wire.publish("a/b", b"12345", qos, n) for n, qos in enumerate([0, 1, 1, 2], start=10)]
    packets[0] = wire.publish("a/b", b"12345", retain=True)
    publisher.say(*packets)
    publisher.say(wire.ack(Kind.PUBREL, 13), wire.PINGREQ)
    got = published(reader)
    assert [message.qos for message in got] == [0, 1, 1, 1]
    reader.say(*[wire.ack(Kind.PUBACK, message.packet_id) for message in got if message.qos])
    frames = sum(map(len, packets))
    received = before + frames + 4 + len(wire.PINGREQ) + 3 * 4
    assert publisher.bytes_in + reader.bytes_in == received
    sent = publisher.bytes_out + reader.bytes_out
    shard.after(SECONDS)
    texts = told(watching(shard))
    assert texts["broker/publish/messages/received"] == "4"
    assert texts["broker/publish/messages/sent"] == "4"
    assert texts["broker/publish/bytes/received"] == str(frames)
    assert texts["broker/bytes/received"] == str(received)
    assert texts["broker/bytes/sent"] == str(sent)
    # 2 CONNECT, 1 SUBSCRIBE, 4 PUBLISH, 1 PUBREL, 1 PINGREQ, 3 PUBACK
    assert texts["broker/messages/received"] == "12"
    # 2 CONNACK, 1 SUBACK, 2 PUBACK, 1 PUBREC, 1 PUBCOMP, 1 PINGRESP, 4 PUBLISH
    assert texts["broker/messages/sent"] == "12"
    assert texts["broker/messages/stored"] == texts["broker/store/messages/count"] == "4"
    assert int(texts["broker/store/messages/bytes"]) >= frames
    assert texts["broker/subscriptions/count"] == "2"
    assert texts["broker/shared_subscriptions/count"] == "1"
    assert texts["broker/retained messages/count"] == "1"
    assert texts["broker/publish/messages/dropped"] == "0"
    assert texts["broker/clients/connected"] == texts["broker/clients/total"] == "2"
    assert texts["rumq/partitions/main/0/next_lsn"] == texts["rumq/partitions/main/0/committed_lsn"] == "4"
    assert texts["rumq/shards/0/connections"] == "2"
    assert texts["rumq/shards/0/topics"] == "1"
    assert float(texts["broker/load/connections/1min"]) == pytest.approx(1.84, abs=0.01)


def test_clients_that_leave_keep_what_they_counted(shard: Shard) -> None:
    leaving = Client(shard, "leaves", 5)
    lasting = Client(shard, "lasts", 5, clean=False, properties=[(Prop.SESSION_EXPIRY, 15)])
    leaving.say(wire.publish("a", b"x"), wire.disconnect())
    lasting.say(wire.publish("a", b"x"))
    lasting.say(wire.disconnect())
    shard.after(SECONDS)
    watcher = watching(shard)
    texts = told(watcher)
    assert texts["broker/publish/messages/received"] == "2"
    assert (texts["broker/clients/connected"], texts["broker/clients/disconnected"]) == ("0", "1")
    assert texts["broker/clients/expired"] == "0"
    shard.after(SECONDS)
    texts = told(watcher)
    assert (texts["broker/clients/disconnected"], texts["broker/clients/expired"]) == ("0", "1")
    assert "broker/publish/messages/received" not in texts  # it is what it was


def test_nothing_is_counted_twice(shard: Shard) -> None:
    publisher = Client(shard, "p", 5)
    for _ in range(3):
        publisher.say(wire.publish("a", b"x", 1, 1))
        shard.after(SECONDS)
    publisher.say(wire.disconnect())
    shard.after(SECONDS)
    texts = told(watching(shard))
    assert texts["broker/publish/messages/received"] == "3"
    assert texts["broker/messages/received"] == "5"


def test_more_sessions_than_a_turn_counts(shard: Shard) -> None:
    for n in range(1300):
        Client(shard, f"c{n}", 5)
    shard.after(SECONDS)
    while shard.parts.turn.seconds_to_next_deadline() == 0.0:
        shard.settle()
    assert told(watching(shard))["broker/clients/connected"] == "1300"


def test_wildcards_do_not_stand_for_sys(shard: Shard) -> None:
    """MQTT-4.7.2-1."""
    watcher = watching(shard, "#", "+/broker/#", "+/+/uptime")
    shard.after(SECONDS)
    assert published(watcher) == []


@pytest.mark.parametrize(
    ("topic_filter", "count"),
    [
        ("$SYS/broker/uptime", 1),
        ("$SYS/+/uptime", 1),
        ("$SYS/broker/clients/+", 7),
        ("$SYS/broker/uptime/#", 1),
    ],
)
def test_filters_below_sys_match_as_any_others(shard: Shard, topic_filter: str, count: int) -> None:
    assert len(published(watching(shard, topic_filter))) == count


def test_a_subscription_made_again_is_greeted_as_it_asks(shard: Shard) -> None:
    watcher = watching(shard, "$SYS/broker/uptime")
    assert len(published(watcher)) == 1
    for options, count in ((0x00, 1), (0x10, 0), (0x20, 0)):  # retain handling: always, if new, never
        watcher.say(wire.subscribe(2, [("$SYS/broker/uptime", options)]))
        assert len(published(watcher)) == count
    watcher.say(wire.unsubscribe(3, ["$SYS/broker/uptime"]))
    watcher.take()
    shard.after(SECONDS)
    assert published(watcher) == []


def test_retain_as_published_and_no_local(shard: Shard) -> None:
    watcher = watching(shard, "$SYS/broker/uptime", qos=0x0C)
    watcher.take()
    shard.after(SECONDS)
    assert [message.retain for message in published(watcher)] == [True]


def test_a_share_splits_what_is_told(shard: Shard) -> None:
    members = [Client(shard, name, 5) for name in "ab"]
    for member in members:
        member.say(wire.subscribe(1, [("$share/g/$SYS/broker/uptime", 1)]))
    for _ in range(4):
        shard.after(SECONDS)
    texts = [message.payload for member in members for message in published(member)]
    assert sorted(texts) == [b"10 seconds", b"20 seconds", b"30 seconds", b"40 seconds"]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("topic", ["$SYS", "$SYS/broker/uptime", "$SYS/mine"])
def test_clients_cannot_publish_there(shard: Shard, version: int, topic: str) -> None:
    watcher, liar = watching(shard), Client(shard, "liar", version)
    watcher.take()
    liar.say(*[wire.publish(topic, b"lie", qos, qos and 7 + qos, version=version, retain=True) for qos in range(3)])
    code = NOT_AUTHORIZED if version == 5 else 0
    assert [(packet.kind, packet.code) for packet in liar.take()] == [
        (Kind.PUBACK, code),
        (Kind.PUBREC, code),
    ]
    liar.say(wire.publish("mine", b"goes on", 1, 3, version=version))
    assert [packet.code for packet in liar.take()] == [0]
    assert published(watcher) == []
    assert b"lie" not in [message.payload for message in published(watching(shard))]
    assert shard.store.partitions[1].topic_names == [b"mine"]


def test_no_alias_leads_there(shard: Shard) -> None:
    watcher, liar = watching(shard), Client(shard, "liar", 5)
    watcher.take()
    liar.say(wire.publish("$SYS/mine", b"lie", 1, 1, properties=[(Prop.TOPIC_ALIAS, 1)]))
    liar.say(wire.publish("", b"lie", 1, 2, properties=[(Prop.TOPIC_ALIAS, 1)]))
    assert [packet.code for packet in liar.take()] == [NOT_AUTHORIZED] * 2
    assert published(watcher) == []


def test_no_will_goes_there(shard: Shard) -> None:
    watcher = watching(shard)
    watcher.take()
    dying = Client(shard, "dying", 5, will=Will("$SYS/broker/version", b"lie", 1, True))
    dying.link.lost("test")
    shard.settle()
    assert published(watcher) == []


def test_a_replay_of_it_is_refused(shard: Shard) -> None:
    client = Client(shard, "r", 5)
    client.say(wire.subscribe(1, [("$log/earliest/$SYS/#", 0)]))
    (suback,) = client.take()
    assert suback.codes == [0x8F]


def test_nothing_of_it_is_in_any_log(shard: Shard) -> None:
    """Not in the streams, not in the journal of sessions, and no disk is asked to write because of it."""
    files = shard.files
    assert isinstance(files, CountingFiles)
    watcher = watching(shard, qos=2, **LASTING)
    for _ in range(3):
        shard.after(SECONDS)  # what the client brought about is written down, and the mark behind it
    watcher.take()
    ends = [partition.next_lsn for partition in shard.store.own]
    before = files.changes
    for _ in range(60):
        shard.after(SECONDS)
        assert published(watcher)
    assert files.changes == before
    assert [partition.next_lsn for partition in shard.store.own] == ends == [0, 0]
    assert files.names("data") == ["FORMAT", "LOCK", "_state", "main", "other"]
    assert len(shard.parts.router.retained) == 0


def test_a_session_that_was_away_gets_the_last_minutes_and_no_event_tells_of_the_rest(shard: Shard) -> None:
    watcher = watching(shard, "$SYS/broker/uptime", qos=1, **LASTING)
    watcher.say(wire.disconnect())
    for _ in range(1000):
        shard.after(SECONDS)
    again = Client(shard, "watcher", 5, **LASTING)
    for _ in range(20):
        shard.settle()  # a piece each turn
    texts = [message.payload for message in published(again)]
    assert 10 < len(texts) < 1000 and texts[-1] == b"10000 seconds"
    assert not shard.told("log.gap")
    assert shard.parts.delivery.drop_counters.total() == 0


def test_nobody_is_behind_with_what_the_broker_says_of_itself(shard: Shard) -> None:
    """It says it again and again: a session that waits for messages would fall behind by that alone."""
    away = Client(shard, "away", 5, **LASTING)
    away.say(wire.subscribe(1, [("a", 1)]), wire.disconnect())
    for _ in range(5):
        shard.after(SECONDS)
    session = shard.parts.clients.broker.registry.sessions["away"]
    assert shard.parts.operation.consumers.lag.session_lag(session)[0] == 0
    Client(shard, "p", 5).say(wire.publish("a", b"x", 1, 1))
    assert shard.parts.operation.consumers.lag.session_lag(session)[0] == 1


def test_a_lasting_session_goes_on_with_the_next_run(shard: Shard) -> None:
    watcher = watching(shard, "$SYS/broker/uptime", "a", qos=1, **LASTING)
    shard.after(SECONDS)
    watcher.say(wire.disconnect())
    shard.after(2.0)
    Client(shard, "p", 5).say(wire.publish("a", b"kept", 1, 1))
    following = Shard(shard.files.after_kill(), status_seconds=SECONDS, now_us=shard.now_us + 1_000_000, seed=1)
    try:
        told: list[Any] = []
        following.parts.operation.admin.answer({"ask": "clients", "client": "watcher"})(told.append)  # type: ignore[operator]
        (about,) = told[0]["clients"]
        assert about["behind_records"] < 100  # it stands where this run began to tell
        again = Client(following, "watcher", 5, **LASTING)
        following.settle()
        assert sorted(message.payload for message in published(again)) == [b"0 seconds", b"kept"]
        following.after(SECONDS)
        assert [message.payload for message in published(again)] == [b"10 seconds"]
        assert not following.told("log.gap")
    finally:
        following.end()


def test_a_session_outlives_runs_with_and_without_it() -> None:
    """The journal's vectors have a place for its partition in some runs, and none in others."""
    files, now_us = SimulatedFiles(), NOW
    for run, seconds in enumerate([0, SECONDS, 0, 0, SECONDS, SECONDS]):
        shard = Shard(files, status_seconds=seconds, now_us=now_us, seed=run)
        client = Client(shard, "lasting", 5, keep_alive=0, **LASTING)
        shard.settle()
        kept = [message for message in published(client) if message.topic == "a"]
        assert [message.payload for message in kept] == [b"%d" % run] * (run > 0)
        client.say(*[wire.ack(Kind.PUBACK, message.packet_id) for message in kept])
        client.say(wire.subscribe(1, [("$SYS/broker/uptime", 1), ("a", 1)]))
        shard.after(SECONDS)
        assert (b"10 seconds" in [message.payload for message in published(client)]) is bool(seconds)
        client.say(wire.disconnect())
        Client(shard, "p", 5).say(wire.publish("a", b"%d" % (run + 1), 1, 1))
        shard.after(2.0)
        assert not shard.told("log.gap", "client.crashed")
        shard.end()
        files, now_us = files.after_kill(), shard.now_us + 1_000_000


def test_with_an_interval_of_0_there_is_nothing() -> None:
    shard = Shard(SimulatedFiles())
    watcher = watching(shard)
    shard.after(3600)
    assert published(watcher) == []
    watcher.say(wire.publish("$SYS/x", b"lie", 1, 1))
    assert [packet.code for packet in watcher.take()] == [NOT_AUTHORIZED]
    shard.end()
