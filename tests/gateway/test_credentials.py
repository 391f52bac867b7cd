"""Tokens and users over REST: made, listed without secrets, expiring, revoked; a token gives no more than it has."""

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from rumq.admin import requests as q
from rumq.auth.credentials import hashes
from rumq.auth.credentials.passwords import parse as parse_users
from rumq.cli.ask.questions import question_of
from rumq.cli.ask.rest_source import RestSource
from rumq.cli.ask.source import AskFailed
from rumq.gateway.access.credential_files import CredentialFiles
from rumq.gateway.access.tokens import Token, hash_of, parse
from rumq.gateway.contract import credential_messages as m
from tests.gateway.in_process import NOW_US, InProcess

OPS = ("read", "publish", "administer")
TOKENS = {"ops": (OPS, ""), "reader": (("read",), ""), "guard": (("administer",), ""), "root": (OPS, "root")}
RULES = """
[[rule]]
users = ["root"]
allow = ["publish", "subscribe", "replay", "retain", "will"]
topics = ["#"]

[[rule]]
users = ["anna"]
allow = ["subscribe", "replay"]
topics = ["open/#"]
"""


@pytest.fixture
def place(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, TOKENS)


@pytest.fixture
def ruled(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, TOKENS, RULES)


def listed(place: InProcess) -> dict[str, Any]:
    return {row["name"]: row for row in place.ask("GET", "tokens").json()["tokens"]}


def test_a_token_that_is_made_is_good_at_once_and_its_secret_is_shown_once(place: InProcess) -> None:
    made = place.ask("POST", "tokens", {"name": "app", "roles": ["read"], "user": "anna"})
    assert made.status_code == 201
    secret = made.json()["secret"]
    me = place.ask("GET", "me", token=secret).json()
    assert (me["name"], me["roles"], me["user"]) == ("app", ["read"], "anna")
    everything = place.ask("GET", "tokens").text + place.tokens_file.read_text() + repr(place.events)
    assert secret not in everything and hash_of(secret) not in place.ask("GET", "tokens").text
    assert listed(place)["app"] == {
        "name": "app", "roles": ["read"], "user": "anna", "expires_us": None, "expired": False,
    }  # fmt: skip


def test_the_file_is_the_one_store_and_only_its_owner_reads_it(place: InProcess) -> None:
    secret = place.ask("POST", "tokens", {"name": "app"}).json()["secret"]
    kept = parse(place.tokens_file.read_text(), "file")
    assert kept[hash_of(secret)].name == "app" and {each.name for each in kept.values()} == {*TOKENS, "app"}
    assert place.tokens_file.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in place.tokens_file.parent.iterdir()) == ["gateway-tokens", "users"]


def test_a_token_that_is_revoked_is_refused_at_once_and_what_it_holds_ends(place: InProcess) -> None:
    answer = place.ask("DELETE", "tokens?name=reader")
    assert (answer.status_code, answer.json()) == (200, {"revoked": "reader"})
    assert place.ask("GET", "me", token="reader").status_code == 401
    assert place.rechecked == [set(TOKENS) - {"reader"}]
    assert "reader" not in place.tokens_file.read_text()
    again = place.ask("DELETE", "tokens?name=reader")
    assert again.status_code == 404 and "no token 'reader'" in again.json()["detail"]


def test_a_token_expires(place: InProcess) -> None:
    secret = place.ask("POST", "tokens", {"name": "short", "seconds": 60}).json()["secret"]
    assert listed(place)["short"]["expires_us"] == NOW_US + 60_000_000
    place.now_us += 59_999_999
    assert place.ask("GET", "me", token=secret).status_code == 200
    place.now_us += 1
    refused = place.ask("GET", "me", token=secret)
    assert refused.status_code == 401 and "token short has expired" in refused.json()["detail"]
    assert listed(place)["short"]["expired"]
    assert place.ask("DELETE", "tokens?name=short").status_code == 200


def test_connections_of_a_token_end_when_it_expires(place: InProcess) -> None:
    place.ask("POST", "tokens", {"name": "short", "seconds": 60})
    place.rechecked.clear()

    async def body() -> None:
        moved = place.context.log.followed.moved
        with trio.move_on_after(120):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(place.context.rights.end_expired)
                await moved.wait()
                assert trio.current_time() - began <= 61
                nursery.cancel_scope.cancel()

    async def run() -> None:
        nonlocal began
        began = trio.current_time()
        place.context.clock.now_us = lambda: NOW_US + int((trio.current_time() - began) * 1e6)
        await body()

    began = 0.0
    trio.run(run, clock=MockClock(autojump_threshold=0))
    assert place.rechecked == [set(TOKENS)]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"name": "ops"}, 409, "already"),
        ({"name": ""}, 400, ""),
        ({"name": "a b"}, 400, "letters"),
        ({"name": "../x"}, 400, "letters"),
        ({"name": "x", "roles": ["king"]}, 400, "king"),
        ({"name": "x", "seconds": 0}, 400, "seconds"),
        ({"name": "x", "secret": "mine"}, 400, "secret"),
        ({}, 400, "name"),
    ],
)
def test_a_token_that_cannot_be_made_changes_nothing(place: InProcess, body: Any, status: int, words: str) -> None:
    before = place.tokens_file.read_text()
    answer = place.ask("POST", "tokens", body)
    assert answer.status_code == status and words in answer.json()["detail"]
    assert place.tokens_file.read_text() == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "tokens", None), ("POST", "tokens", {"name": "x"}), ("DELETE", "tokens?name=ops", None),
        ("GET", "users", None), ("POST", "users", {"user": "x"}), ("DELETE", "users?user=x", None),
    ],
)  # fmt: skip
def test_only_who_may_administer_sees_or_changes_them(place: InProcess, method: str, path: str, body: Any) -> None:
    before = place.tokens_file.read_text()
    assert place.ask(method, path, body, token="reader").status_code == 403
    assert place.tokens_file.read_text() == before


