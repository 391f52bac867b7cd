"""A broker with its page, and a browser. A test fails for any error on the console, and for any address elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import Gateway, started
from tests.interop.chromium import NAMES, found
from tests.page.browser import Browser

BROWSER = found()
REASON = f"no browser is installed: sudo apt-get install {NAMES[0]}"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip(REASON)
    browser = Browser(BROWSER, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.end()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("page"))
    yield made
    assert made.broker.stop() == 0 and not made.broker.named("client.crashed", "gateway.failed")
    made.broker.end()


class Page:
    """The page of one gateway in a browser, signed in with a token.

    allowed: parts of errors that the test brings about itself"""

    def __init__(self, browser: Browser, gateway: Gateway) -> None:
        self.browser, self.gateway = browser, gateway
        self.allowed: list[str] = []
        self.address = f"http://127.0.0.1:{gateway.port}/"

    def sign_in(self, token: str = "ops") -> None:
        self.browser.open(f"{self.address}page/icon.svg")
        secret = self.gateway.secrets[token]
        self.browser.run(f"localStorage.clear(); sessionStorage.setItem('rumq.token', {secret!r})")

    def show(self, place: str) -> None:
        """Open a view, `/topics?sort=rate`, and wait for its heading: before it there is nothing to press."""
        self.browser.open("about:blank")
        self.browser.open(f"{self.address}#{place}")
        self.browser.sees("main h1")

    def check(self) -> None:
        wrong = [
            error for error in self.browser.went_wrong() if not any(part in error for part in self.allowed)
        ]
        assert not wrong, wrong
        websocket = self.address.replace("http", "ws", 1)
        own = (self.address, websocket, "about:", "data:", "blob:" + self.address)
        assert [url for url in self.browser.requested if not url.startswith(own)] == []


@pytest.fixture
def page(chromium: Browser, gateway: Gateway) -> Iterator[Page]:
    """Signed in as ops, in a window of 1280 x 800."""
    chromium.open("about:blank")
    chromium.went_wrong()
    chromium.requested.clear()
    chromium.window(1280, 800)
    made = Page(chromium, gateway)
    made.sign_in()
    yield made
    made.check()
    chromium.open("about:blank")
