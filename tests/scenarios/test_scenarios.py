"""Each transcript in this folder is what the router says, word for word.

RUMQ_TRANSCRIPTS=write writes them anew: what has changed is then in the diff, to be read."""

import os
from pathlib import Path

import pytest

from tests.scenarios.player import Player

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


def played(text: str) -> str:
    """The transcript with the effects that its commands have now."""
    claim, _, rest = text.partition("\n\n")
    player = Player(" ".join(line for line in claim.splitlines() if line.startswith("With ")))
    lines = []
    for line in rest.splitlines():
        if line.startswith("> "):
            lines += [line, *(f"    {effect}" for effect in player.step(line[2:].partition("  #")[0]))]
        elif not line.startswith("    "):
            lines.append(line)
    return "\n".join([claim, "", *lines]) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_router_says_what_the_transcript_says(path: Path) -> None:
    text = path.read_text()
    now = played(text)
    if os.environ.get("RUMQ_TRANSCRIPTS") == "write":
        path.write_text(now)
    assert now == text


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 15
