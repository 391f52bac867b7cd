"""Commands, settings and paths of REST that the prose of the documents names in code spans exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rumq.cli.main import build_parser
from rumq.settings.keys import KEYS, SECTIONS, STREAM_KEYS
from tests.docs.blocks import ROOT, pages
from tests.docs.parsing import rest_faults, variable_faults

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
EVENTS = set(re.findall(r"`(\w+\.\w+)`", (ROOT / "docs/reference/events.md").read_text()))
COMMANDS = next(action for action in build_parser()._actions if action.metavar == "COMMAND").choices
FILE_ENDINGS = {"json", "md", "pem", "py", "sock", "toml", "yaml"}
KEY = re.compile(rf"({'|'.join(SECTIONS)}|stream)\.([a-z_]+)")
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)


def spans(text: str) -> list[str]:
    return SPAN.findall(FENCE.sub("", text))


def faults(text: str) -> Iterator[str]:
    for span in spans(text):
        words = span.split()
        if words[0] == "rumqd" and len(words) > 1 and words[1][0] not in "-.[" and words[1].islower():
            if words[1] not in COMMANDS:
                yield f"{span}: no such command"
        elif key := KEY.fullmatch(span.partition("=")[0].strip()):
            known = STREAM_KEYS if key[1] == "stream" else SECTIONS[key[1]]
            if key[2] not in {*known, *FILE_ENDINGS} and key[0] not in EVENTS | set(KEYS):
                yield f"{span}: neither a setting nor an event"
        if "/api/v1/" in span:
            yield from rest_faults(re.sub(r"/api/v1/(?:actions/)?(?:NAME|\.\.\.)", "", span))
        yield from variable_faults(span)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_what_the_prose_names_exists(page: Path) -> None:
    assert list(faults(page.read_text())) == []


@pytest.mark.parametrize("span", ["rumqd nosuch a", "log.no_such_key = 1", "GET /api/v1/nosuch", "RUMQ_LOG_NO_SUCH"])
def test_what_does_not_exist_is_seen(span: str) -> None:
    assert list(faults(f"see `{span}`"))
    assert (
        list(faults("see `rumqd ask status`, `log.durability`, `log.gap`, `/api/v1/status`, `RUMQ_LOG_DURABILITY`"))
        == []
    )
