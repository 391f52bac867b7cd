"""The site builds without a warning, loads nothing from elsewhere, and has the pages in the order of docs/README.md."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

pytest.importorskip("zensical", reason="zensical is not installed (pip install '.[docs]')")

from tests.cli.conftest import ENVIRONMENT

ROOT = Path(__file__).parents[2]
MADE = {"reference/command-line.md", "reference/rest.md"}  # of the code alone: a code host has no such page


@pytest.fixture(scope="module")
def links() -> ModuleType:
    return loaded("links")


def loaded(name: str) -> ModuleType:
    """A module of docs/site, which is no package."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "docs/site"))


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "docs/site/build.py", str(folder)],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def navigation(part: Any) -> list[str]:
    """The pages of mkdocs.yml's `nav`, in order."""
    if isinstance(part, str):
        return [part]
    values = part if isinstance(part, list) else part.values()
    return [page for each in values for page in navigation(each)]


def nav() -> Any:
    text = (ROOT / "mkdocs.yml").read_text()
    return yaml.load(re.sub(r"!\S+", "", text[text.index("\nnav:") :]), yaml.SafeLoader)["nav"]


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = re.compile(r'<(?:script|img|iframe)[^>]*src="?(https?:[^"\s>]+)|<link[^>]*href="?(https?:[^"\s>]+)')
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    assert {str(page.relative_to(site)): found for page in pages if (found := loaded.findall(page.read_text()))} == {}
    assert "style.css" in (site / "index.html").read_text()
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.findall(r"url\(\W?https?:", styles)


def test_every_page_of_the_documents_is_built(site: Path) -> None:
    built = {str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html")}
    written = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    assert {name.replace("README", "index") for name in written} <= built


def test_the_reading_order_is_the_navigation(links: ModuleType) -> None:
    """docs/README.md for who reads it on a code host; mkdocs.yml for the site."""
    sections: dict[str, list[str]] = {}
    for part in (ROOT / "docs/README.md").read_text().split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        sections[title] = list(dict.fromkeys(place(links, each) for each in re.findall(r"\]\(([^)#:]+)\)", text)))
    listed = {title: navigation(pages) for each in nav()[1:] for title, pages in each.items()}
    assert sections == {title: [page for page in pages if page not in MADE] for title, pages in listed.items()}


def place(links: ModuleType, link: str) -> str:
    """The site's page for a link of docs/README.md."""
    outside = link.removeprefix("../")
    if outside != link:
        return str({**links.PROJECT, **links.INSTEAD}[outside])
    return f"{link}README.md" if link.endswith("/") else link


def text_of(site: Path, page: str) -> str:
    return re.sub(r"<[^>]+>", "", (site / page).read_text())


def test_reference_pages_have_what_the_code_has(site: Path) -> None:
    from rumq.gateway.contract.openapi import description
    from rumq.settings.keys import KEYS, STREAM_KEYS

    settings = (site / "reference/settings.html").read_text()
    names = {dotted.partition(".")[2] for dotted in KEYS} | set(STREAM_KEYS)
    assert {name for name in names if f"<code>{name}</code>" not in settings} == set()
    rest = text_of(site, "reference/rest.html")
    assert {path for path in description("")["paths"] if path not in rest} == set()
    assert re.search(r"linger_ms</code></td>\s*<td>.*?</td>\s*<td>.*?</td>\s*<td>live</td>", settings)
    assert re.search(r"scrub_bytes_per_second</code></td>\s*<td>.*?</td>\s*<td>.*?</td>\s*<td>restart</td>", settings)
    commands = text_of(site, "reference/command-line.html")
    assert "rumqd log verify" in commands and "usage: rumqd pub" in commands


def test_a_link_out_of_the_documents_leads_to_a_page_or_is_words(links: ModuleType) -> None:
    there = {"guides/spark.md", "reference/sys.md", "decisions/README.md", "pictures/top.svg"}

    def given(text: str, page: str, repository: str = "") -> str:
        return str(links.with_links(text, page, there.__contains__, repository))

    spark = "guides/spark.md"
    assert given("[a](../../CONTRIBUTING.md#x)", spark) == "[a](../project/contributing.md#x)"
    assert given("[a](docs/guides/spark.md)", "project/contributing.md") == "[a](../guides/spark.md)"
    assert given("[sys.md](../reference/sys.md)", spark) == "[`$SYS`: status topics](../reference/sys.md)"
    assert given("[a](../decisions/)", spark) == "[a](../decisions/README.md)"
    assert given("[a](../../setup.py)", spark) == "a"
    assert given("[a](../../setup.py)", spark, "https://h/r") == "[a](https://h/r/blob/main/setup.py)"
    assert given("[a](https://x)", spark) == "[a](https://x)"
    assert given("![a](docs/pictures/top.svg)", "overview.md") == "![a](pictures/top.svg)"


def test_every_diagram_is_drawn(site: Path) -> None:
    """Otherwise: python docs/site/draw.py"""
    diagrams = loaded("diagrams")
    texts = [text for path in (ROOT / "docs").rglob("*.md") for text in diagrams.texts_of(path.read_text())]
    names = {diagrams.name_of(text) for text in texts}
    assert len(names) >= 8 and names == set(diagrams.drawn())
    assert "flowchart TB" not in text_of(site, "explanation/architecture.html")
    for svg in diagrams.drawn().values():
        ElementTree.fromstring(svg)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a](nowhere.md)", "page does not exist"),
        ("[a](sys.md#no-such-part)", "anchor does not exist"),
        ("![a](none.png)", "pictures that are not there: reference/sys.md: none.png"),
    ],
)
def test_what_leads_nowhere_fails_the_build(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loaded("build")

    def assemble(folder: Path, repository: str) -> None:
        (folder / "reference").mkdir(parents=True)
        (folder / "README.md").write_text("# Documents\n")
        (folder / "reference/sys.md").write_text(f"# Status\n\n{text}\n")

    monkeypatch.setattr(made, "assemble", assemble)
    monkeypatch.setattr(made, "settings", lambda source, site: f"site_name: x\ndocs_dir: {source}\nsite_dir: {site}\n")
    with pytest.raises(made.Broken, match=said):
        made.build(tmp_path)
