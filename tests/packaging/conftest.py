"""Tools that a test cannot do without: it is skipped where one is missing, which is named."""

import re
import shutil
from pathlib import Path

import pytest

from rumq.config import Settings

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"


def tool(name: str, package: str) -> str:
    """The path of a program, or a skip that names the package which has it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is missing: {package}")
    return path


def known_settings(text: str) -> str:
    """A config.toml without the tables that this version does not have."""
    tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    return "".join(
        each for each in tables if each.strip("[").split("]")[0] in (*Settings.__struct_fields__, "")
    )


def known_environment(variables: dict[str, str]) -> dict[str, str]:
    """The same, of variables RUMQ_TABLE_KEY."""
    return {
        key: value
        for key, value in variables.items()
        if key.split("_")[1].lower() in Settings.__struct_fields__
    }
