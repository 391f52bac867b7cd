"""Topics: streams and views, ids of a log, and who is shown which."""

import pytest

from rumq.auth.identity import Identity
from rumq.auth.rules import parse
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.topics.topic_catalog import KafkaTopic, TopicCatalog, TopicReader, TopicSource, partition_names

SOURCES = [
    TopicSource("main", "main", ("#",)),
    TopicSource("alarms", "alarms", ("alarm/#",)),
    TopicSource("pumps", "main", ("pump/+/state",), "pump/+/state"),
]
ANY = TopicReader(None)


def reader(topics: str) -> TopicReader:
    text = f'[[rule]]\nallow = ["subscribe", "replay"]\ntopics = [{topics}]'
    return TopicReader(parse(text, "rules.toml").permit(Identity("anna"), ""))


@pytest.mark.parametrize(
    ("topics", "shown"),
    [
        ('"#"', ["main", "alarms", "pumps"]),
        ('"pump/7/#"', ["main", "pumps"]),
        ('"alarm/fire"', ["main", "alarms"]),
        ('"pump/7/level"', ["main"]),
    ],
)
def test_a_reader_is_shown_what_it_may_read_something_of(topics: str, shown: list[str]) -> None:
    catalog, who = TopicCatalog(SOURCES, b"log"), reader(topics)
    assert [each.name for each in catalog.readable(who)] == shown
    for source in SOURCES:
        found = catalog.find(source.name, who)
        assert isinstance(found, KafkaTopic) == (source.name in shown)
        by_id = catalog.find_id(catalog.topics[source.name].id, who)
        assert by_id == (found if source.name in shown else ErrorCode.UNKNOWN_TOPIC_ID)


def test_who_has_rules_does_not_learn_which_topics_there_are() -> None:
    catalog, who = TopicCatalog(SOURCES, b"log"), reader('"pump/7/level"')
    assert catalog.find("alarms", who) == catalog.find("nope", who) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert catalog.find("nope", ANY) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_view_has_its_filter_within_the_rules() -> None:
    catalog, who = TopicCatalog(SOURCES, b"log"), reader('"pump/7/#"')
    pumps, main = catalog.topics["pumps"], catalog.topics["main"]
    topics = ("pump/7/state", "pump/8/state", "pump/7/level")
    assert [who.wants(pumps, each) for each in topics] == [True, False, False]
    assert [who.wants(main, each) for each in topics] == [True, False, True]
    assert [ANY.wants(pumps, each) for each in topics] == [True, True, False]
    assert ANY.wants_all_of(main) and not ANY.wants_all_of(pumps) and not who.wants_all_of(main)


def test_another_log_has_other_ids() -> None:
    one, same, other = (TopicCatalog(SOURCES, log) for log in (b"log", b"log", b"other"))
    ids = [{each.id for each in catalog.topics.values()} for catalog in (one, same, other)]
    assert ids[0] == ids[1] and len(ids[0] | ids[2]) == 6


def test_partitions_are_those_in_a_row() -> None:
    main = TopicCatalog(SOURCES, b"log").topics["main"]
    there = dict.fromkeys(["main/g1/p0", "main/g1/p1", "main/g1/p3", "main/g2/p2", "alarms/g1/p2"])
    assert partition_names(main, there) == ["main/g1/p0", "main/g1/p1"]
