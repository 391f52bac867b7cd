"""A broadcast is checked before it is sent; who gets it is shown in tests/services/test_broadcast.py."""

import pytest

from rumq.admin.requests import Broadcast
from rumq.shards.admin.broadcast import BroadcastRound, payload_of


def test_payloads() -> None:
    assert payload_of(Broadcast(clients="*", topic="t", payload="ä")) == "ä".encode()
    assert payload_of(Broadcast(clients="*", topic="t", payload="AP8=", encoding="base64")) == b"\0\xff"
    with pytest.raises(ValueError, match="no base64"):
        payload_of(Broadcast(clients="*", topic="t", payload="AP8", encoding="base64"))


def test_a_topic_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="wildcard"):
        BroadcastRound(Broadcast(clients="*", topic="t/#"))
