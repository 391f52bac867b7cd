"""Every fault of the REST interface is a problem of RFC 9457, and what does not exist is 404 there, exit 1 here."""

from typing import Any

import pytest

from rumq.gateway.contract.problems import KINDS, PROBLEM_JSON
from tests.cli.conftest import rumqd
from tests.gateway.conftest import Answered, Gateway


def expect_problem(answer: Answered, name: str) -> dict[str, Any]:
    kind = KINDS[name]
    assert answer.headers["content-type"] == PROBLEM_JSON, answer
    problem: dict[str, Any] = answer.json
    assert answer.status == problem["status"] == kind.status, answer
    assert problem["title"] == kind.title and problem["type"] == f"/api/v1/docs#{name}"
    assert len(problem["detail"]) > 5
    return problem


@pytest.mark.parametrize(
    ("method", "path", "body", "token", "name"),
    [
        ("GET", "clients?limit=x", None, "ops", "bad-request"),
        ("GET", "clients?nope=1", None, "ops", "bad-request"),
        ("POST", "publish", b"{", "ops", "bad-request"),
        ("POST", "actions/ban", [], "ops", "bad-request"),
        ("POST", "actions/ban", {"kind": "planet", "name": "x"}, "ops", "bad-request"),
        ("GET", "status", None, None, "unauthorized"),
        ("GET", "status", None, "rumq_wrong", "unauthorized"),
        ("GET", "users", None, "reader", "forbidden"),
        ("GET", "nope", None, "ops", "not-found"),
        ("POST", "status", {}, "ops", "method-not-allowed"),
        ("DELETE", "publish", None, "ops", "method-not-allowed"),
    ],
)
def test_a_fault_is_a_problem(
    gateway: Gateway, method: str, path: str, body: Any, token: str | None, name: str
) -> None:
    expect_problem(gateway.ask(method, f"/api/v1/{path}", body, token=token), name)


def test_a_body_of_an_unknown_kind_and_a_strange_host_are_problems(gateway: Gateway) -> None:
    headers = {"content-type": "text/xml"}
    expect_problem(gateway.ask("POST", "/api/v1/publish", b"<a/>", headers=headers), "unsupported-media-type")
    expect_problem(gateway.ask("GET", "/api/v1/status", headers={"host": "evil.example"}), "misdirected")


UNKNOWN = [
    ("client", {"client": "ghost"}, "no client 'ghost'"),
    ("segments", {"stream": "ghost"}, "no stream 'ghost'"),
    ("segments", {"stream": "main", "partition": 77}, "no partition 77"),
    ("disconnect", {"client": "ghost"}, "no client 'ghost'"),
    ("drop", {"client": "ghost"}, "no client 'ghost'"),
    ("reset", {"client": "ghost", "start": "earliest"}, "no client 'ghost'"),
    ("seal", {"stream": "ghost"}, "stream 'ghost'"),
    ("trim", {"stream": "ghost", "below_lsn": 1}, "stream 'ghost'"),
]


@pytest.mark.parametrize(("name", "fields", "words"), UNKNOWN, ids=lambda each: str(each))
def test_what_does_not_exist_is_404_and_exit_1_over_the_socket_and_over_rest(
    gateway: Gateway, name: str, fields: dict[str, Any], words: str
) -> None:
    if name in ("client", "segments"):
        query = "&".join(f"{key}={value}" for key, value in fields.items())
        answer = gateway.ask("GET", f"/api/v1/{name}?{query}")
    else:
        answer = gateway.ask("POST", f"/api/v1/actions/{name}", fields)
    assert words in expect_problem(answer, "not-found")["detail"]
    flags = [part for key, value in fields.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    url = f"http://127.0.0.1:{gateway.port}"
    env = {"RUMQ_TOKEN": gateway.secrets["ops"]}
    for where in (["--data", str(gateway.broker.data)], ["--url", url]):
        asked = rumqd("ask", name, *flags, *where, env=env)
        assert asked.status == 1 and words in asked.err, (where, asked)


def test_what_is_there_and_empty_is_not_missing(gateway: Gateway) -> None:
    assert gateway.get("segments?stream=main")["left_out"] == 0
    assert gateway.get("clients?client=ghost")["clients"] == []
    assert gateway.get("ledger?client=ghost")["undelivered"] == []


def test_an_action_on_nothing_is_audited_too(gateway: Gateway) -> None:
    gateway.ask("POST", "/api/v1/actions/drop", {"client": "phantom"})
    told = gateway.broker.heard(
        lambda event: event["event"] == "admin.action" and event["what"].get("client") == "phantom"
    )
    assert "no client" in told["why"]
