"""A message to push, as the gateway takes it."""

from rumq.client import QueuePush


def test_text_is_pushed_as_its_bytes() -> None:
    found = QueuePush(payload="é", topic="t", headers=(("a", "b"),), expiry_seconds=5).fields()
    assert found == {
        "payload": b"\xc3\xa9", "topic": "t", "key": None, "headers": [("a", "b")], "content_type": "",
        "delay_seconds": 0.0, "expiry_seconds": 5,
    }  # fmt: skip
