"""Draw the Mermaid diagrams of the documents that have no drawing yet: python docs/site/draw.py

Needs npm (for mermaid, which is not kept) and Chromium. Drawings of texts that no page has any more are removed."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from diagrams import FOLDER, name_of, texts_of

DOCS = Path(__file__).parents[1]
VERSION = "11.12.0"
SECONDS_MAX = 120
BROWSERS = ("chromium-headless-shell", "chromium")
PAGE = """<!doctype html><meta charset="utf-8"><body><script src="mermaid.min.js"></script><script>
const texts = {texts};
mermaid.initialize({{startOnLoad: false, securityLevel: "strict", theme: "neutral", fontFamily: "sans-serif",
  deterministicIds: true}});
(async () => {{
  for (const [number, text] of texts.entries()) {{
    const drawn = await mermaid.render("d" + number, text);
    const kept = document.createElement("pre");
    kept.className = "drawn";
    const made = new DOMParser().parseFromString(drawn.svg, "text/html").querySelector("svg");
    kept.textContent = new XMLSerializer().serializeToString(made);  // an image has to be XML
    document.body.append(kept);
  }}
}})();
</script>"""


def main() -> int:
    texts = {name_of(text): text for path in DOCS.rglob("*.md") for text in texts_of(path.read_text())}
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.svg"):
        if path.name not in texts:
            path.unlink()
    wanted = {name: text for name, text in texts.items() if not (FOLDER / name).exists()}
    if wanted:
        for name, svg in zip(wanted, drawn(list(wanted.values())), strict=True):
            (FOLDER / name).write_text(svg + "\n")
            print(f"{name}: {len(svg)} bytes")
    return 0


def drawn(texts: list[str]) -> list[str]:
    """The SVG of each text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(["npm", "pack", "--silent", f"mermaid@{VERSION}"], folder)
        run(["tar", "xzf", f"mermaid-{VERSION}.tgz"], folder)
        (folder / "package/dist/page.html").write_text(PAGE.format(texts=json.dumps(texts).replace("</", "<\\/")))
        page = run(
            [browser(), "--headless", "--no-sandbox", "--virtual-time-budget=20000", "--dump-dom",
             f"file://{folder}/package/dist/page.html"],
            folder,
        )  # fmt: skip
    return [html.unescape(each) for each in re.findall(r'<pre class="drawn">(.*?)</pre>', page, re.S)]


def browser() -> str:
    """The name of one that is installed. raises: SystemExit, with what to install"""
    found = next(filter(shutil.which, BROWSERS), None)
    if found is None:
        sys.exit("draw.py: no browser: sudo apt-get install chromium-headless-shell")
    return found


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
