"""What may be asked for is checked before anything is opened, each refusal one sentence."""

import json
from typing import Any

import pytest

from rumq.errors import RumqError
from rumq.flight.errors import (
    WIRE_ERRORS,
    BadRequest,
    Failed,
    NotAllowed,
    TooManyReads,
    maybe_fault,
    to_wire,
)
from rumq.flight.schema import NAMES
from rumq.flight.tickets import LSN_MAX, Ticket, parse_command, parse_ticket
from rumq.table.errors import BadOption, DataLoss, UnknownOption

NOW_US = 1_700_000_000_000_000


def ticket(**said: Any) -> bytes:
    return json.dumps({"partition": "main/g1/p0", "start": 0, "end": 10, **said}).encode()


def test_a_ticket_is_plain_json_and_comes_back_as_it_was() -> None:
    made = Ticket(partition="main/g1/p0", start=5, end=LSN_MAX, columns=("lsn", "payload"), topics=("a/#", "a,b"))
    assert parse_ticket(made.to_bytes()) == made
    assert json.loads(made.to_bytes()) == {
        "partition": "main/g1/p0", "start": 5, "end": LSN_MAX, "columns": ["lsn", "payload"],
        "topics": ["a/#", "a,b"], "properties": "array", "failOnDataLoss": True,
    }  # fmt: skip
    assert parse_ticket(ticket()) == Ticket(partition="main/g1/p0", start=0, end=10, columns=NAMES)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "expected JSON"),
        (b"\xff\xfe", "expected JSON"),
        (b"[" * 100_000, "expected JSON|Expected"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field `partition`"),
        (b" " * (1 << 20) + b"{}", "at most 1048576"),
        (ticket(secret="x"), "unknown field `secret`"),
        (ticket(partition="../main/g1/p0"), "a name such as main/g1/p0"),
        (ticket(partition="_state/g1/p0"), "a name such as main/g1/p0"),
        (ticket(partition="main/g1/p0\n"), "a name such as main/g1/p0"),
        (ticket(partition="main/g1/p0/../../../etc"), "a name such as main/g1/p0"),
        (ticket(start=11), "expected 0 <= start <= end"),
        (ticket(start=-1), "expected 0 <= start <= end"),
        (ticket(end=2**63), "expected 0 <= start <= end|out of range"),
        (ticket(start="0"), "Expected `int`"),
        (ticket(start=True), "Expected `int`"),
        (ticket(columns=[]), "one or more, each once"),
        (ticket(columns=["lsn", "lsn"]), "one or more, each once"),
        (ticket(columns=["paylod"]), r"no column 'paylod': did you mean payload\?"),
        (ticket(topics=["a/#/b"]), "MQTT topic filters"),
        (ticket(topics=["$share/g/a"]), "filters without a share, a"),
        (ticket(properties="none"), "Invalid enum value 'none'"),
    ],
)
def test_a_ticket_that_cannot_be_meant_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        parse_ticket(data)
    assert str(caught.value).startswith("rumq: this ticket cannot be served: ")
    assert len(str(caught.value)) < 500


def test_a_command_is_options_of_the_spark_source_with_topics_and_columns() -> None:
    command = parse_command(
        b'{"topics": ["plant/#"], "columns": ["payload"], "startingOffsets": {"main/g1/p0": 5},'
        b' "endingTimestamp": "-1m", "maxRecordsPerPartition": 100, "failOnDataLoss": false}', "d", NOW_US,
    )  # fmt: skip
    assert (command.topics, command.columns, command.options.path) == (("plant/#",), ("payload",), "d")
    assert command.options.start.lsns == {"main/g1/p0": 5}
    assert command.options.end.time_us == NOW_US - 60_000_000
    assert command.ticket("main/g1/p0", 5, 9) == Ticket(
        partition="main/g1/p0",
        start=5,
        end=9,
        columns=("payload",),
        topics=("plant/#",),
        failOnDataLoss=False,
    )
    assert parse_command(b"", "d", NOW_US).columns == NAMES


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"topic": ["a"]}, r"no key 'topic': did you mean topics\?"),
        ({"path": "/etc"}, "there is no key 'path'"),
        ({"broker": "grpc://elsewhere"}, "there is no key 'broker'"),
        ({"subscribePattern": "(a+)+$"}, "there is no key 'subscribePattern'"),
        ({"passwordFile": "/etc/shadow"}, "there is no key 'passwordFile'"),
        ({"topics": "a"}, "topics: expected a list of texts"),
        ({"columns": [1]}, "columns: expected a list of texts"),
        ({"properties": "none"}, "expected array or map"),
        ({"startingOffsets": "somewhere"}, "option startingOffsets"),
        ({"maxRecordsPerPartition": 0}, "a whole number, 1 or more"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(said: dict[str, Any], says: str) -> None:
    with pytest.raises((BadRequest, BadOption), match=says):
        parse_command(json.dumps(said).encode(), "d", NOW_US)


@pytest.mark.parametrize(
    "fault",
    [
        BadRequest("ticket", "x"),
        NotAllowed("no", True),
        TooManyReads("later"),
        Failed("x"),
        DataLoss("main/g1/p0", 5, 9, "retention has removed them"),
        BadOption("a", "b", "c"),
        UnknownOption("a", "b"),
    ],
)
def test_a_fault_is_the_same_on_both_sides_of_the_wire(fault: RumqError) -> None:
    found = maybe_fault(to_wire(fault))
    assert (type(found), found and found.args) == (type(fault), fault.args)
    assert type(fault) in WIRE_ERRORS.values()


def test_data_loss_travels_with_its_exact_range() -> None:
    assert json.loads(to_wire(DataLoss("main/g1/p0", 5, 9, "gone"))) == {
        "error": "data_loss", "partition": "main/g1/p0", "first": 5, "next": 9, "why": "gone",
    }  # fmt: skip


@pytest.mark.parametrize("wire", [b"", b"x", b"[]", b"null", b'{"error": "x"}', b'{"error": "data_loss"}', b"\xff"])
def test_what_is_no_fault_of_ours_is_none(wire: bytes) -> None:
    assert maybe_fault(wire) is None
