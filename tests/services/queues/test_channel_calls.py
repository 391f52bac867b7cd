"""Channels over gRPC: created, told, listed, deleted, purged; ids that are none of the caller's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import QueueCaller
from tests.services.queues.test_queue_calls import INVALID, UNKNOWN, fault


def test_a_channel_is_created_told_listed_and_deleted(queues: QueueCaller) -> None:
    queues.create("chan")
    settings = {"visible_seconds": 5.0, "tries_max": 0, "is_ordered": True, "dead_letters": qb.DEAD_LETTERS_DROP}
    assert queues.channel("CHAN", "T/1", "Mine", **settings) == "mine"
    assert queues.channel("chan", "t/1", "mine", **settings) == "mine"
    taken = fault(queues, "CreateChannel", queue="chan", id="mine")
    assert taken == ("ALREADY_EXISTS", "QUEUE_EXISTS")
    found = queues.ask("GetChannel", channel="MINE").channel
    assert (found.queue, found.topic, found.share) == ("chan", "t/1", "$share/mine/$queues/chan/t/1")
    assert (found.settings.visible_seconds, found.settings.tries_max) == (5.0, 0)
    assert found.settings.is_ordered and found.settings.dead_letters == qb.DEAD_LETTERS_DROP
    other = queues.channel("chan")
    assert len(other) == 26  # nobody guesses it
    rows = queues.ask("ListChannels", queue="Chan").channels
    assert [each.id for each in rows] == sorted(["mine", other])
    first = queues.ask("ListChannels", queue="chan", page_size=1)
    rest = queues.ask("ListChannels", queue="chan", page_size=1, page_token=first.next_page_token)
    assert [each.id for each in (*first.channels, *rest.channels)] == sorted(["mine", other])
    assert not rest.next_page_token
    queues.ask("DeleteChannel", channel="MINE")
    assert fault(queues, "GetChannel", channel="mine") == UNKNOWN
    assert fault(queues, "DeleteChannel", channel="mine") == UNKNOWN
    assert queues.ask("GetChannel", channel=other).channel.id == other


@pytest.mark.parametrize("channel", ["", "no-such", "..", "a/b", "$c", "#", "\0", "%s", "x" * 65_536, "-1", "0"])
def test_a_bad_channel_id_is_an_answer_and_nothing_breaks(queues: QueueCaller, channel: str) -> None:
    for name in ("GetChannel", "DeleteChannel", "PurgeChannel", "SubscribeToChannel"):
        assert fault(queues, name, channel=channel) in (UNKNOWN, INVALID)
    with pytest.raises(Exception, match="channel") as failed:
        next(queues.stub.Consume(iter([qb.ConsumeRequest(channel=channel)]), timeout=10))
    assert failed.value.code().name in ("NOT_FOUND", "INVALID_ARGUMENT")  # type: ignore[attr-defined]
    assert queues.ask("GetHeartbeat").serving


@pytest.mark.parametrize(
    "settings", [{"visible_seconds": 1e9}, {"visible_seconds": float("nan")}, {"visible_seconds": -1.0},
                 {"tries_max": 5000}, {"dead_letters": 7}, {"retry_seconds": float("inf")}],
)  # fmt: skip
def test_settings_of_channels_that_cannot_be_meant(queues: QueueCaller, settings: dict[str, Any]) -> None:
    queues.create("chan-odd")
    request = {"queue": "chan-odd", "settings": qb.ChannelSettings(**settings)}
    assert fault(queues, "CreateChannel", **request) == INVALID


def test_the_topic_of_messages_without_one_is_reserved(queues: QueueCaller) -> None:
    queues.create("reserved")
    for name in ("__none__", "__NONE__"):
        assert fault(queues, "CreateChannel", queue="reserved", topic=name) == INVALID
        assert fault(queues, "PushToQueue", queue="reserved", messages=[qb.PushMessage(topic=name)]) == INVALID
    assert not queues.ask("PeekQueue", queue="reserved").messages


def test_a_channel_is_purged_but_for_what_is_held(queues: QueueCaller) -> None:
    queues.create("purged")
    channel, other = queues.channel("purged"), queues.channel("purged")
    queues.push("purged", b"held")
    consumer = queues.consume(channel, credit=1)
    [held] = consumer.take(1)
    queues.push("purged", b"1", b"2", b"3")
    assert queues.ask("PurgeChannel", channel=channel).messages >= 3
    assert consumer.answer(acknowledge=[held.id]).done == 1
    assert consumer.close() == []
    assert queues.ask("PurgeQueue", queue="purged").messages == 4
    emptied = queues.consume(other, credit=1)
    queues.push("purged", b"new")
    assert [each.payload for each in emptied.take(1)] == [b"new"]
    emptied.vanish()
