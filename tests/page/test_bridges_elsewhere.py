"""The view of bridges where none runs: on a node of a cluster it names the one that does, else it says how to begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from rumq.bridge.counts import FOLDER, write_elsewhere, write_figures
from tests.page.conftest import BROWSER, REASON
from tests.page.page import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]


def test_it_names_the_node_that_runs_them_or_says_how_to_begin(page: Page) -> None:
    browser = page.browser
    page.show("/bridges")
    browser.sees("pre", "[[bridge]]")
    folder = Path(page.gateway.broker.data, FOLDER)
    folder.mkdir()
    write_figures(folder, {})  # as a node's process does every second
    write_elsewhere(folder, "node n2 runs the bridges: ask there")
    page.show("/bridges")
    browser.sees(".notice", "node n2 runs the bridges: ask there")
    browser.sees_no("main", "[[bridge]]")
