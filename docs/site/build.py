"""Build the documents as a site: `python docs/site/build.py [FOLDER]` makes FOLDER/site, by default build/site.

The pages of docs/, those of the root and those made from the code are put together in FOLDER/site-source, as the
renderer takes them; what renders is one call, and nothing else here knows which program it is (decision 57). A link, an
anchor or a picture that leads nowhere fails the build. The site loads nothing from other hosts, and works without a
server. RUMQ_DOCS_REPOSITORY: https://host/owner/name, where links to sources lead; without it they are words."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
sys.path[:0] = [str(ROOT), str(HERE)]  # the product, and the modules beside this one

import command_line  # noqa: E402
import diagrams  # noqa: E402
import links  # noqa: E402
import rest  # noqa: E402

MADE = {
    "reference/command-line.md": command_line.page,
    "reference/rest.md": rest.page,
}
# npm's iframe-worker 1.0.4 (MIT), shim/index.js as it is: with it the search works on files, without a server.
SHIM = HERE / "vendor/iframe-worker.js"
SHIM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"  # where the theme would fetch it
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s#]+)")


class Broken(Exception):
    """The site is not built; what is wrong has been said."""


def build(folder: Path) -> Path:
    """The finished site. raises: Broken"""
    source, site = folder / "site-source", folder / "site"
    for each in (source, site):
        shutil.rmtree(each, ignore_errors=True)
    assemble(source, os.environ.get("RUMQ_DOCS_REPOSITORY", ""))
    missing = missing_pictures(source)
    if missing:
        raise Broken("pictures that are not there: " + ", ".join(missing))
    (folder / "mkdocs.yml").write_text(settings(source.name, site.name))
    render(folder)
    for path in site.rglob("*.html"):
        text = path.read_text()
        # A page of an unknown address is served from anywhere, so its links begin at the root.
        up = "/" if path.name == "404.html" else "../" * (len(path.relative_to(site).parts) - 1)
        path.write_text(text.replace(SHIM_ELSEWHERE, up + SHIM.name))
    return site


def assemble(folder: Path, repository: str) -> None:
    """Every page and file of the site, with its own name below the folder."""
    docs = ROOT / "docs"
    shutil.copytree(docs, folder, ignore=lambda path, names: ["site"] if Path(path) == docs else [])
    pages = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.md")}
    pages |= {uri: (ROOT / origin).read_text() for origin, uri in links.PROJECT.items()}
    pages |= {uri: page() for uri, page in MADE.items()}
    for uri, text in pages.items():
        (folder / uri).parent.mkdir(parents=True, exist_ok=True)
        (folder / uri).write_text(
            links.page(text, uri, lambda name: name in pages or (folder / name).is_file(), repository)
        )
    (folder / "diagrams").mkdir()
    for name, svg in diagrams.drawn().items():
        (folder / "diagrams" / name).write_text(svg)
    for extra in (HERE / "style.css", SHIM):
        shutil.copyfile(extra, folder / extra.name)


def missing_pictures(folder: Path) -> list[str]:
    """Pictures that pages show and that are not there: the renderer does not look."""
    return [
        f"{path.relative_to(folder)}: {target}"
        for path in sorted(folder.rglob("*.md"))
        for target in PICTURE.findall(links.FENCE.sub("", path.read_text()))
        if ":" not in target and not (path.parent / target).is_file()
    ]


def settings(source: str, site: str) -> str:
    """mkdocs.yml for the assembled pages; both are folders beside it."""
    text = (ROOT / "mkdocs.yml").read_text()
    for key, folder in (("docs_dir", source), ("site_dir", site)):
        text, count = re.subn(rf"(?m)^{key}: .*$", f"{key}: {folder}", text)
        assert count == 1, key
    return text


def render(folder: Path) -> None:
    """raises: Broken"""
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "mkdocs.yml"],
        cwd=folder, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Broken(done.stdout + done.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python docs/site/build.py")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build")
    try:
        site = build(parser.parse_args().folder)
    except Broken as fault:
        print(fault, file=sys.stderr)
        return 1
    print(f"{site}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
