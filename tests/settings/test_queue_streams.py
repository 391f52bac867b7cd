"""The streams of queues, from [queues] and [log]."""

from __future__ import annotations

import pytest

from rumq.settings.load import Flag, Loaded, load_settings
from rumq.settings.queue_streams import LASTING, NAME


def load(*flags: str) -> Loaded:
    made = [Flag(key, value, "--set") for key, _, value in (each.partition("=") for each in flags)]
    return load_settings(None, environ={}, flags=made)


def test_without_queues_there_are_no_streams_for_them() -> None:
    assert [each.name for each in load().settings.stream] == ["main"]


def test_they_come_first_with_the_times_of_queues_and_the_rest_of_the_log() -> None:
    loaded = load(
        "queues.enabled=true", "queues.ttl_seconds_max=1200", "log.durability=process", "log.retention=forever"
    )
    lasting, queues, main = loaded.settings.stream
    assert (lasting.name, queues.name, main.name) == (LASTING, NAME, "main")
    assert (queues.retention_seconds_max, queues.segment_seconds_max) == (1200, 300)
    assert lasting.retention_seconds_max == 7 * 86_400 and lasting.segment_seconds_max == 3600
    assert {each.durability for each in (lasting, queues)} == {"process"}
    assert {each.retention for each in (lasting, queues)} == {"space"} and main.retention == "forever"
    assert loaded.origins["stream.queues.retention_seconds_max"]


@pytest.mark.parametrize("name", [NAME, LASTING])
def test_one_of_the_settings_replaces_its_own(name: str) -> None:
    topics = "$queues/#" if name == NAME else "$queues/$dead/#"
    own = f'stream=[{{ name = "{name}", filters = ["{topics}"], retention_seconds_max = 9 }}]'
    found = load("queues.enabled=true", own).settings.stream
    assert [each.name for each in found] == [LASTING, NAME, "main"]
    assert [each.retention_seconds_max for each in found if each.name == name] == [9]
