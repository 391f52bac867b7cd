"""Rules of a running broker: what goes through, what does not, and what a change of the file does at once."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Event, Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop, Will

RULES = """
[[rule]]
allow = ["publish", "subscribe", "replay", "retain", "will"]
topics = ["open/#", "own/%c/#"]

[[rule]]
allow = ["publish"]
topics = ["bin/#"]

[[rule]]
deny = ["subscribe"]
topics = ["open/secret"]
"""
NOT_AUTHORIZED = 0x87


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    folder = tmp_path_factory.mktemp("broker")
    (folder / "rules.toml").write_text(RULES)
    broker = Rumqd(
        folder / "data",
        "--set",
        f"auth.rules_file={folder}/rules.toml",
        "--set",
        f"shards.count={request.param}",
    )
    broker.start()
    yield broker
    broker.end()


def rules_of(broker: Rumqd, text: str, answer: str = "settings.reloaded") -> list[Event]:
    """Give the broker other rules; returns what each shard says to them, `answer`.

    Each shard reads the file at a time of its own: it may be written again only once all have answered, else one reads
    it while it is empty."""
    answers = ("settings.reloaded", "settings.refused")
    before = len(broker.named(*answers))
    (broker.data.parent / "rules.toml").write_text(text)
    broker.hang_up()
    count = int(broker.event("broker.starting")["shards"])
    broker.event(*answers, number=before + count)
    told = broker.named(*answers)[before:]
    assert [event["event"] for event in told] == [answer] * count
    return told


def join(broker: Rumqd, client_id: str, version: int = 5, **fields: object) -> Peer:
    peer = Peer(broker.address, version)
    assert peer.connect(client_id, **fields).code == 0
    return peer


@pytest.mark.parametrize("qos", [1, 2])
def test_a_forbidden_publish_is_answered_and_goes_nowhere(broker: Rumqd, qos: int) -> None:
    watcher = join(broker, "watcher")
    assert watcher.subscribe("open/#") == [0]
    peer = join(broker, "p")
    assert peer.publish("closed/x", b"no", qos) == NOT_AUTHORIZED
    assert peer.publish("own/q/x", b"no", qos) == NOT_AUTHORIZED
    assert peer.publish("open/x", b"yes", qos) in (0, 0x10)
    assert watcher.payloads(1) == [b"yes"]
    told = broker.heard(lambda e: e["event"] == "permission.refused" and e["topic"] == "closed/x")
    assert (told["client_id"], told["action"]) == ("p", "publish")


def test_after_a_pubrec_that_refuses_the_identifier_is_free(broker: Rumqd) -> None:
    """MQTT-4.3.3-9."""
    watcher, peer = join(broker, "watcher9"), join(broker, "p9")
    assert watcher.subscribe("open/#") == [0]
    peer.send(wire.publish("closed/x", b"no", 2, 7))
    assert peer.expect(Kind.PUBREC).code == NOT_AUTHORIZED
    peer.send(wire.publish("open/nine", b"yes", 2, 7))
    assert peer.expect(Kind.PUBREC).code == 0
    peer.send(wire.ack(Kind.PUBREL, 7))
    assert peer.expect(Kind.PUBCOMP).code == 0
    assert watcher.payloads(1) == [b"yes"]


@pytest.mark.parametrize("qos", [1, 2])
def test_an_older_client_is_answered_as_if_it_had_been_taken(broker: Rumqd, qos: int) -> None:
    watcher, peer = join(broker, "watcher4", 4), join(broker, "p4", 4)
    watcher.subscribe("own/watcher4/#")
    peer.publish("own/watcher4/x", b"no", qos)
    peer.publish("open/x", b"yes", qos)
    watcher.expect_silence()
    peer.expect_silence()


def test_many_topics_of_one_connection(broker: Rumqd) -> None:
    """More than the small table holds, allowed and forbidden in turn."""
    watcher = join(broker, "w")
    watcher.subscribe("own/w/#")
    peer = join(broker, "w2")
    watcher.publish_all("own/w/0", [b"first"], 1)
    for number in range(100):
        assert watcher.publish(f"own/w/{number}", b"%d" % number, 1) in (0, 0x10)
        assert peer.publish(f"own/w/{number}", b"bad", 1) == NOT_AUTHORIZED
    assert watcher.payloads(101) == [b"first", *(b"%d" % number for number in range(100))]


def test_retain_is_a_permission_of_its_own(broker: Rumqd) -> None:
    peer = join(broker, "r")
    assert peer.publish("bin/x", b"kept", 1, retain=True) == NOT_AUTHORIZED
    assert peer.publish("bin/x", b"once", 1) in (0, 0x10)
    assert peer.publish("bin/x", b"kept", 1, retain=True) == NOT_AUTHORIZED


def test_what_may_not_be_received_is_left_out(broker: Rumqd) -> None:
    publisher = join(broker, "s1")
    publisher.publish("open/secret", b"kept secret", 1, retain=True)
    publisher.publish("open/known", b"kept", 1, retain=True)
    peer = join(broker, "s2")
    assert peer.subscribe("#", "open/secret", "closed/#", "$share/g/open/#") == [0, 0x87, 0x87, 0x87]
    assert b"kept" in peer.payloads(1)
    publisher.publish("open/secret", b"secret", 1)
    publisher.publish("bin/y", b"for nobody", 1)
    publisher.publish("open/known", b"", 1, retain=True)
    assert peer.payloads(1) == [b""]
    peer.expect_silence()
    publisher.publish("open/secret", b"", 1, retain=True)


def test_an_older_client_is_refused_in_suback(broker: Rumqd) -> None:
    peer = join(broker, "s4", 4)
    assert peer.subscribe("closed/#", "open/#") == [0x80, 0]


def test_the_past_needs_both_permissions(broker: Rumqd) -> None:
    publisher = join(broker, "l1")
    publisher.publish("own/l1/x", b"old", 1)
    assert publisher.subscribe("$log/earliest/own/l1/#", "$log/earliest/bin/#") == [0, NOT_AUTHORIZED]
    assert publisher.payloads(1) == [b"old"]


def test_a_forbidden_will_is_not_published(broker: Rumqd) -> None:

    watcher = join(broker, "willing")
    watcher.subscribe("own/willing/#", "open/will")
    for number, topic in enumerate(["own/willing/will", "open/will"]):
        peer = Peer(broker.address)
        peer.connect(f"dying-{number}", will=Will(topic, b"gone"))
        peer.close()
    assert [m.topic for m in watcher.messages(1)] == ["open/will"]
    watcher.expect_silence()


def test_changed_rules_hold_at_once_for_who_is_here(broker: Rumqd) -> None:
    peer, publisher = join(broker, "here"), join(broker, "other")
    peer.subscribe("open/#", "own/here/#")
    assert publisher.publish("open/x", b"1", 1) in (0, 0x10)
    assert peer.payloads(1) == [b"1"]
    try:
        rules_of(broker, '[[rule]]\nallow = ["publish", "subscribe"]\ntopics = ["own/#", "open/other"]\n')
        assert publisher.publish("open/x", b"2", 1) == NOT_AUTHORIZED
        assert publisher.publish("open/other", b"3", 1) in (0, 0x10)
        assert publisher.publish("own/here/x", b"4", 1) in (0, 0x10)
        assert sorted(peer.payloads(2)) == [b"3", b"4"]
        peer.expect_silence()
    finally:
        rules_of(broker, RULES)
    assert publisher.publish("open/x", b"5", 1) in (0, 0x10)
    assert peer.payloads(1) == [b"5"]


def test_faulty_rules_change_nothing(broker: Rumqd) -> None:
    told = rules_of(broker, "[[rule]]\nallow = 3\n", "settings.refused")
    assert all("rules.toml" in event["why"] for event in told)
    for number in range(4):  # some live in each shard
        assert join(broker, f"after-{number}").publish("open/x", b"1", 1) in (0, 0x10)
    rules_of(broker, RULES)


def test_a_session_that_comes_back_is_held_to_the_rules_of_its_listener(broker: Rumqd) -> None:

    peer = join(broker, "back", properties=[(Prop.SESSION_EXPIRY, 100)])
    peer.subscribe("open/#", qos=1)
    peer.leave()
    publisher = join(broker, "other2")
    try:
        publisher.publish("open/known", b"kept for it", 1)
        rules_of(broker, '[[rule]]\nallow = ["publish", "subscribe"]\ntopics = ["open/other"]\n')
        again = join(broker, "back", clean=False, properties=[(Prop.SESSION_EXPIRY, 100)])
        publisher.publish("open/other", b"1", 1)
        assert again.payloads(1) == [b"1"]
    finally:
        rules_of(broker, RULES)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["eve", "c", "publish", "open/1"], 0, "rule 1 allows publish open/#"),
        (["eve", "c", "publish", "other"], 1, "no rule"),
        (["-", "c", "subscribe", "open/#"], 0, "in part"),
        (["-", "c", "subscribe", "open/secret"], 1, "rule 3 denies"),
        (["-", "c", "fly", "open"], 2, "fly"),
    ],
)
def test_a_decision_can_be_asked_for(tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    ended = subprocess.run(
        [sys.executable, "-m", "rumq", "acl", "test", *arguments, "--rules", str(rules)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == status
    assert words in ended.stdout + ended.stderr


def test_a_replay_that_rules_forbid_is_not_told_as_started(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'forbidden_subscriptions = "grant"\n[[rule]]\nallow = ["subscribe", "replay"]\ntopics = ["open/#"]\n'
    )
    started = Rumqd(tmp_path / "data", "--set", f"auth.rules_file={rules}")
    started.start()
    peer = join(started, "curious")
    assert peer.subscribe("$log/earliest/closed/#") == [0]
    assert peer.subscribe("$log/earliest/open/#") == [0]
    assert started.event("replay.started")["filter"] == "open/#"
    assert started.stop() == 0
    assert len(started.named("replay.started")) == 1
