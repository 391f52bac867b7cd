"""Definitions as JSON: versioned, fields of later versions skipped, bounds checked where they are given."""

from __future__ import annotations

import msgspec
import pytest

from rumq.queues.rules import definitions as d
from rumq.queues.rules.errors import BadQueueRequest

QUEUE = d.QueueDefinition(label="news", created_us=5, records_max=7, when_full="drop-oldest", owner="anna")
CHANNEL = d.ChannelDefinition(channel_id="c", label="news", created_us=6, topic="t", is_ordered=True)


def test_what_is_written_is_read() -> None:
    assert d.parse_queue(d.encoded(QUEUE)) == QUEUE
    assert d.parse_channel(d.encoded(CHANNEL)) == CHANNEL
    assert d.settings_of(QUEUE, d.QueueSettings) == d.QueueSettings(records_max=7, when_full="drop-oldest")


def test_the_defaults_are_those_of_the_reference() -> None:
    assert d.QueueSettings() == d.QueueSettings(ttl_seconds=600, records_max=10_000, bytes_max=0, when_full="refuse")
    assert d.ChannelSettings() == d.ChannelSettings(
        visible_seconds=30.0, tries_max=5, dead_letters="queue", is_ordered=False, retry_seconds=0.0
    )


def test_this_form_stays_readable() -> None:
    """As version 1 wrote it; a later version adds fields."""
    text = b'{"ttl_seconds":5,"label":"news","created_us":1,"version":9,"new":{"a":[1]}}'
    assert d.parse_queue(text) == d.QueueDefinition(label="news", created_us=1, ttl_seconds=5, version=9)
    text = b'{"channel_id":"c","label":"news","created_us":1,"topic":null,"tries_max":0}'
    assert d.parse_channel(text) == d.ChannelDefinition(channel_id="c", label="news", created_us=1, tries_max=0)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"label":5}', b"\xff", b'{"label":"x","created_us":1,"records_max":-1}']
)
def test_what_is_none_raises(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        d.parse_queue(text)


@pytest.mark.parametrize(
    "settings",
    [
        d.QueueSettings(ttl_seconds=0), d.QueueSettings(records_max=-1), d.QueueSettings(when_full="x"),  # type: ignore[arg-type]
        d.ChannelSettings(visible_seconds=0.0), d.ChannelSettings(tries_max=-1), d.ChannelSettings(retry_seconds=-1.0),
        d.ChannelSettings(visible_seconds=float("nan")),
    ],
)  # fmt: skip
def test_settings_out_of_bounds_are_refused(settings: msgspec.Struct) -> None:
    with pytest.raises(BadQueueRequest, match="cannot be meant"):
        d.checked_settings(settings)
