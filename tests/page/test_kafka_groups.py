"""Consumer groups of Kafka's clients in a browser: listed, found by name, opened, with their lag."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("crc32c", reason="crc32c is not installed (pip install 'rumq[kafka]')")

from tests.gateway.conftest import Gateway, started
from tests.kafka.conftest import KafkaBroker
from tests.kafka.published import publish_all
from tests.kafka.test_group_server import committing, error_of_commit
from tests.kafka.wire_client import WireClient
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
GROUPS, PARTITIONS = "table[aria-label='Kafka groups']", "table[aria-label=Partitions]"
HOSTILE = "<b>\u202egroup"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("groups"), "kafka.port=-1", "kafka.host=127.0.0.1")
    kafka = KafkaBroker(made.broker)
    kafka.reach()
    publish_all(made.broker.address, [("a", b"1", {})] * 9)
    client = WireClient(kafka.port)
    for group, offset in (("watchers", 2), (HOSTILE, 9)):
        assert error_of_commit(client, committing(group, committed_offset=offset)) == 0
    yield made
    assert not made.broker.named("gateway.failed", "kafka.failed")
    made.broker.end()


def test_groups_have_their_lag_and_one_opens_with_its_partitions(page: Page) -> None:
    browser = page.browser
    page.show("/kafka-groups")
    browser.sees(f"{GROUPS} td", "watchers")
    browser.sees(f"{GROUPS} td .warn", "7")
    browser.sees(f"{GROUPS} td", "Empty")
    browser.click(f"{GROUPS} td", "watchers")
    browser.sees("h1", "watchers")
    browser.sees(f"{PARTITIONS} td", "main")
    browser.sees(f"{PARTITIONS} .warn", "7")
    browser.sees(".empty", "Nobody is in it now")


def test_a_group_is_found_by_its_name(page: Page) -> None:
    browser = page.browser
    page.show("/kafka-groups?group=watch")
    browser.sees(f"{GROUPS} td", "watchers")
    assert len(browser.texts(f"{GROUPS} tbody tr")) == 1


def test_a_hostile_name_is_text(page: Page) -> None:
    browser = page.browser
    page.show("/kafka-groups")
    browser.sees(f"{GROUPS} td", "<b>")
    assert "\u202e" not in "".join(browser.texts(f"{GROUPS} tbody tr"))
