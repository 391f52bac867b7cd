"""The broker's own authentication and rules decide who reads what. No socket: headers come in as text."""

import base64
import time

import jwt
import pytest

from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.credentials.tokens import Claims, TokenLogin, parse_keys
from rumq.auth.errors import Denied
from rumq.flight.client_credentials import basic
from rumq.flight.errors import NotAllowed
from rumq.flight.serving.call_authorization import SESSION_SECONDS, CallAuthorization
from rumq.flight.serving.login_turns import DELAYED_MAX
from rumq.flight.serving.served_log import check_permission, wants
from rumq.flight.tickets import Ticket
from tests.flight.served import door_of, rules, users

KEY = "k" * 32


def token(key: str = KEY, **claims: object) -> str:
    return "Bearer " + jwt.encode({"sub": "anna", **claims}, key, "HS256")


def ticket(*topics: str) -> Ticket:
    return Ticket(partition="main/g1/p0", start=0, end=1, topics=topics)


def test_a_password_and_a_token_say_who_asks() -> None:
    authenticator = Authenticator([TokenLogin(parse_keys(KEY, "keys"), Claims()), *users("anna").methods])
    door = door_of(authenticator, rules())
    assert door.authorize(basic("anna", "secret"), "h").user == "anna"
    assert door.authorize(token(), "h").user == "anna"
    for header in (
        basic("anna", "secret2"), basic("ben", "secret"), token("x" * 32), token(exp=int(time.time()) - 60), None,
        "Basic", "Basic !!!", "Digest x", "Basic " + base64.b64encode(b"no colon").decode(), "Bearer x" * 20_000,
        "Basic " + base64.b64encode(b"\xff:x").decode(), "Bearer nothing.known",
    ):  # fmt: skip
        with pytest.raises(Denied) as caught:
            door.authorize(header, "h")
        assert "secret" not in str(caught.value)


def test_anonymous_readers_come_in_only_where_they_may() -> None:
    assert door_of().authorize(None, "127.0.0.1").user is None
    with pytest.raises(Denied, match="anonymous"):
        door_of(users("anna")).authorize(None, "127.0.0.1")


def test_rules_let_out_only_what_a_replay_would_bring() -> None:
    caller = door_of(users("anna", "ben"), rules()).authorize(basic("anna", "secret"), "h")
    wanted = wants(ticket(), caller)
    assert wanted is not None
    assert [topic for topic in ("plant/0/temp", "plant/1/temp", "plant/2/temp") if wanted(topic)] == ["plant/1/temp"]
    narrower = wants(ticket("plant/0/#", "plant/1/hum"), caller)
    assert narrower is not None
    assert [topic for topic in ("plant/0/temp", "plant/1/temp", "plant/1/hum") if narrower(topic)] == ["plant/1/hum"]
    check_permission(ticket("plant/0/#", "plant/1/#"), caller)
    with pytest.raises(NotAllowed, match=r"user 'anna' to replay plant/2/temp"):
        check_permission(ticket("plant/2/temp"), caller)
    other = door_of(users("anna", "ben"), rules()).authorize(basic("ben", "secret"), "h")
    with pytest.raises(NotAllowed, match="any topic"):
        check_permission(ticket(), other)


def test_to_subscribe_is_not_to_replay() -> None:
    live = rules('[[rule]]\nallow = ["subscribe"]\ntopics = ["#"]\n')
    with pytest.raises(NotAllowed):
        check_permission(ticket(), door_of(found=live).authorize(None, "h"))
    past = rules('[[rule]]\nallow = ["replay"]\ntopics = ["#"]\n')
    with pytest.raises(NotAllowed):
        check_permission(ticket(), door_of(found=past).authorize(None, "h"))
    both = rules(
        '[[rule]]\nallow = ["replay"]\ntopics = ["plant/#"]\n[[rule]]\nallow = ["subscribe"]\ntopics = ["plant/1/#"]\n'
    )
    wanted = wants(ticket(), door_of(found=both).authorize(None, "h"))
    assert wanted is not None
    assert [topic for topic in ("plant/0/temp", "plant/1/temp") if wanted(topic)] == ["plant/1/temp"]


