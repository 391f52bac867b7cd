"""The table of limits in docs/explanation/guarantees.md: each row names a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_limit_says_what_it_answers_and_what_shows_it() -> None:
    text = (ROOT / "docs/explanation/guarantees.md").read_text()
    rows = [line for line in text.partition("## Limits")[2].splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 8
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+)`", row)
        assert named and all((ROOT / name).is_file() for name in named), row
