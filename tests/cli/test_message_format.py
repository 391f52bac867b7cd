"""A message as a line of output."""

import json

import pytest

from rumq.cli.message_format import ESCAPES, HELP, LETTERS, Shown, formatter
from rumq.errors import ConfigError

REPLAYED = Shown("plant/7", b"\xff1", 1, True, "2026-11-20T06:00:00Z", 7, 42, "main/0", {"content_type": "text/plain"})
LIVE = Shown("plant/7", "½".encode(), 0, False)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("%t %p", b"plant/7 \xff1"),
        ("%o %n %k %I", b"7 42 main/0 2026-11-20T06:00:00Z"),
        ("%q%r%l %x%%", b"112 ff31%"),
        (r"a\tb\\n\n", b"a\tb\\n\n"),
        ("½ %q", "½ 1".encode()),
        ("", b""),
    ],
)
def test_letters_are_replaced(template: str, line: bytes) -> None:
    assert formatter(template)(REPLAYED) == line


def test_what_the_broker_did_not_say_is_a_dash() -> None:
    assert formatter("%o %n %k %I")(LIVE) == b"- - - -"


def test_json_has_what_is_known_and_nothing_else() -> None:
    assert json.loads(formatter("%j")(LIVE)) == {
        "topic": "plant/7",
        "qos": 0,
        "retain": False,
        "payload": "½",
    }
    shown = json.loads(formatter("%j")(REPLAYED))
    assert (shown["payload_base64"], shown["offset"], shown["partition"]) == ("/zE=", 7, "main/0")
    assert shown["properties"] == {"content_type": "text/plain"}


@pytest.mark.parametrize("template", ["%z", "%", "a%", "\\q", "\\"])
def test_an_unknown_letter_is_refused_with_those_that_are_known(template: str) -> None:
    with pytest.raises(ConfigError, match="expected one of"):
        formatter(template)


def test_the_help_lists_every_letter() -> None:
    assert all(f"%{letter}  " in HELP for letter in LETTERS) and all(f"\\{letter}" in HELP for letter in ESCAPES)
