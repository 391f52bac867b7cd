"""Documents name files that exist, and pages that somebody can reach from docs/README.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")])
SOURCES = [
    str(path.relative_to(ROOT))
    for top in ("rumq", "router", "commitlog", "tests", "bench", "examples", "pyspark_rumq")
    for path in (ROOT / top).rglob("*")
    if path.suffix == ".py" or path.is_dir()
] + ["setup.py", "rumq", "router", "commitlog", "tests"]


def missing_in(text: str) -> list[str]:
    """Paths of Python files and folders of rumq in code spans that are no file or folder of the project."""
    named = re.findall(r"`((?:[\w-]+/)*[\w-]+\.py)\b", text)
    named += [
        name.rstrip("/") for name in re.findall(r"`((?:rumq|router|commitlog|tests)/[\w/-]*/|rumq/)`", text)
    ]
    return [name for name in named if not any(path == name or path.endswith("/" + name) for path in SOURCES)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_files_that_exist(page: Path) -> None:
    assert not missing_in(page.read_text())


def test_a_file_that_is_not_there_is_seen() -> None:
    assert missing_in("see `rumq/shards/no_such_module.py`, `no_such.py`, `rumq/nowhere/`") != []
    assert missing_in("see `commitlog/partition.py`, `rumq/shards/`") == []


def test_every_page_is_linked() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text())
    }
    assert [
        page for page in (ROOT / "docs").rglob("*.md") if page not in linked and page.name != "README.md"
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def headings(page: Path) -> list[str]:
    return [
        line.lstrip("# ").replace("`", "") for line in page.read_text().splitlines() if line.startswith("#")
    ]


def sections_cited(text: str) -> list[tuple[str, str]]:
    """(page, section) of each citation of a document, a section in quotes behind it."""
    return [
        (page, " ".join(title.split())) for page, title in re.findall(r'docs/([\w-]+\.md),\s+"([^"]+)"', text)
    ]


def test_a_module_cites_sections_that_exist() -> None:
    missing = [
        (str(path.relative_to(ROOT)), *cited)
        for top in ("rumq", "router", "commitlog", "tests", "bench")
        for path in sorted((ROOT / top).rglob("*.py"))
        for cited in sections_cited(path.read_text())
        if not any(heading.startswith(cited[1]) for heading in headings(ROOT / "docs" / cited[0]))
    ]
    assert missing == []
