"""What the rules keep from a token's user is said to be kept from it in a browser, never that there is nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.peer import Peer
from tests.gateway.conftest import RULES, Gateway, started
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path = tmp_path_factory.mktemp("forbidden")
    (path / "rules.toml").write_text(RULES.replace('"replay"]', '"replay", "retain"]'))
    made = started(path, f"auth.rules_file={path}/rules.toml")
    with Peer(made.broker.address) as anna:
        assert anna.connect("pump", username="anna").code == 0
        anna.publish("plant/7", b"sesame", 1, retain=True)
    yield made
    made.broker.end()


def test_an_administrator_without_a_user_is_told_that_the_record_is_not_for_it(page: Page) -> None:
    page.allowed.append("403")
    browser = page.browser
    page.show("/topic?topic=plant%2F7")
    browser.sees(".notice", "not permitted")
    browser.sees(".figures", "published so far")
    for wrong in ("retention has removed", "none is kept", "sesame"):
        browser.sees_no("main", wrong)
    page.show("/topics?sort=records")
    browser.sees("td", "not permitted")
    page.show("/retained")
    browser.sees(".notice", "some of the topics")
    page.show("/retained?topic=plant")
    browser.sees(".fault", "not permitted")


def test_who_may_read_some_topics_is_shown_these_and_told_of_the_others(page: Page) -> None:
    page.sign_in("anna")
    browser = page.browser
    page.show("/topics")
    browser.sees(".notice", "some of the topics")
    page.show("/topic?topic=plant%2F7")
    browser.sees("pre", "sesame")
    browser.sees_no("main", "not permitted")
