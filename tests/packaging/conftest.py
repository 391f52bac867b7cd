"""Tools that a test cannot do without: it is skipped where one is missing, which is named."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"


def tool(name: str, package: str) -> str:
    """The path of a program, or a skip that names the package which has it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is missing: {package}")
    return path
