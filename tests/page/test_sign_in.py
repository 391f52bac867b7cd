"""Signing in and out: the token is tried before it is kept, and what it may not do is not offered."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import Gateway
from tests.page.conftest import BROWSER, REASON, Page
from tests.page.plant import Speaker

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
KEPT = "[sessionStorage.getItem('rumq.token'), localStorage.getItem('rumq.token')]"


@pytest.fixture
def stranger(page: Page) -> Page:
    """The page, with nobody signed in."""
    page.browser.run("sessionStorage.clear(); localStorage.clear()")
    page.browser.open("about:blank")
    page.browser.open(page.address)
    page.browser.sees("h1", "rumq")
    return page


def test_a_token_is_kept_for_the_tab_and_forgotten_at_the_end(stranger: Page) -> None:
    browser, secret = stranger.browser, stranger.gateway.secrets["ops"]
    browser.until("document.activeElement.id == 'token'")
    browser.type(f" {secret} ")
    browser.press("Enter")
    browser.sees("main h1", "Overview")
    browser.sees(".who", "ops")
    assert browser.run(KEPT) == [secret, None]
    browser.click("#sign-out")
    browser.sees("form #token")
    assert browser.run(KEPT) == [None, None]


def test_a_token_is_kept_on_the_computer_if_that_is_wished(stranger: Page) -> None:
    browser, secret = stranger.browser, stranger.gateway.secrets["reader"]
    browser.click("#keep")
    browser.fill("#token", secret)
    browser.press("Enter")
    browser.sees("main h1", "Overview")
    browser.run("sessionStorage.clear()")
    stranger.show("/clients")
    browser.sees(".who", "reader")
    browser.click("#sign-out")
    browser.sees("form #token")
    assert browser.run(KEPT) == [None, None]


def test_a_wrong_token_is_refused_and_not_kept(stranger: Page) -> None:
    stranger.allowed.append("401")
    browser = stranger.browser
    browser.fill("#token", "rumq_wrong")
    browser.press("Enter")
    browser.sees("[role=alert]", "does not know this token")
    assert browser.run(KEPT) == [None, None]
    browser.fill("#token", stranger.gateway.secrets["ops"])
    browser.press("Enter")
    browser.sees("main h1", "Overview")


def test_a_token_that_is_withdrawn_leads_back_to_the_form(page: Page) -> None:
    page.allowed.append("401")
    page.browser.run("sessionStorage.setItem('rumq.token', 'rumq_withdrawn')")
    page.browser.open("about:blank")
    page.browser.open(page.address)
    page.browser.sees(".notice", "no longer valid")
    assert page.browser.run(KEPT) == [None, None]


def test_what_a_token_may_not_do_is_not_offered(page: Page, gateway: Gateway) -> None:
    with Speaker(gateway.broker.address.port, "c", subscribes=[("t/#", 1)]):
        page.show("/client?id=c")
        page.browser.sees(".actions button", "Disconnect")
        page.browser.sees("nav a", "Access")
        page.sign_in("reader")
        page.show("/client?id=c")
        page.browser.sees(".who", "reader")
        page.browser.sees("table[aria-label=Subscriptions] td", "t/#")
        assert page.browser.texts("main button") == []
        page.browser.sees_no("nav a", "Access")
        for place in ("/bans", "/traces", "/shards"):
            page.show(place)
            page.browser.sees("main .table, main .panel")
            page.browser.sees_no("main button")


def test_a_token_that_may_only_publish_is_told_so(page: Page) -> None:
    page.allowed.append("403")
    page.sign_in("sender")
    page.show("/clients")
    page.browser.sees("[role=alert]", "read")


def test_the_focus_goes_along_with_a_sign_out_and_a_sign_in(page: Page, gateway: Gateway) -> None:
    browser = page.browser
    page.show("/")
    browser.click("#sign-out")
    browser.until("document.activeElement.id == 'token'")
    browser.type(gateway.secrets["ops"])
    browser.press("Enter")
    browser.sees("main h1", "Overview")
    browser.until("document.activeElement.id == 'main'")
