"""Asking another server: what its answers mean, and how long they hold."""

import json

import pytest

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.callout import CallOut
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.errors import Denied
from rumq.auth.identity import Credentials, Identity, Work


class Server:
    def __init__(self, status: int, answer: object = None) -> None:
        self.status, self.answer = status, answer
        self.asked: list[dict[str, object]] = []

    def __call__(self, body: bytes) -> tuple[int, bytes]:
        self.asked.append(json.loads(body))
        if self.status == 0:
            raise OSError("no route to host")
        return self.status, b"" if self.answer is None else json.dumps(self.answer).encode()


def ask(method: CallOut, now: float = 0.0, password: bytes = b"p") -> Identity | None:
    steps = method.check(Credentials("c", "alice", password, now=now, peer="10.0.0.1"))
    step: object = None
    try:
        step = next(steps)
        assert isinstance(step, Work)
        found = outcome(steps, step.run())
    except StopIteration as end:
        found = end.value
    assert found is None or isinstance(found, Identity)
    return found


def test_it_is_told_what_the_client_showed_and_says_who_it_is() -> None:
    server = Server(200, {"allow": True, "user": "Alice", "groups": ["ops"]})
    who = ask(CallOut(server, VerificationCache(60.0)))
    assert who == Identity("Alice", frozenset({"ops"}), "http")
    assert server.asked == [
        {"client_id": "c", "username": "alice", "password": "p", "peer": "10.0.0.1", "certificate": None}
    ]


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        (403, None, 0x86), (401, None, 0x86), (500, None, 0x88), (0, None, 0x88), (302, None, 0x88),
        (200, {"allow": True, "groups": 3}, 0x88),
    ],
)  # fmt: skip
def test_without_a_yes_nobody_comes_in(status: int, answer: object, reason: int) -> None:
    with pytest.raises(Denied) as denied:
        ask(CallOut(Server(status, answer), VerificationCache(60.0)))
    assert denied.value.reason == reason


def test_an_answer_holds_as_long_as_it_says() -> None:
    server = Server(200, {"allow": True, "seconds": 10})
    method = CallOut(server, VerificationCache(60.0))
    for now, asked in ((0.0, 1), (9.0, 1), (11.0, 2)):
        assert ask(method, now) is not None
        assert len(server.asked) == asked
    ask(method, 12.0, b"other")
    assert len(server.asked) == 3


def test_a_refusal_is_not_remembered() -> None:
    server = Server(403)
    method = CallOut(server, VerificationCache(60.0))
    for count in (1, 2):
        with pytest.raises(Denied):
            ask(method)
        assert len(server.asked) == count
