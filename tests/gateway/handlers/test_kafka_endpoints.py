"""Consumer groups over REST: for administrators alone, and a sentence where there is no Kafka server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rumq.admin import kafka_groups as k
from rumq.gateway.broker.service_client import KafkaGroupInUse, KafkaServerAway, NotOfKafka
from tests.gateway.in_process import InProcess

TOKENS = {"ops": (("read", "administer"), ""), "reader": (("read", "publish", "consume"), "")}
PATHS = ["kafka_groups", "kafka_lag?group=g", "kafka_members?group=g"]
MEMBER = k.GroupMemberRow(member_id="m", client_id="c", host="h", instance_id=None, partitions=["main/0"])


@pytest.fixture
def place(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, TOKENS)


def replies(place: InProcess, found: Any) -> list[tuple[str, Any]]:
    """What the Kafka server is asked."""
    asked: list[tuple[str, Any]] = []

    async def kafka(name: str, request: Any) -> Any:
        asked.append((name, request))
        if isinstance(found, Exception):
            raise found
        return found

    place.context.broker.kafka = kafka
    return asked


@pytest.mark.parametrize("path", PATHS)
def test_only_an_administrator_is_told_of_the_groups_of_all_users(path: str, place: InProcess) -> None:
    asked = replies(place, k.GroupMembers(members=[MEMBER]))
    assert place.ask("GET", path, token="reader").status_code == 403 and not asked
    found = place.ask("GET", path)
    assert (found.status_code, found.json()["members"][0]["partitions"]) == (200, ["main/0"])
    assert [name for name, _ in asked] == [path.partition("?")[0]]


def test_parameters_are_those_of_the_question(place: InProcess) -> None:
    asked = replies(place, k.GroupLag(partitions=[]))
    place.ask("GET", "kafka_lag?group=a%2Fb&user=anna&limit=7&offset=3")
    assert asked == [("kafka_lag", k.FindLag(group="a/b", user="anna", limit=7, offset=3))]
    for wrong in ("kafka_lag", "kafka_lag?group=", "kafka_groups?limit=201", "kafka_groups?offset=-1"):
        assert place.ask("GET", wrong).status_code == 400, wrong


def test_what_is_not_there_is_said(place: InProcess) -> None:
    none = place.ask("GET", "kafka_groups")
    assert none.status_code == 404 and "no Kafka server" in none.json()["detail"]
    replies(place, KafkaServerAway("it does not answer"))
    assert place.ask("GET", "kafka_groups").status_code == 503
    replies(place, NotOfKafka("there is no group g"))
    missing = place.ask("GET", "kafka_lag?group=g")
    assert (missing.status_code, missing.json()["detail"]) == (404, "there is no group g")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("delete_kafka_group", {"group": "g", "user": "anna"}),
        ("reset_kafka_group", {"group": "g", "user": "", "topic": "main", "partition": None, "to": "earliest"}),
    ],
)
def test_an_action_is_an_administrators_and_audited(name: str, body: dict[str, Any], place: InProcess) -> None:
    asked = replies(place, k.GroupDone(done=2))
    assert place.ask("POST", f"actions/{name}", body, token="reader").status_code == 403 and not asked
    assert place.ask("POST", f"actions/{name}", body).json() == {"done": 2}
    replies(place, KafkaGroupInUse("group g has members"))
    assert place.ask("POST", f"actions/{name}", body).status_code == 409
    told = [(each["action"], each["what"], each["why"], each["result"]) for each in place.events]
    assert told == [(name, body, "", {"done": 2}), (name, body, "group g has members", None)]
    assert place.ask("POST", f"actions/{name}", {"group": ""}).status_code == 400
