"""Events: the code says nothing that docs/reference/events.md does not list, and says it so that a line is a line."""

import ast
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from rumq.events.event_log import LEVELS as TOLD_LEVELS
from rumq.events.output import get_logger, setup_events

ROOT = Path(__file__).parents[1]
LOGGER_LEVELS = {
    "debug": "debug",
    "info": "info",
    "warning": "warning",
    "error": "error",
    "exception": "error",
}
TELLERS = {
    "tell",
    "event",
    "_tell",
    "_event",
    "of_client",
    "Alarm",
}  # what the floors below are given instead of a logger; tell() sets the level
EVENT_NAME = re.compile(r"^[a-z_]+\.[a-z_]+$")
ROW = re.compile(r"^\| `([^`]+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)

LISTED = {
    name: (level, {field.strip() for field in fields.split(",")})
    for name, level, fields in ROW.findall((ROOT / "docs/reference/events.md").read_text())
}


def said_by(source: str) -> Iterator[tuple[int, str, str, set[str]]]:
    """Each call in the source that tells an event: its line, name, level and fields."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called not in LOGGER_LEVELS and called not in TELLERS:
            continue
        fields = {keyword.arg for keyword in node.keywords if keyword.arg} - {"exc_info"}
        for part in ast.walk(node.args[0]):  # `"a.b" if behind else "a.c"` names two
            if isinstance(part, ast.Constant) and EVENT_NAME.match(str(part.value)):
                level = LOGGER_LEVELS.get(called) or TOLD_LEVELS.get(part.value, "info")
                yield node.lineno, part.value, level, fields


SAID = [
    (f"{path.relative_to(ROOT)}:{line}", name, level, fields)
    for path in sorted((ROOT / "rumq").rglob("*.py"))
    for line, name, level, fields in said_by(path.read_text())
]


def test_every_event_in_the_code_is_listed_with_its_level_and_fields() -> None:
    strangers = [
        f"{where}: {name} at {level}, fields {', '.join(sorted(fields))}"
        for where, name, level, fields in SAID
        if name not in LISTED or level != LISTED[name][0] or not fields <= LISTED[name][1]
    ]
    assert not strangers, "docs/reference/events.md does not have:\n" + "\n".join(strangers)


def test_every_listed_event_is_in_the_code() -> None:
    assert set(LISTED) == {name for _, name, _, _ in SAID}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('log.info("client.lost", why=why)', [(1, "client.lost", "info", {"why"})]),
        ('self._event("log.failed", error=1, exc_info=True)', [(1, "log.failed", "error", {"error"})]),
        ('tell("a.b" if x else "a.c")', [(1, "a.b", "info", set()), (1, "a.c", "info", set())]),
        ('open("rumq.mqtt", x=1)', []),
    ],
)
def test_an_event_is_found_where_it_is_told(source: str, found: list[object]) -> None:
    assert list(said_by(source)) == found


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    before = structlog.get_config()
    yield io.StringIO()
    structlog.configure(**before)


def test_json_has_time_level_event_and_floor_and_then_the_fields(stream: io.StringIO) -> None:
    setup_events("json", "info", stream)
    get_logger("rumq.net").info("listener.bound", host="localhost", port=1883, path=Path("a"), raw=b"\xff")
    event = json.loads(stream.getvalue())
    assert list(event)[:4] == ["time", "level", "event", "floor"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
    assert (event["level"], event["event"], event["floor"]) == ("info", "listener.bound", "rumq.net")
    assert (event["host"], event["port"]) == ("localhost", 1883)


def test_a_logger_made_before_the_set_up_follows_it(stream: io.StringIO) -> None:
    log = get_logger("rumq.net")
    setup_events("json", "info", stream)
    log.info("listener.bound")
    assert "listener.bound" in stream.getvalue()


def test_auto_is_json_where_there_is_no_terminal(stream: io.StringIO) -> None:
    setup_events("auto", "info", stream)
    get_logger("rumq").info("broker.ready")
    assert json.loads(stream.getvalue())["event"] == "broker.ready"


def test_events_below_the_level_are_not_written(stream: io.StringIO) -> None:
    setup_events("json", "warning", stream)
    get_logger("rumq").info("broker.ready")
    assert stream.getvalue() == ""


def test_a_person_reads_one_line_an_event(stream: io.StringIO) -> None:
    setup_events("human", "info", stream)
    get_logger("rumq.net").bind(client_id="pump-7").info("client.connected", version=5, reason="all is well")
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d\.\d{3} info    client.connected +client_id=pump-7 version=5 reason="all is well"\n',
        stream.getvalue(),
    )


@pytest.mark.parametrize("format", ["human", "json"])
def test_a_client_id_cannot_forge_a_line(format: str, stream: io.StringIO) -> None:
    setup_events(format, "info", stream)
    for client_id in ("a\n12:00 info broker.stopped", "a\x1b[2J", "a\u2028b", "x reason=fine", ""):
        get_logger("rumq.net").info("client.lost", client_id=client_id)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 6 and all("\x1b" not in line and line.count("client.lost") == 1 for line in lines[:-1])
    assert "client_id=x reason" not in stream.getvalue()


HOSTILE = "\x00\x1b\x7f\x85\x9b\u061c\u200e\u202a\u202e\u2066\u2069\u200b\ufeff\u2028\ud800\U000e0041"


@pytest.mark.parametrize("character", HOSTILE, ids=lambda each: f"U+{ord(each):04X}")
def test_a_person_is_shown_no_character_that_commands_a_terminal_or_turns_a_line(
    character: str, stream: io.StringIO
) -> None:
    """C0, C1, bidirectional, without width: escaped in a field, in a list, and in the text of an exception."""
    setup_events("human", "info", stream)
    try:
        raise ValueError(f"a{character}b")
    except ValueError:
        get_logger("rumq").exception(
            "client.crashed",
            client_id=f"a{character}b",
            filters=[f"a{character}"],
            why=f"a {character}",
        )
    assert stream.getvalue().count("client.crashed") == 1
    assert character not in stream.getvalue()
    assert all(each.isprintable() or each in "\n\t" for each in stream.getvalue())


def test_text_of_any_language_is_shown_as_it_is(stream: io.StringIO) -> None:
    setup_events("human", "info", stream)
    get_logger("rumq").info("client.lost", client_id="Pumpe-ä-泵-насос-مضخة")
    assert "client_id=Pumpe-ä-泵-насос-مضخة" in stream.getvalue()


@pytest.mark.parametrize("format", ["human", "json"])
def test_an_exception_is_told_with_its_traceback_at_level_error(format: str, stream: io.StringIO) -> None:
    setup_events(format, "error", stream)
    try:
        raise ExceptionGroup("two", [ValueError("our bug")])
    except* ValueError:
        get_logger("rumq.net").exception("client.crashed", client_id="pump-7")
    assert "ValueError: our bug" in stream.getvalue() and "error" in stream.getvalue()


def test_a_closed_terminal_stops_nothing(stream: io.StringIO) -> None:
    setup_events("json", "info", stream)
    stream.close()
    get_logger("rumq").info("broker.ready")


def test_standard_error_is_where_events_go(capsys: pytest.CaptureFixture[str], stream: io.StringIO) -> None:
    setup_events("json")
    get_logger("rumq").warning("broker.turn_slow", milliseconds=20)
    assert "broker.turn_slow" in capsys.readouterr().err
