"""Retained messages are deleted by filter, as the token's user: where rules forbid it, they stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import trio_test

from rumq.admin import requests as q
from rumq.admin.answers import Retained
from rumq.admin.rows import RetainedRow
from rumq.client.session.messages import Outgoing
from rumq.gateway.contract.endpoints import Clear
from rumq.gateway.handlers import retained_deletion
from rumq.mqtt.reasons import Reason
from tests.cli.conftest import rumqd
from tests.gateway.conftest import Gateway, started

RULES = """\
[[rule]]
users = ["root"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["#"]

[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay"]
topics = ["plant/#"]

[[rule]]
users = ["anna"]
allow = ["retain"]
topics = ["plant/open/#"]
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("clear")
    (path / "rules.toml").write_text(RULES)
    made = started(path, f"auth.rules_file={path}/rules.toml", shards=2)
    for user in ("root", "anna"):
        words = [word for role in ("read", "publish", "administer") for word in ("--role", role)]
        token = rumqd("token", "add", f"{user}-ops", *words, "--user", user, "--data", str(made.broker.data))
        made.secrets[f"{user}-ops"] = token.out.strip()
    made.act("reload")
    made.broker.heard(lambda event: event["event"] == "gateway.reloaded")
    yield made
    made.broker.end()


def keep(gateway: Gateway, *topics: str) -> None:
    given = [{"topic": topic, "payload": "on", "qos": 1, "retain": True} for topic in topics]
    assert gateway.publish(*given, token="root-ops").status == 200


def retained(gateway: Gateway, topic: str = "%23") -> list[str]:
    return [row["topic"] for row in gateway.get(f"retained?topic={topic}", token="root-ops")["messages"]]


def clear(gateway: Gateway, token: str, topic: str, status: int = 200) -> dict[str, object]:
    answer = gateway.ask("POST", "/api/v1/actions/clear", {"topic": topic}, token=token)
    assert answer.status == status, answer
    found: dict[str, object] = answer.json
    return found


def test_what_a_filter_matches_is_deleted_and_the_records_stay(gateway: Gateway) -> None:
    keep(gateway, "all/1", "all/2", "other")
    answer = clear(gateway, "root-ops", "all/#")
    assert answer == {"done": 2, "refused": 0, "first_refused": [], "next": None}
    assert retained(gateway, "all/%23") == [] and "other" in retained(gateway)
    begun = gateway.get("records?topic=all/1&limit=1", token="root-ops")
    after = gateway.get(f"records?topic=all/1&cursor={begun['cursor']}&wait=10", token="root-ops")
    payloads = [row["payload"] for row in (*begun["records"], *after["records"])]
    assert payloads == ["on", ""], "the deletion is a record like any other"
    (event,) = [row for row in gateway.broker.events if row["event"] == "admin.action" and row["action"] == "clear"]
    assert (event["token"], event["what"]["topic"], event["result"]["done"]) == ("root-ops", "all/#", 2)


def test_rules_hold_for_each_topic(gateway: Gateway) -> None:
    keep(gateway, "plant/open/1", "plant/shut", "secret/1")
    answer = clear(gateway, "anna-ops", "#")
    assert (answer["done"], answer["refused"]) == (1, 1)
    assert [row["topic"] for row in answer["first_refused"]] == ["plant/shut"]  # type: ignore[attr-defined]
    assert "secret" not in str(answer)
    assert {"plant/shut", "secret/1"} <= set(retained(gateway))
    assert "not permitted" in str(clear(gateway, "anna-ops", "secret/#", 403)["detail"])
    assert "not permitted" in str(clear(gateway, "ops", "plant/#", 403)["detail"]), "a token without a user"
    assert "may not administer" in str(clear(gateway, "anna", "plant/#", 403)["detail"])
    assert {"plant/shut", "secret/1"} <= set(retained(gateway))


def test_what_is_no_filter_is_refused(gateway: Gateway) -> None:
    assert "goes on after #" in str(clear(gateway, "root-ops", "a/#/b", 400)["detail"])


def test_the_command_asks_first_and_needs_a_gateway(gateway: Gateway) -> None:
    keep(gateway, "by/command")
    url = f"http://127.0.0.1:{gateway.port}"
    secret = gateway.broker.data.parent / "secret"
    secret.write_text(gateway.secrets["root-ops"])
    secret.chmod(0o600)
    local = rumqd("ask", "clear", "--topic", "by/#", "-y", "--data", str(gateway.broker.data))
    assert local.status != 0 and "--url" in local.err
    done = rumqd("ask", "clear", "--topic", "by/#", "-y", "--url", url, "--token-file", str(secret))
    assert done.status == 0, done.err
    assert "by/command" not in retained(gateway)


@trio_test
async def test_more_than_a_request_looks_at_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of the broker are two rows, and a request looks at three."""
    monkeypatch.setattr(retained_deletion, "PAGE_ROWS", 2)
    monkeypatch.setattr(retained_deletion, "MESSAGES_MAX", 3)
    left = ["a", "b", "c", "d", "e"]

    async def find(asked: q.Retained) -> Retained:
        wanted = [topic for topic in left if topic > (asked.after or "")]
        rows = [
            RetainedRow(topic=topic, qos=0, partition=0, lsn=0, time_us=0, bytes=1, payload="x", encoding="utf-8")
            for topic in wanted[: asked.limit]
        ]
        return Retained(messages=rows, left_out=len(wanted) - len(rows))

    class Publishers:
        async def publish(self, user: str, messages: list[Outgoing]) -> tuple[dict[int, tuple[Reason, str]], None]:
            assert user == "anna" and all(each.retain and not each.payload for each in messages)
            for each in messages:
                if each.topic != "b":
                    left.remove(each.topic)
            return {n: (Reason.NOT_AUTHORIZED, "") for n, each in enumerate(messages) if each.topic == "b"}, None

    first = await retained_deletion.clear(Clear(topic="#"), "anna", find, Publishers())  # type: ignore[arg-type]
    assert (first.done, first.refused, first.next, left) == (3, 1, "d", ["b", "e"])
    second = await retained_deletion.clear(Clear(topic="#", after=first.next), "anna", find, Publishers())  # type: ignore[arg-type]
    assert (second.done, second.next, left) == (1, None, ["b"])
