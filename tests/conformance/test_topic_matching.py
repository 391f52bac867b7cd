"""Which filter matches which topic. MQTT 5.0 and 3.1.1, 4.7; the tables hold the standard's own examples."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial

# Below a prefix of the test's own; "" is the prefix itself.
MATCHES = {
    "sport/tennis/player1/#": {
        "sport/tennis/player1",
        "sport/tennis/player1/ranking",
        "sport/tennis/player1/score/wimbledon",
    },
    "sport/#": {"sport", "sport/", "sport/tennis/player1", "sport/tennis/player1/ranking"},
    "sport/tennis/+": {"sport/tennis/player1", "sport/tennis/player2", "sport/tennis/"},
    "sport/+": {"sport/"},
    "+": {"sport", "finance", ""},
    "+/+": {"sport/", "/finance", "/"},
    "/+": {"/finance", "/"},
    "+/tennis/#": {"sport/tennis/player1", "sport/tennis/player2", "sport/tennis/player1/ranking"},
    "sport/+/player1": {"sport/tennis/player1"},
    "sport//+": {"sport//x"},
    "sport/+/x": {"sport//x"},
    "Sport": {"Sport"},
    "finance": {"finance"},
    "finance/": {"finance/"},
    "a b/c": {"a b/c"},
    "ünï/çødé/😀": {"ünï/çødé/😀"},
}
TOPICS = sorted(
    {
        "sport",
        "sport/",
        "Sport",
        "finance",
        "finance/",
        "/finance",
        "",
        "/",
        "sport//x",
        "sport/tennis/",
        "sport/tennis/player1",
        "sport/tennis/player2",
        "sport/tennis/player1/ranking",
        "sport/tennis/player1/score/wimbledon",
        "a b/c",
        "ünï/çødé/😀",
    }
)


def matches(topic_filter: str, topic: str) -> bool:
    """4.7.1 word for word, over levels; topics here never start with $."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    for place, want in enumerate(wanted):
        if want == "#":
            return True
        if place >= len(levels) or want not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)


@pytest.mark.parametrize("topic_filter", MATCHES.keys())
def test_a_filter_matches_its_topics_and_no_others(join: Dial, version: int, topic: str, topic_filter: str) -> None:
    expected = {name for name in TOPICS if matches(topic_filter, name)}
    assert expected >= MATCHES[topic_filter]
    peer, publisher = join(version=version), join(version=version)
    peer.subscribe(f"{topic}/{topic_filter}", f"{topic}-end", qos=1)
    for name in TOPICS:
        publisher.publish(f"{topic}/{name}", b"x", 1)
    publisher.publish(f"{topic}-end", b"end", 1)
    found = [one.topic for one in peer.messages(len(expected) + 1)][:-1]
    assert sorted(found) == sorted(f"{topic}/{name}" for name in expected)
    peer.expect_silence()


@pytest.mark.parametrize("topic_filter", MATCHES.keys())
def test_retained_messages_match_as_live_ones_do(join: Dial, version: int, topic: str, topic_filter: str) -> None:
    publisher = join(version=version)
    for name in TOPICS:
        publisher.publish(f"{topic}/{name}", b"x", 1, retain=True)
    peer = join(version=version)
    peer.subscribe(f"{topic}/{topic_filter}")
    expected = [f"{topic}/{name}" for name in TOPICS if matches(topic_filter, name)]
    assert sorted(one.topic for one in peer.messages(len(expected))) == sorted(expected)
    peer.expect_silence()


@pytest.mark.parametrize("topic_filter", ["#", "+/#", "+/monitor/{}", "+/+/#"])
def test_a_leading_wildcard_does_not_match_a_dollar_topic(
    join: Dial, version: int, topic: str, topic_filter: str
) -> None:
    """MQTT-4.7.2-1."""
    peer, publisher = join(version=version), join(version=version)
    topic = topic.replace("/", "-")
    peer.subscribe(topic_filter.format(topic), f"$own/{topic}", qos=1)
    publisher.publish(f"$own/monitor/{topic}", b"hidden", 1)
    publisher.publish(f"$own/{topic}", b"seen", 1)
    found = [peer.message()]
    while found[-1].payload != b"seen":
        found.append(peer.message())
    assert all(not one.topic.startswith("$") for one in found[:-1])


@pytest.mark.parametrize("topic_filter", ["$own/#", "$own/monitor/+", "$own/+/{}"])
def test_a_filter_that_starts_with_the_dollar_level_matches(
    join: Dial, version: int, topic: str, topic_filter: str
) -> None:
    topic = topic.replace("/", "-")
    peer = join(version=version)
    peer.subscribe(topic_filter.format(topic))
    join(version=version).publish(f"$own/monitor/{topic}", b"seen", 1)
    assert peer.message().topic == f"$own/monitor/{topic}"


def test_a_dollar_inside_a_topic_is_a_character_like_others(join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.subscribe(f"{topic}/+/x")
    join(version=version).publish(f"{topic}/$a/x", b"seen")
    assert peer.message().topic == f"{topic}/$a/x"


def test_topics_are_not_normalised(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.7.3-4, 1.5.4-3: composed and decomposed letters differ, U+FEFF stays, spaces stay."""
    names = ["é", "e\u0301", "\ufeffx", "x", " x", "x ", "X", "\u212b", "å"]
    for name in names:
        peer = join(version=version)
        peer.subscribe(f"{topic}/{name}", f"{topic}/end", qos=1)
        publisher = join(version=version)
        for other in names:
            publisher.publish(f"{topic}/{other}", other.encode(), 1)
        publisher.publish(f"{topic}/end", b"end", 1)
        assert [one.payload for one in peer.messages(2)] == [name.encode(), b"end"]


@pytest.mark.parametrize("bad", ["", "a/+", "#", "a/#/b", "+", "a+b"])
def test_a_topic_name_has_no_wildcards_and_a_character_at_least(join: Dial, version: int, bad: str) -> None:
    """MQTT-3.3.2-2, 4.7.0-1 and 4.7.3-1 (5); 3.3.2-2, 4.7.1-1 and 4.7.3-1 (3.1.1)."""
    peer = join(version=version)
    peer.send(wire.publish(bad, b"x", version=version))
    peer.expect_refusal(0x81, 0x82, 0x90)


@pytest.mark.parametrize("bad", [b"\xff", b"a\xed\xa0\x80", b"a\x00b", b"\xc1\x81"])
def test_a_topic_name_is_utf8(join: Dial, version: int, bad: bytes) -> None:
    peer = join(version=version)
    peer.send(wire.publish(bad, b"x", version=version))
    peer.expect_refusal(0x81, 0x82, 0x90)


def test_a_topic_of_the_greatest_length_is_taken_or_refused_without_harm(join: Dial, version: int, topic: str) -> None:
    """MQTT-4.7.3-3: 65,535 bytes are the most that a string can hold."""
    longest = topic.ljust(65_535, "x")
    peer = join(version=version)
    peer.send(wire.subscribe(1, [(longest, 0)], version=version))
    peer.send(wire.publish(longest, b"x", version=version))
    answer = peer.maybe_receive()
    if answer is not None and answer.codes == [0]:
        assert peer.message().topic == longest
    join(version=version).expect_silence()