def test_a_token_gives_no_role_that_it_lacks(place: InProcess) -> None:
    refused = place.ask("POST", "tokens", {"name": "x", "roles": ["publish"]}, token="guard")
    assert refused.status_code == 403 and "publish" in refused.json()["detail"]
    assert place.ask("POST", "tokens", {"name": "x", "roles": ["administer"]}, token="guard").status_code == 201


def test_under_rules_no_token_makes_one_that_may_do_more(ruled: InProcess) -> None:
    for user in ("root", "anna"):
        refused = ruled.ask("POST", "tokens", {"name": "x", "user": user}, token="ops")
        assert refused.status_code == 403 and "do everything" in refused.json()["detail"]
        assert ruled.ask("POST", "users", {"user": user}, token="ops").status_code == 403
    assert ruled.users_file.read_text() == ""
    assert ruled.ask("POST", "tokens", {"name": "same"}, token="ops").status_code == 201
    assert ruled.ask("POST", "tokens", {"name": "y", "user": "anna"}, token="root").status_code == 201
    assert ruled.ask("POST", "users", {"user": "anna"}, token="root").status_code == 201
    assert ruled.ask("DELETE", "tokens?name=reader", token="ops").status_code == 200, "that gives nothing"


def test_a_user_is_made_with_a_password_that_is_shown_once_and_the_broker_reads_it(place: InProcess) -> None:
    made = place.ask("POST", "users", {"user": "pump-7"})
    assert made.status_code == 201 and len(password := made.json()["password"]) >= 24
    assert place.orders == ["reload"]
    kept = parse_users(place.users_file.read_text(), "users")
    assert hashes.verify(kept["pump-7"], password.encode())
    assert password not in place.users_file.read_text() + repr(place.events)
    assert place.ask("GET", "users").json() == {"users": ["pump-7"]}
    changed = place.ask("POST", "users", {"user": "pump-7", "password": "chosen"})
    assert (changed.status_code, changed.json()["password"]) == (200, None)
    assert hashes.verify(parse_users(place.users_file.read_text(), "users")["pump-7"], b"chosen")
    assert "chosen" not in repr(place.events)


def test_a_user_is_removed(place: InProcess) -> None:
    place.ask("POST", "users", {"user": "pump-7"})
    assert place.ask("DELETE", "users?user=pump-7").json() == {"revoked": "pump-7"}
    assert place.users_file.read_text() == "" and place.ask("GET", "users").json() == {"users": []}
    assert place.ask("DELETE", "users?user=pump-7").status_code == 404
    assert place.orders == ["reload", "reload"]


@pytest.mark.parametrize("user", ["a:b", " a", "a\nb:c", "\x1b[2J", "x" * 1025])
def test_a_name_that_the_file_cannot_hold_is_refused(place: InProcess, user: str) -> None:
    assert place.ask("POST", "users", {"user": user}).status_code == 400
    assert place.users_file.read_text() == "" and place.orders == []


def test_without_a_password_file_there_is_no_place_for_users(tmp_path: Path) -> None:
    place = InProcess(tmp_path, TOKENS, has_users=False)
    answer = place.ask("POST", "users", {"user": "x"})
    assert answer.status_code == 409 and "auth.password_file" in answer.json()["detail"]
    assert place.ask("DELETE", "users?user=x").status_code == 409


def test_a_file_that_cannot_be_changed_is_said(place: InProcess) -> None:
    place.tokens_file.write_text("no tokens\n")
    answer = place.ask("POST", "tokens", {"name": "x"})
    assert answer.status_code == 503 and "gateway-tokens" in answer.json()["detail"]
    assert place.tokens_file.read_text() == "no tokens\n"


def test_changes_are_audited(place: InProcess) -> None:
    place.ask("POST", "tokens", {"name": "app"}, token="root")
    place.ask("DELETE", "tokens?name=app", token="root")
    place.ask("POST", "users", {"user": "pump-7"}, token="root")
    told = [(each["action"], each["token"]) for each in place.events if each["event"] == "admin.action"]
    assert told == [("make_token", "root"), ("revoke_token", "root"), ("make_user", "root")]


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    stores = [CredentialFiles(str(tmp_path / "tokens"), "", lambda token: None) for _ in range(4)]

    def add(store: CredentialFiles, number: int) -> None:
        for n in range(5):
            name = f"t{number}-{n}"
            store.add_token(Token(name, frozenset({"read"}), "", hash_of(name)))

    threads = [threading.Thread(target=add, args=(store, n)) for n, store in enumerate(stores)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(parse((tmp_path / "tokens").read_text(), "tokens")) == 20


def test_rumqd_ask_lists_and_revokes_and_ends_with_1_for_a_token_that_there_is_not(place: InProcess) -> None:
    async def ask(name: str, request: q.Request) -> Any:
        source = RestSource("http://localhost", place.secrets["ops"], transport=httpx.ASGITransport(place.app))
        try:
            return await source.ask(question_of(name), request)
        finally:
            await source.close()

    found = trio.run(ask, "tokens", q.Nothing())
    assert {each.name for each in found.tokens} == set(TOKENS)
    assert trio.run(ask, "revoke_token", m.OneToken(name="reader")).revoked == "reader"
    with pytest.raises(AskFailed, match="there is no token 'reader'"):
        trio.run(ask, "revoke_token", m.OneToken(name="reader"))
    with pytest.raises(AskFailed, match="there is no user 'x'"):
        trio.run(ask, "revoke_user", m.OneUser(user="x"))
