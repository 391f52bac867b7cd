"""The code blocks of the documents: fenced ones, and indented ones as Markdown has them.

A comment before a block, which no reader sees, says what a test needs to know of it:

    <!-- test: before       commands that are run first: what a reader has from elsewhere
    COMMANDS -->
    <!-- test: output -->   the block below is what the commands print; "..." stands for anything
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SHELL, PYTHON, TOML, OUTPUT, OTHER = "sh", "python", "toml", "output", ""
LANGUAGES = {"sh": SHELL, "bash": SHELL, "python": PYTHON, "toml": TOML}
FENCE = re.compile(r"^( *)```(\w*)")
DIRECTIVE = re.compile(r"<!-- test: (\w+)(?:\n(.*?))?\s*-->", re.S)
# The first word of what is a command, for blocks that do not say what they are.
PROGRAMS = {
    "rumqd", "python", "python3", "pip", "curl", "docker", "helm", "kubectl", "install", "mosquitto_sub",
    "mosquitto_pub", "apt", "apt-get", "sudo", "systemctl", "./run", "./test", "packaging/debian/build",
}  # fmt: skip


class Block(NamedTuple):
    """page: path from the root; line: its first one, from 1; language: of LANGUAGES, OUTPUT or OTHER;
    before: hidden commands, run first"""

    page: str
    line: int
    language: str
    text: str
    before: str = ""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README.md, what stands beside it, docs/ and the READMEs of folders."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    return sorted(dict.fromkeys(found))


def blocks_of(path: Path) -> list[Block]:
    return blocks_in(path.read_text(), str(path.relative_to(ROOT)))


def blocks_in(text: str, page: str) -> list[Block]:
    found: list[Block] = []
    lines, before, is_output = text.split("\n"), "", False
    number = 0
    while number < len(lines):
        line = lines[number]
        start = number + 1
        if line.startswith("<!-- test:"):
            while "-->" not in line:
                number += 1
                line += "\n" + lines[number]
            said = DIRECTIVE.match(line)
            assert said and said[1] in ("before", "output"), f"{page}:{start}: {line}"
            if said[1] == "before":
                before += f"{said[2]}\n"
            else:
                is_output = True
        elif fence := FENCE.match(line):
            body = []
            while not lines[number + 1].strip().startswith("```"):
                number += 1
                body.append(lines[number].removeprefix(fence[1]))
            number += 1
            commands = not fence[2] and body and body[0].split(" ")[0] in PROGRAMS
            language = OUTPUT if is_output else SHELL if commands else LANGUAGES.get(fence[2], OTHER)
            found.append(Block(page, start, language, "\n".join(body) + "\n", before))
            before, is_output = "", False
        elif line.startswith("    ") and line.strip() and not (number and lines[number - 1].strip()):
            body = []
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                body.append(lines[number].removeprefix("    "))
                number += 1
            number -= 1
            language = OUTPUT if is_output else SHELL if body[0].split()[0] in PROGRAMS else OTHER
            found.append(Block(page, start, language, "\n".join(body).rstrip() + "\n", before))
            before, is_output = "", False
        number += 1
    return found


def commands_in(text: str) -> list[str]:
    """Each command of a shell block as one text: continued lines and here-documents belong to it."""
    found: list[str] = []
    end = ""
    for line in text.splitlines():
        if end:
            found[-1] += f"\n{line}"
            end = "" if line == end else end
        elif found and found[-1].endswith("\\"):
            found[-1] += f"\n{line}"
        elif line.strip() and not line.lstrip().startswith("#"):
            found.append(line)
        if not end and (here := re.search(r"<<\s*['\"]?(\w+)", line)):
            end = here[1]
    return found
