"""Documents name files that exist, and pages that somebody can reach from docs/README.md."""

import contextlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")])
SOURCES = [
    str(path.relative_to(ROOT))
    for top in ("rumq", "router", "commitlog", "tests", "bench", "examples", "pyspark_rumq", "docs/site")
    for path in (ROOT / top).rglob("*")
    if path.suffix == ".py" or path.is_dir()
] + ["setup.py", "rumq", "router", "commitlog", "tests"]


def missing_in(text: str) -> list[str]:
    """Paths of Python files and folders of rumq in code spans that are no file or folder of the project."""
    named = re.findall(r"`((?:[\w-]+/)*[\w-]+\.py)\b", text)
    named += [name.rstrip("/") for name in re.findall(r"`((?:rumq|router|commitlog|tests)/[\w/-]*/|rumq/)`", text)]
    return [name for name in named if not any(path == name or path.endswith("/" + name) for path in SOURCES)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_files_that_exist(page: Path) -> None:
    assert not missing_in(page.read_text())


def test_a_file_that_is_not_there_is_seen() -> None:
    assert missing_in("see `rumq/shards/no_such_module.py`, `no_such.py`, `rumq/nowhere/`") != []
    assert missing_in("see `commitlog/log/partition.py`, `rumq/shards/`") == []


def test_every_page_is_linked() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text())
    }
    assert [page for page in (ROOT / "docs").rglob("*.md") if page not in linked and page.name != "README.md"] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def headings(page: Path) -> list[str]:
    return [line.lstrip("# ").replace("`", "") for line in page.read_text().splitlines() if line.startswith("#")]


def sections_cited(text: str) -> list[tuple[str, str]]:
    """(page, section) of each citation of a document, a section in quotes behind it."""
    cited = re.findall(r'docs/((?:[\w-]+/)*[\w-]+\.md),\s+"([^"]+)"', text)
    return [(page, " ".join(title.split())) for page, title in cited]


def test_a_module_cites_sections_that_exist() -> None:
    missing = [
        (str(path.relative_to(ROOT)), *cited)
        for top in ("rumq", "router", "commitlog", "tests", "bench")
        for path in sorted((ROOT / top).rglob("*.py"))
        for cited in sections_cited(path.read_text())
        if not any(heading.startswith(cited[1]) for heading in headings(ROOT / "docs" / cited[0]))
    ]
    assert missing == []


# A path below docs/ as texts name it, in any file: not the middle of another path, an address or a variable's.
NAMED = re.compile(r"(?<![\w./-])(?:\.\./)*(docs/[\w./-]*\w/?)")
JOINED = re.compile(r'"docs"((?: / "[\w.-]+")+)')


def paths_named(text: str) -> list[str]:
    joined = ["docs/" + "/".join(re.findall(r'"([^"]+)"', each)) for each in JOINED.findall(text)]
    return NAMED.findall(text) + joined


def test_every_path_of_the_documents_that_the_tree_names_exists() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    missing = []
    for name in files.stdout.split("\0"):
        path = ROOT / name
        if name in (f"tests/{Path(__file__).name}", "") or not path.is_file():
            continue
        with contextlib.suppress(UnicodeDecodeError):
            for named in paths_named(path.read_text()):
                if not any((root / named).exists() for root in (ROOT, ROOT / "tests", path.parent)):
                    missing.append(f"{name}: {named}")
    assert missing == []


def test_a_path_of_the_documents_is_seen() -> None:
    text = 'ROOT / "docs" / "c" / "d.md", "../docs/a/b.md#c" and docs/no.md; api/v1/docs/x, http://h/docs/y'
    assert paths_named(text) == ["docs/a/b.md", "docs/no.md", "docs/c/d.md"]
