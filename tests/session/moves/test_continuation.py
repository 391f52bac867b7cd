"""A connection goes on only with the session that it had, and only if it may be here."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import Client
from rumq.session.flow_control.listener_policy import OPEN
from rumq.session.moves.continuation import continue_client
from tests.session.moves.test_moved_client import MOVED
from tests.shards.moves.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.end()


def client(world: World) -> Client:
    transport: Any = SimpleNamespace(peer="10.0.0.1:1", fd=-1)
    return Client(world.process.parts.clients.broker, transport, OPEN)


def test_without_its_session_it_ends(world: World) -> None:
    with pytest.raises(MqttFault) as refused:
        continue_client(client(world), MOVED)
    assert refused.value.reason == Reason.SESSION_TAKEN_OVER


def test_who_was_banned_meanwhile_does_not_come_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = world.process.parts.clients.logins
    monkeypatch.setattr(logins, "login_refusal", lambda *_: MqttFault("banned", Reason.BANNED))
    with pytest.raises(MqttFault) as refused:
        continue_client(client(world), MOVED)
    assert refused.value.reason == Reason.BANNED


def test_a_listener_that_is_full_takes_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.process.parts.clients.logins, "has_room", lambda _: False)
    with pytest.raises(MqttFault) as refused:
        continue_client(client(world), MOVED)
    assert refused.value.reason == Reason.QUOTA_EXCEEDED
