"""Bridges in a browser: one that is connected, one that is not and why, what each relayed; none at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rumq
from bench.peers.peer import free_port
from rumq.embedded.broker import BlockingBroker
from tests.conformance.peer import Peer
from tests.gateway.conftest import Gateway, started
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
BRIDGES, RELAYED = "table[aria-label=Bridges]", "table[aria-label=Relayed]"
SECRET = "sesame-of-the-bridge"


@pytest.fixture(scope="module")
def other() -> Iterator[BlockingBroker]:
    with rumq.broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, other: BlockingBroker) -> Iterator[Gateway]:
    path = tmp_path_factory.mktemp("bridges")
    (path / "password").write_text(SECRET)
    topics = '["plant/# out 1", "commands/# in 1"]'
    far = ", ".join(
        f'{{ name = "far-{n:02}", url = "mqtt://localhost:{free_port()}", topics = {topics} }}' for n in range(60)
    )
    centre = (
        f'{{ name = "centre", url = "{other.url}", topics = {topics}, user = "edge", '
        f'password_file = "{path}/password" }}'
    )
    made = started(path, f"bridge=[{centre}, {far}]")
    with Peer(made.broker.address) as publisher:
        assert publisher.connect("publisher").code == 0
        publisher.publish("plant/1", b"x" * 100, 1, retain=True)
    yield made
    assert not made.broker.named("gateway.failed", "bridges.died")
    made.broker.end()


def test_each_bridge_is_shown_with_its_state_and_what_it_relayed(page: Page) -> None:
    browser = page.browser
    page.show("/bridges")
    browser.sees(f"{BRIDGES} td .good", "connected")
    browser.sees(f"{BRIDGES} td", "localhost")
    browser.sees(f"{BRIDGES} td", "5.0")
    browser.sees(f"{BRIDGES} td", "ago")
    browser.sees(f"{RELAYED} td", "100 B")
    assert SECRET not in browser.text("main")


def test_one_that_cannot_connect_says_why(page: Page) -> None:
    browser = page.browser
    page.show("/bridges")
    browser.sees(f"{BRIDGES} td .warn", "not connected")
    browser.sees(f"{BRIDGES} td", "refused")


def test_fifty_are_on_a_page(page: Page) -> None:
    browser = page.browser
    page.show("/bridges")
    browser.sees(".paging", "1 to 50 of 61")
    assert len(browser.texts(f"{BRIDGES} tbody tr")) == 50
    browser.click(".paging button", "Next")
    browser.sees(".paging", "51 to 61 of 61")
    browser.sees(f"{RELAYED} td", "far-59")
