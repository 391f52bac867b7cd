"""Shared subscriptions. MQTT 5.0, 4.8.2."""

import time

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.peer import DEADLINE_S, Peer
from tests.conformance.wire import Kind, Packet, Prop


def gather(peers: list[Peer]) -> list[list[bytes]]:
    """What each peer was given until now."""
    return [[one.payload for one in each] for each in deliveries(peers)]


def deliveries(peers: list[Peer]) -> list[list[Packet]]:
    """What each peer was given until now, not acknowledged."""
    return [[one for one in peer.pending() if one.kind == Kind.PUBLISH] for peer in peers]


def gathered(peers: list[Peer], count: int) -> list[list[bytes]]:
    """As `gather`, until `count` messages are there in sum."""
    found: list[list[bytes]] = [[] for _ in peers]
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        for mine, more in zip(found, gather(peers), strict=True):
            mine += more
        if sum(map(len, found)) >= count:
            return found
    raise AssertionError(f"{count} messages expected, got {found}")


def test_each_message_goes_to_one_member(join: Dial, topic: str) -> None:
    peers = [join() for _ in range(3)]
    for peer in peers:
        assert peer.subscribe(f"$share/group/{topic}") == [0]
    payloads = [b"%d" % number for number in range(60)]
    join().publish_all(topic, payloads)
    found = gathered(peers, 60)
    assert sorted(payload for one in found for payload in one) == sorted(payloads)
    assert gather(peers) == [[], [], []]


def test_every_member_is_given_something(join: Dial, topic: str) -> None:
    """4.8.2 leaves the choice to the broker; one member alone would be no sharing."""
    peers = [join() for _ in range(3)]
    for peer in peers:
        peer.subscribe(f"$share/group/{topic}", qos=1)
    publisher = join()
    for number in range(60):
        publisher.publish(topic, b"%d" % number)
    found = gathered(peers, 60)
    assert all(found), [len(one) for one in found]


def test_topics_that_others_want_as_well_arrive_together(join: Dial, topic: str) -> None:
    """One write with two topics, of which somebody else wants one."""
    member, other = join(), join()
    member.subscribe(f"$share/group/{topic}/#")
    other.subscribe(f"{topic}/a")
    join().send(wire.publish(f"{topic}/a", b"1"), wire.publish(f"{topic}/b", b"2"))
    assert member.payloads(2) == [b"1", b"2"]
    assert other.payloads(1) == [b"1"]


def test_each_group_gets_its_own_copy(join: Dial, topic: str) -> None:
    peers = [join() for _ in range(3)]
    for peer, group in zip(peers, ("one", "two", "three"), strict=True):
        peer.subscribe(f"$share/{group}/{topic}")
    join().publish(topic, b"x")
    assert [peer.payloads(1) for peer in peers] == [[b"x"]] * 3
    for peer in peers:
        peer.expect_silence()


def test_shared_and_ordinary_subscriptions_do_not_meet(join: Dial, topic: str) -> None:
    """4.8.2: a client with both gets a copy for each."""
    both, plain = join(), join()
    both.subscribe(f"$share/group/{topic}", topic)
    plain.subscribe(topic)
    join().publish(topic, b"x")
    assert both.payloads(2) == [b"x", b"x"]
    assert plain.payloads(1) == [b"x"]
    both.expect_silence()


def test_a_group_is_its_name_and_its_filter(join: Dial, topic: str) -> None:
    one, other = join(), join()
    one.subscribe(f"$share/group/{topic}/a")
    other.subscribe(f"$share/group/{topic}/+")
    join().publish(f"{topic}/a", b"x")
    assert (one.payloads(1), other.payloads(1)) == ([b"x"], [b"x"])
    one.expect_silence()
    other.expect_silence()


