"""A broker with its page, and a browser. A test fails for any error on the console, and for any address elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import Gateway, started
from tests.interop.chromium import NAMES, found
from tests.page.browser import Browser
from tests.page.page import Page

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
