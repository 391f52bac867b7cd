"""docs/explanation/glossary.md: a word stands once, with one meaning, and names where it is defined.

That the files it names exist is checked for every page: `tests/test_docs.py`."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs/explanation/glossary.md").read_text()
# Words that stood for several things, each with the term that it has now.
DECIDED = (
    "connection", "link", "admin", "trace", "trace order", "mirror", "replica", "setting", "placement", "relay",
    "assembly",
)  # fmt: skip


def rows(page: str) -> list[list[str]]:
    """(term, meaning, defined in) of each row."""
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line[:1] == "|"]
    return [row for row in found if row[0] != "term" and not row[0].startswith("---")]


def terms(page: str) -> list[str]:
    """Each word of the first column, as often as it is defined: `row, frame` are two."""
    return [each for row in rows(page) for each in re.sub(r" \(.*?\)", "", row[0]).split(", ")]


def nowhere(page: str) -> list[str]:
    """Terms that name no file, folder or page, or a path that is not there."""

    def exists(where: str) -> bool:
        paths = re.findall(r"`([\w./]+)`", where)
        links = [f"docs/explanation/{link}" for link in re.findall(r"\]\(([^)#]+)", where)]
        return bool(paths or links) and all((ROOT / Path(each)).exists() for each in (*paths, *links))

    return [row[0] for row in rows(page) if len(row) != 3 or not exists(row[2])]


def test_a_word_stands_once() -> None:
    assert [term for term, count in Counter(terms(PAGE)).items() if count > 1] == []


@pytest.mark.parametrize("term", DECIDED)
def test_a_word_that_had_several_meanings_is_defined(term: str) -> None:
    assert term in terms(PAGE)


def test_every_word_says_where_it_is_defined() -> None:
    assert nowhere(PAGE) == []


def test_what_is_wrong_is_seen() -> None:
    assert Counter(terms(PAGE + "\n| relay | another thing | `rumq/net/` |\n"))["relay"] == 2
    assert nowhere("| relay | bytes passed on | `rumq/net/relays.py` |") == ["relay"]
    assert nowhere("| relay | bytes passed on | somewhere |") == ["relay"]
