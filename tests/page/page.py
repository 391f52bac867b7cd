"""The page of one gateway in a browser: signed in, one view after the other, and nothing of it from elsewhere."""

from __future__ import annotations

from tests.gateway.conftest import Gateway
from tests.page.browser import Browser


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
        wrong = [error for error in self.browser.went_wrong() if not any(part in error for part in self.allowed)]
        assert not wrong, wrong
        websocket = self.address.replace("http", "ws", 1)
        own = (self.address, websocket, "about:", "data:", "blob:" + self.address)
        assert [url for url in self.browser.requested if not url.startswith(own)] == []
