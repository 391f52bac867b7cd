"""Fixtures of pytest: a broker for a test, and one for all tests of a run. docs/guides/testing.md

    def test_a_reading_is_stored(rumq_broker):
        client.connect(rumq_broker.host, rumq_broker.port)

It is loaded in every project that has rumq installed: so it imports nothing until a test uses a fixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rumq.embedded.broker import BlockingBroker

FIXTURES = frozenset({"rumq_broker", "rumq_session_broker"})
MARKER = "rumq_broker(settings, **sections): settings of this test's rumq_broker, with the names of config.toml"
KEPT = pytest.StashKey[Any]()  # the link that keeps the template


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have the broker imported while the first tests run, if one will be used."""
    used = (FIXTURES.intersection(getattr(item, "fixturenames", ())) for item in session.items)
    if not session.config.option.collectonly and any(used):
        from rumq.embedded import template

        session.config.stash[KEPT] = template.open_link()  # as long as it is open the template stays


def pytest_unconfigure(config: pytest.Config) -> None:
    if KEPT in config.stash:
        from rumq.embedded import template

        config.stash[KEPT].close()
        template.close()


@pytest.fixture(scope="session")
def rumq_settings() -> Mapping[str, object]:
    """Settings of every broker, with the names of config.toml: to be overridden in a conftest.py."""
    return {}


@pytest.fixture
def rumq_broker(request: pytest.FixtureRequest, rumq_settings: Mapping[str, object]) -> Iterator[BlockingBroker]:
    """A broker of this test alone, on a free port, with an empty log: host, port, url, data, kill, restart."""
    marker = request.node.get_closest_marker("rumq_broker")
    given: Mapping[str, Any] = {
        **(marker.args[0] if marker and marker.args else {}),
        **(marker.kwargs if marker else {}),
    }
    from rumq.embedded.broker import broker

    with broker({**rumq_settings, **given}) as running:
        yield running


@pytest.fixture(scope="session")
def rumq_session_broker(rumq_settings: Mapping[str, object]) -> Iterator[BlockingBroker]:
    """One broker for all tests of a run: each uses topics of its own."""
    from rumq.embedded.broker import broker

    with broker(rumq_settings) as running:
        yield running