def test_without_rules_all_topics_are_wanted_at_no_cost() -> None:
    assert wants(ticket(), door_of().authorize(None, "h")) is None


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def door(self, authenticator: Authenticator) -> CallAuthorization:
        return CallAuthorization(
            authenticator,
            None,
            now=lambda: self.now,
            now_us=lambda: int(self.now * 1e6),
            wait=lambda seconds: None,
        )


def test_a_handshake_gives_a_token_for_an_hour() -> None:
    clock = Clock()
    door = clock.door(users("anna"))
    bearer = door.handshake(basic("anna", "secret"))
    assert bearer.startswith("Bearer ") and "secret" not in bearer
    assert door.authorize(bearer, "h").user == "anna"
    clock.now += SESSION_SECONDS - 1
    assert door.authorize(bearer, "h").user == "anna"
    clock.now += 2
    with pytest.raises(Denied, match="once more"):
        door.authorize(bearer, "h")
    with pytest.raises(Denied):
        door.handshake(basic("anna", "wrong"))


def test_a_handshake_lasts_no_longer_than_the_token_it_was_made_with() -> None:
    clock = Clock()
    clock.now = time.time()
    door = clock.door(Authenticator([TokenLogin(parse_keys(KEY, "keys"), Claims())]))
    bearer = door.handshake(token(exp=int(clock.now) + 60))
    assert door.authorize(bearer, "h").user == "anna"
    clock.now += 61
    with pytest.raises(Denied):
        door.authorize(bearer, "h")


def test_users_that_were_taken_out_are_out_at_once() -> None:
    door = door_of(users("anna"))
    bearer = door.handshake(basic("anna", "secret"))
    door.replace_rules(users("ben"), None)
    for header in (bearer, basic("anna", "secret")):
        with pytest.raises(Denied):
            door.authorize(header, "h")
    assert door.authorize(basic("ben", "secret"), "h").user == "ben"


def test_wrong_answers_are_held_back_longer_each_time_and_right_ones_never() -> None:
    waited: list[float] = []
    door = door_of(users("anna"), wait=waited.append)
    for _ in range(4):
        with pytest.raises(Denied):
            door.authorize(basic("anna", "wrong"), "h")
    assert [round(seconds, 1) for seconds in waited] == [0.2, 0.5, 1.0, 2.0]
    assert door.authorize(basic("anna", "secret"), "h").user == "anna"
    with pytest.raises(Denied):
        door.authorize(basic("anna", "wrong"), "elsewhere")
    assert [round(seconds, 1) for seconds in waited[4:]] == [0.2]


def test_an_address_cannot_hold_more_threads_than_its_share() -> None:
    """Each refusal that waits holds a thread: the next ones are answered at once, unchecked."""
    deep: list[Denied] = []

    def wait(seconds: float) -> None:
        with pytest.raises(Denied) as caught:
            door.authorize(basic("anna", "wrong"), "h")
        deep.append(caught.value)

    door = door_of(users("anna"), wait=wait)
    with pytest.raises(Denied):
        door.authorize(basic("anna", "wrong"), "h")
    assert len(deep) == DELAYED_MAX
    assert "try again later" in door.refusal_text(deep[0])
    assert door.authorize(basic("anna", "secret"), "h").user == "anna"  # and nothing is held any more


def test_a_refusal_may_be_told_without_its_reason() -> None:
    for exact, told in ((True, "wrong user name, password or token"), (False, "not authorized")):
        door = door_of(users("anna"), exact=exact)
        with pytest.raises(Denied) as caught:
            door.authorize(basic("anna", "wrong"), "h")
        assert door.refusal_text(caught.value) == told