def test_wildcards_work_in_a_shared_filter(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(f"$share/group/{topic}/#")
    publisher = join()
    publisher.publish(f"{topic}/a/b", b"1")
    publisher.publish(f"{topic}", b"2")
    assert peer.payloads(2) == [b"1", b"2"]


def test_no_retained_message_greets_a_shared_subscription(join: Dial, topic: str) -> None:
    """4.8.2, 3.3.1.3."""
    publisher = join()
    publisher.publish(topic, b"kept", 1, retain=True)
    peer = join()
    peer.subscribe(f"$share/group/{topic}", qos=1)
    publisher.publish(topic, b"live", 1)
    assert peer.payloads(1) == [b"live"]
    peer.expect_silence()


@pytest.mark.parametrize("sent_qos", [0, 1, 2])
def test_each_member_has_the_qos_it_was_granted(join: Dial, topic: str, qos: int, sent_qos: int) -> None:
    """MQTT-4.8.2-3."""
    peer = join()
    assert peer.subscribe(f"$share/group/{topic}", qos=qos) == [qos]
    join().publish(topic, b"x", sent_qos)
    assert peer.message().qos == min(qos, sent_qos)


def test_members_of_one_group_each_have_their_own_qos(join: Dial, topic: str) -> None:
    """MQTT-4.8.2-3: what is granted to one is not what another one gets."""
    granted = (0, 1, 2)
    peers = [join() for _ in granted]
    for peer, qos in zip(peers, granted, strict=True):
        assert peer.subscribe(f"$share/group/{topic}", qos=qos) == [qos]
    publisher, found = join(), {qos: set[int]() for qos in granted}
    until = time.monotonic() + DEADLINE_S
    while not all(found.values()) and time.monotonic() < until:
        publisher.publish(topic, b"x", 2)
        for peer, qos in zip(peers, granted, strict=True):
            found[qos] |= {one.qos for one in peer.pending() if one.kind == Kind.PUBLISH}
    assert found == {qos: {qos} for qos in granted}


def test_a_member_that_unsubscribes_is_given_no_more(join: Dial, topic: str) -> None:
    goer, stayer = join(), join()
    for peer in (goer, stayer):
        peer.subscribe(f"$share/group/{topic}", qos=1)
    assert goer.unsubscribe(f"$share/group/{topic}") == [0]
    payloads = [b"%d" % number for number in range(10)]
    join().publish_all(topic, payloads, 1)
    assert stayer.payloads(10) == payloads
    goer.expect_silence()


def test_unsubscribing_the_plain_filter_leaves_the_shared_one(join: Dial, topic: str) -> None:
    peer = join()
    peer.subscribe(f"$share/group/{topic}")
    assert peer.unsubscribe(topic, f"$share/other/{topic}") == [0x11, 0x11]
    join().publish(topic, b"x")
    assert peer.payloads(1) == [b"x"]


def test_a_member_whose_connection_ends_is_given_no_more(join: Dial, topic: str) -> None:
    goer, stayer = join(), join()
    for peer in (goer, stayer):
        peer.subscribe(f"$share/group/{topic}", qos=1)
    goer.leave()
    payloads = [b"%d" % number for number in range(10)]
    join().publish_all(topic, payloads, 1)
    assert stayer.payloads(10) == payloads


def test_a_begun_qos_2_delivery_stays_with_its_member(join: Dial, name: str, topic: str) -> None:
    """MQTT-4.8.2-4: it is completed when that client is back, and goes to nobody else."""
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    member = join(name, properties=lasting)
    member.subscribe(f"$share/group/{topic}", qos=2)
    join().publish(topic, b"begun", 2)
    first = member.message(ack=False)
    other = join()
    other.subscribe(f"$share/group/{topic}", qos=2)
    member.reset()
    member = join(name, clean=False, properties=lasting)
    again = member.message()
    assert (again.packet_id, again.payload, again.dup) == (first.packet_id, b"begun", True)
    other.expect_silence()


def test_a_begun_qos_2_delivery_ends_with_its_session(join: Dial, name: str, topic: str) -> None:
    """MQTT-4.8.2-5."""
    member = join(name)
    member.subscribe(f"$share/group/{topic}", qos=2)
    publisher = join()
    publisher.publish(topic, b"begun", 2)
    member.message(ack=False)
    other = join()
    other.subscribe(f"$share/group/{topic}", qos=2)
    member.leave()
    publisher.publish(topic, b"next", 2)
    assert other.payloads(1) == [b"next"]
    other.expect_silence()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_that_a_member_refuses_goes_to_no_other(join: Dial, topic: str, qos: int) -> None:
    """MQTT-4.8.2-6."""
    peers = [join(), join()]
    for peer in peers:
        peer.subscribe(f"$share/group/{topic}", qos=qos)
    publisher = join()
    publisher.publish(topic, b"refused", qos)
    found = deliveries(peers)
    while not any(found):
        found = deliveries(peers)
    place = 0 if found[0] else 1
    taker, message = peers[place], found[place][0]
    taker.send(wire.ack(Kind.PUBACK if qos == 1 else Kind.PUBREC, message.packet_id, 0x83))
    taker.pending()  # the broker has the refusal, before anybody is asked what came of it
    publisher.publish(topic, b"next", qos)
    assert sorted(gathered(peers, 1)) == [[], [b"next"]]
    for peer in peers:
        peer.expect_silence()


@pytest.mark.parametrize("bad", ["$share/", "$share/group", "$share//a", "$share/group/", "$share/g+/a", "$share/g#/a"])
def test_a_share_name_that_breaks_the_rules_is_refused(join: Dial, bad: str) -> None:
    """MQTT-4.8.2-1 and 4.8.2-2."""
    peer = join()
    peer.send(wire.subscribe(1, [(bad, 0)]))
    answer = peer.receive()
    assert (answer.codes or [answer.code])[0] in (0x8F, 0x81, 0x82)


def test_messages_wait_for_a_group_whose_members_are_all_away(join: Dial, name: str, topic: str) -> None:
    lasting = [(Prop.SESSION_EXPIRY, 60)]
    member = join(name, properties=lasting)
    member.subscribe(f"$share/group/{topic}", qos=1)
    member.leave()
    join().publish_all(topic, [b"1", b"2"], 1)
    assert join(name, clean=False, properties=lasting).payloads(2) == [b"1", b"2"]


def test_a_present_member_is_served_though_another_is_away(join: Dial, name: str, topic: str) -> None:
    away = join(name, properties=[(Prop.SESSION_EXPIRY, 60)])
    here = join()
    for peer in (away, here):
        peer.subscribe(f"$share/group/{topic}", qos=1)
    away.leave()
    payloads = [b"%d" % number for number in range(10)]
    join().publish_all(topic, payloads, 1)
    mine = gathered([here], 1)[0]
    back = join(name, clean=False, properties=[(Prop.SESSION_EXPIRY, 60)])
    rest = gathered([here, back], 10 - len(mine))
    assert sorted([*mine, *rest[0], *rest[1]]) == payloads, "each once"


def test_a_dollar_filter_in_a_group_is_matched_below_the_group(join: Dial, topic: str) -> None:
    """4.7.2 within 4.8.2: the filter after the share name is what starts with a wildcard or not."""
    topic = topic.replace("/", "-")
    peer = join()
    peer.subscribe(f"$share/group/+/{topic}")
    publisher = join()
    publisher.publish(f"$own/{topic}", b"hidden", 1)
    publisher.publish(f"seen/{topic}", b"seen", 1)
    assert peer.payloads(1) == [b"seen"]
    peer.expect_silence()
