"""Which fields tell topics is declared with each operation and endpoint: nothing can be added without, and no field is
forgotten whose name says what it has."""

from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.admin.operations import TABLE, Operation
from rumq.admin.topic_names import ANY_TOPIC, NO_TOPICS, Tells, TopicField, leave_out
from rumq.gateway.contract.endpoints import ENDPOINTS

DECLARED = [*TABLE, *ENDPOINTS]
OF_TOPICS = {
    "topic",
    "filter",
    "filters",
    "subscriptions",
    "group",
    "prefix",
    "level",
    "payload",
    "attributes",
    "fields",
}
# Texts of that name that are no topics of others: of a role that may see all, or beside a declared one in their row.
ELSEWHERE = {
    "groups": {"groups.group"},  # $share/NAME/FILTER: gone with its row
    "tree": {"levels.level"},  # likewise
    "retained": {"messages.payload"},
    "records": {"records.payload"},
    "topic_records": {"records.payload"},
    "value": {"record.payload"},
    "rules": {"reasons.filter"},  # for administrators
    "kafka_groups": {"groups.group"},  # of Kafka's consumers
    "kafka_lag": {"partitions.topic"},  # Kafka's: a stream or a view, for administrators
}


def structs_in(kind: Any) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [found for part in get_args(kind) for found in structs_in(part)]


def fields_of(kind: Any, path: str = "") -> dict[str, Any]:
    """Path -> type, of all fields down from an answer."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        found[f"{path}{name}"] = hint
        for inner in structs_in(hint):
            found |= fields_of(inner, f"{path}{name}.")
    return found


def test_an_operation_or_endpoint_that_does_not_say_what_it_tells_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="tells"):
        Operation("new", q.Nothing, a.Pong, "says nothing of topics")  # type: ignore[call-arg]
    assert all(isinstance(each.tells, Tells) for each in DECLARED)


@pytest.mark.parametrize("each", [each for each in DECLARED if not each.tells.of_queues], ids=lambda each: each.name)
def test_what_is_declared_is_there_and_what_is_there_is_declared(each: Any) -> None:
    fields, places = fields_of(each.answer), {place.path for place in each.tells.places}
    assert places <= fields.keys()
    if each.tells.asked is not None:
        assert each.tells.asked.path in get_type_hints(each.request)
    named = {path for path in fields if path.rpartition(".")[2] in OF_TOPICS and not structs_in(fields[path])}
    assert each.tells.anywhere or named - ELSEWHERE.get(each.name, set()) == places
    asks = "topic" in get_type_hints(each.request)
    assert each.role == "administer" or not asks or each.tells.asked is not None


def test_actions_are_for_administrators() -> None:
    assert {each.role for each in TABLE if each.tells == NO_TOPICS and each.is_action} == {"administer"}
    assert {each.name for each in TABLE if each.tells == ANY_TOPIC} == {"events", "spans", "traces"}


def row(topic: str) -> r.TopicRow:
    return r.TopicRow(topic=topic, stream="main", partition=0, records=1, records_per_second=0.0)


def test_elements_are_left_out_at_any_depth() -> None:
    topics = a.Topics(topics=[row("open"), row("secret")])
    leave_out(topics, Tells((TopicField("topics.topic"),)), lambda kind, text: text != "secret")
    assert [each.topic for each in topics.topics] == ["open"]
    detail = a.ClientDetail(
        found=True, subscriptions=[r.SubscriptionRow(filter="secret/#", kind="live", qos=0)],
        undelivered=[r.UndeliveredRow(reason="expired", client_id="c", topic="open", records=1)],
    )  # fmt: skip
    tells = next(each.tells for each in TABLE if each.name == "client")
    leave_out(detail, tells, lambda kind, text: (kind, text) != ("filter", "secret/#"))
    assert detail.subscriptions == [] and len(detail.undelivered) == 1
    assert detail.client is None
