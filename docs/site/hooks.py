"""What mkdocs calls while it builds the site: pages made from the code, pages of the root, links to sources.

The pages in docs/ are written for a code host; here they get what a site needs, and their files stay as they are."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]  # the product, and the modules beside this one

import command_line  # noqa: E402
import configuration  # noqa: E402
import diagrams  # noqa: E402
import rest  # noqa: E402

MADE = {
    "reference/configuration.md": configuration.page,
    "reference/command-line.md": command_line.page,
    "reference/rest.md": rest.page,
}
STYLE = Path(__file__).with_name("style.css")
# npm's iframe-worker 1.0.4 (MIT), shim/index.js as it is: with it the search works on files, without a server.
SHIM = Path(__file__).parent / "vendor/iframe-worker.js"
SHIM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"  # where the theme would fetch it
# Pages outside docs/, and where the site has them.
PROJECT = {
    "README.md": "overview.md", "CONTRIBUTING.md": "project/contributing.md", "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changes.md", "bench/README.md": "project/bench.md",
    "examples/README.md": "project/examples.md", "tests/cluster/model/README.md": "project/model.md",
}  # fmt: skip
ORIGINS = {site: origin for origin, site in PROJECT.items()}
INSTEAD = {"config.toml": "reference/configuration.md"}  # a file of the root, and the page that says more
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
PAGE_NAME = re.compile(r"[\w./-]+\.md|\w+/")
FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.M | re.S)
ITEM = re.compile(r"^(?:[-*]|\d+\.) ")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for uri, page in MADE.items():
        files.append(File.generated(config, uri, content=page()))
    for origin, uri in PROJECT.items():
        files.append(File.generated(config, uri, content=(ROOT / origin).read_text()))
    files.append(File.generated(config, "style.css", content=STYLE.read_text()))
    files.append(File.generated(config, SHIM.name, content=SHIM.read_text()))
    for name, svg in diagrams.drawn().items():
        files.append(File.generated(config, f"diagrams/{name}", content=svg))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    parts = FENCE.split(markdown)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = with_links(with_lists(part), uri, files, config.repo_url or "")
        elif part.startswith("```mermaid"):
            parts[number] = diagrams.image(part, "../" * uri.count("/"))
    return "".join(parts)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    return output.replace(SHIM_ELSEWHERE, "../" * page.file.dest_uri.count("/") + SHIM.name)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return output.replace(SHIM_ELSEWHERE, f"/{SHIM.name}")


def with_lists(text: str) -> str:
    """A blank line before a list that follows its sentence at once, as code hosts read it."""
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if ITEM.match(line) and before.strip() and not (ITEM.match(before) or before.startswith(" ")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def with_links(text: str, uri: str, files: Files, repository: str) -> str:
    """Links that lead out of docs/ lead to the site's page, to the repository, or are words only."""
    folder = (ROOT / ORIGINS[uri]).parent if uri in ORIGINS else (ROOT / "docs" / uri).parent

    def replaced(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        path, _, anchor = target.partition("#")
        if not path or ":" in path or image:
            return found[0]
        named = os.path.relpath(os.path.normpath(folder / path), ROOT)
        place = maybe_page(named, files)
        if place is not None:
            led = os.path.relpath(place, os.path.dirname(uri) or ".")
            words = title_of(ROOT / named) if PAGE_NAME.fullmatch(words) else words
            return f"[{words}]({led}{'#' + anchor if anchor else ''})"
        return f"[{words}]({repository.rstrip('/')}/blob/main/{named})" if repository else words

    return LINK.sub(replaced, text)


def title_of(path: Path) -> str:
    """The heading of a page, for links that say the file's name."""
    path = path / "README.md" if path.is_dir() else path
    return next((line[2:] for line in path.read_text().splitlines() if line.startswith("# ")), path.stem)


def maybe_page(named: str, files: Files) -> str | None:
    """The site's file for a path of the repository."""
    if found := PROJECT.get(named) or INSTEAD.get(named):
        return found
    inside = os.path.relpath(named, "docs")
    for each in (inside, f"{inside}/README.md"):
        if not inside.startswith("..") and files.get_file_from_path(each) is not None:
            return each
    return None
