"""Queues for the page: news that nobody consumes, orders with two consumers and a dead letter, an empty one."""

from __future__ import annotations

from typing import Any

from tests.gateway.conftest import Gateway
from tests.tries import tries

HOSTILE = "<script>alert(1)</script>"


def asked(gateway: Gateway, method: str, path: str, body: Any = None) -> Any:
    """Again while the gateway does not know its queues yet, as for a moment after its start."""
    for _ in tries():
        answer = gateway.ask(method, f"/api/v1/{path}", body)
        if answer.status != 503:
            assert answer.status in (200, 201), answer
            return answer.json
    raise AssertionError(f"no queues: {answer}")


def fill(gateway: Gateway) -> None:
    asked(gateway, "POST", "queues/news", {"records_max": 40})
    asked(gateway, "POST", "queues/news/channels", {"id": "archive"})
    asked(gateway, "PUT", "queues/news/channels/sports", {"id": "sports-desk", "is_ordered": True})
    messages: list[dict[str, Any]] = [
        {"topic": "sports", "payload": {"headline": f"match {n}"}, "key": "tennis"} for n in range(3)
    ]
    messages += [{"payload": f"note {n}", "headers": [["from", "desk"]]} for n in range(31)]
    asked(gateway, "POST", "queues/news/messages", messages)
    asked(gateway, "POST", "queues/orders", {"ttl_seconds": 3600})
    asked(gateway, "POST", "queues/orders/channels", {"id": "billing", "tries_max": 1})
    orders = [{"topic": "eu", "payload": {"order": n, "pieces": n % 7 + 1}} for n in range(12)]
    asked(gateway, "POST", "queues/orders/messages", orders)
    given = asked(gateway, "GET", "channels/billing/messages?wait=20&max=5&consumer=till-1")["messages"]
    asked(gateway, "GET", "channels/billing/messages?wait=20&max=5&consumer=till-2")
    answers = {"consumer": "till-1", "reject": [given[0]["id"]], "acknowledge": [each["id"] for each in given[1:3]]}
    asked(gateway, "POST", "channels/billing/acknowledgements", answers)
    asked(gateway, "POST", "queues/comments")
    seen: list[Any] = []
    while len(seen) < 1:  # the log's files show a message some 50 ms later
        seen = asked(gateway, "GET", "queues/orders/dead-letters")["messages"]
