"""The flags of a question are the fields of its request: one table decides for REST and for the command line."""

import argparse
from typing import get_args

import msgspec
import pytest

from rumq.admin import requests as q
from rumq.admin.operations import TABLE
from rumq.cli.ask.command import COMMON, add_arguments
from rumq.cli.ask.questions import OF_THE_GATEWAY, lines, question_of
from rumq.cli.ask.request_flags import request_of
from rumq.cli.main import main
from rumq.cli.parsers import LazyParser, sub_parsers
from rumq.gateway.contract.endpoints import ENDPOINTS


def parsed(*words: str) -> argparse.Namespace:
    parser = LazyParser(fill=add_arguments)
    found: argparse.Namespace = parser.parse_args(words)
    return found


def asked(*words: str) -> q.Request:
    args = parsed(*words)
    return request_of(args, question_of(args.question).request)


@pytest.mark.parametrize("name", lines())
def test_every_field_of_a_request_has_a_flag(name: str) -> None:
    parser = sub_parsers(LazyParser(fill=add_arguments).filled())[name]
    flags = {action.dest for action in parser._actions}
    fields = {f"asked_{field.name}" for field in msgspec.structs.fields(question_of(name).request)}
    assert fields <= flags and flags - fields <= COMMON | {"watch", "yes", "help"}


def test_everything_can_be_asked() -> None:
    assert {each.name for each in TABLE} <= lines().keys()
    assert OF_THE_GATEWAY.keys() <= {each.name for each in ENDPOINTS}


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        (("status",), q.Nothing()),
        (("clients", "--client", "p-*", "--sort", "lag", "--limit", "9"), q.Clients(client="p-*", sort="lag", limit=9)),
        (("topics", "-t", "plant/#", "--sort", "rate"), q.Topics(topic="plant/#", sort="rate")),
        (("disconnect", "--client", "X"), q.OneClient(client="X")),
        (("ledger", "--client", "a", "--topic", "b", "--json"), q.Ledger(client="a", topic="b")),
        (("trim", "--stream", "main", "--below-lsn", "7"), q.Trim(stream="main", below_lsn=7)),
        (("ban", "--kind", "user", "--name", "eve", "--seconds", "1.5"), q.Ban(kind="user", name="eve", seconds=1.5)),
        (("reset", "--client", "c", "--start=-1h"), q.Reset(client="c", start="-1h")),
    ],
)
def test_what_is_typed_becomes_the_request(words: tuple[str, ...], request_: q.Request) -> None:
    assert asked(*words) == request_


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("clients", "--limit", "0"), "argument --limit: 0: expected 1 to 10000"),
        (("clients", "--limit", "many"), "argument --limit: many: expected a number"),
        (("clients", "--sort", "size"), "invalid choice: 'size' (choose from"),
        (("ban", "--kind", "user", "--name", ""), "argument --name: expected 1 to 65535 characters"),
        (("ban", "--kind", "user", "--name", "a", "--seconds", "0.5"), "expected 1 to 2678400"),
        (("disconnect",), "the following arguments are required: --client"),
        (("status", "--watch", "0"), "expected seconds, 0.1 to 86400"),
        (("seal", "--stream", "a", "--watch", "1"), "unrecognized arguments: --watch 1"),  # an action
        (("clinets",), "no such command: 'clinets'; did you mean `rumqd ask clients`?"),
        ((), "the following arguments are required: QUESTION"),
    ],
)
def test_what_no_broker_would_take_is_refused_with_status_2(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["ask", *words])
    assert left.value.code == 2 and says in capsys.readouterr().err


def test_help_names_units_bounds_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ask", "ban", "--help"])
    text = capsys.readouterr().out
    assert "--seconds SECONDS" in text and "how long [600]" in text and "{address,client,user}" in text
    assert "--yes" in text, "it destroys something"


def test_flags_of_the_broker_stand_before_or_behind_the_question() -> None:
    for words in (("--data", "d", "--json", "status"), ("status", "--data", "d", "--json")):
        args = parsed(*words)
        assert (args.data, args.json) == ("d", True)
    assert not hasattr(parsed("status"), "data")


def test_choices_are_those_of_the_type() -> None:
    assert asked("clients", "--sort", get_args(q.ClientSort)[0]) == q.Clients(sort=get_args(q.ClientSort)[0])
