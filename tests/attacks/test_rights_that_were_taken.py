"""A session outlives a permission: what its client may not have any more does not come, and its will does not go.

The attacks: resume a replay that `rumq-from` asked for, in place of `$log/`; stay connected, or away, while the rules
become narrower; leave a will, and die after the permission to publish it is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop, Will

ALL = '"publish", "subscribe", "replay", "retain", "will"'
LASTING = [(Prop.SESSION_EXPIRY, 1000), (Prop.RECEIVE_MAXIMUM, 1)]
FROM_EARLIEST = [(Prop.USER_PROPERTY, ("rumq-from", "earliest"))]


def rule(allow: str, *topics: str) -> str:
    return f"[[rule]]\nallow = [{allow}]\ntopics = [{', '.join(map(repr, topics))}]\n"


OPEN = ("open/1", "open/2")
NO_PAST = rule(ALL, "open/#") + rule('"publish", "subscribe"', "secret/#")
EVERYTHING = rule(ALL, "#")
NO_SECRETS = rule(ALL, "open/#")


@pytest.fixture(params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rumqd]:
    (tmp_path / "rules.toml").write_text(EVERYTHING)
    broker = Rumqd(
        tmp_path / "data", "--set", f"auth.rules_file={tmp_path}/rules.toml", "--set",
        f"shards.count={request.param}",
    )  # fmt: skip
    broker.start()
    yield broker
    broker.end()


def rules_of(broker: Rumqd, text: str) -> None:
    before = len(broker.named("settings.reloaded"))
    (broker.data.parent / "rules.toml").write_text(text)
    broker.hang_up()
    broker.event("settings.reloaded", number=before + int(broker.event("broker.starting")["shards"]))


def join(broker: Rumqd, client_id: str, version: int = 5, **fields: object) -> Peer:
    peer = Peer(broker.address, version)
    assert peer.connect(client_id, **fields).code == 0
    return peer


def publish_the_past(broker: Rumqd) -> None:
    with join(broker, "publisher") as publisher:
        publisher.publish("open/1", b"open", 1)
        for number in range(20):
            publisher.publish(f"secret/{number}", b"secret", 1)
        publisher.publish("open/2", b"open", 1)


def expect_no_secrets(peer: Peer, *topics: str) -> None:
    """All that is open comes, in what order shards have it; the secret past does not."""
    with peer:
        assert {message.topic for message in peer.messages(len(topics))} == set(topics)
        peer.expect_silence()


@pytest.mark.parametrize("topic_filter", ["#", "$log/earliest/#"])
@pytest.mark.parametrize("how", ["resume", "resume after a kill"])
def test_a_replay_stays_one_when_its_session_is_resumed(broker: Rumqd, topic_filter: str, how: str) -> None:
    rules_of(broker, NO_PAST)
    publish_the_past(broker)
    peer = join(broker, "curious", properties=LASTING)
    assert peer.subscribe(topic_filter, qos=1, properties=FROM_EARLIEST) == [1]
    assert peer.message(ack=False).topic in OPEN
    peer.leave()
    if how == "resume after a kill":
        broker.kill()
        broker.start()
    expect_no_secrets(join(broker, "curious", clean=False, properties=LASTING), *OPEN)


@pytest.mark.parametrize("topic_filter", ["#", "$log/earliest/#"])
def test_new_rules_know_a_replay(broker: Rumqd, topic_filter: str) -> None:
    publish_the_past(broker)
    peer = join(broker, "curious", properties=LASTING)
    assert peer.subscribe(topic_filter, qos=1, properties=FROM_EARLIEST) == [1]
    first = peer.message(ack=False)
    rules_of(broker, NO_PAST)
    peer.acknowledge(first)
    expect_no_secrets(peer, *(set(OPEN) - {first.topic}))


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("how", ["resume", "resume after a kill"])
def test_what_was_in_flight_is_not_sent_again_when_it_may_not_be_had(broker: Rumqd, qos: int, how: str) -> None:
    peer = join(broker, "away", properties=[(Prop.SESSION_EXPIRY, 1000)])
    peer.subscribe("#", qos=qos)
    with join(broker, "publisher") as publisher:
        for topic in ("open/1", "secret/1", "open/2", "secret/2"):
            publisher.publish(topic, b"", qos)
    in_flight = {peer.message(ack=False).topic for _ in range(4)}
    assert in_flight == {"open/1", "secret/1", "open/2", "secret/2"}
    peer.leave()
    rules_of(broker, NO_SECRETS)
    if how == "resume after a kill":
        broker.kill()
        broker.start()
    with join(broker, "away", clean=False, properties=[(Prop.SESSION_EXPIRY, 1000)]) as again:
        assert again.connack.session_present
        assert {message.topic for message in again.messages(2)} == set(OPEN)
        again.expect_silence()
        # Packet ids of what was left out are free again.
        with join(broker, "publisher") as publisher:
            publisher.publish("open/3", b"", qos)
        assert again.message().topic == "open/3"


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("retain", [False, True])
def test_a_will_needs_its_permission_when_it_is_due(broker: Rumqd, version: int, retain: bool) -> None:
    watcher = join(broker, "watcher")
    watcher.subscribe("#")
    dying = [
        join(broker, f"dying-{topic[:4]}", version, will=Will(topic, retain=retain))
        for topic in ("secret/will", "open/will")
    ]
    rules_of(broker, rule('"subscribe"', "#") + NO_SECRETS)
    for peer in dying:
        peer.reset()
    assert watcher.message().topic == "open/will"
    watcher.expect_silence()
    told = broker.event("permission.refused")
    assert (told["client_id"], told["action"], told["topic"]) == ("dying-secr", "will", "secret/will")


@pytest.mark.parametrize("how", ["delayed", "after a kill"])
def test_a_will_that_waited_needs_its_permission(broker: Rumqd, how: str) -> None:
    """Its session ends before its time has come, so that it is due."""
    delay = [(Prop.WILL_DELAY, 500)]
    topics = ("secret/will", "open/will")
    for topic in topics:
        will = Will(topic, properties=delay)
        join(broker, f"dying-{topic[:4]}", properties=LASTING, will=will).reset()
    rules_of(broker, rule('"subscribe"', "#") + NO_SECRETS)
    if how == "after a kill":
        broker.kill()
        broker.start()
    watcher = join(broker, "watcher")
    watcher.subscribe("#")
    for topic in topics:
        join(broker, f"dying-{topic[:4]}")
    assert watcher.message().topic == "open/will"
    assert broker.event("permission.refused")["topic"] == "secret/will"
    watcher.expect_silence()
