"""The vendored libraries of the page are the files that its README.md names, and those of npm's packages."""

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "rumq" / "gateway" / "page"
VENDOR = PAGE / "vendor"
BYTES_MAX = 800 * 1024
ROW = re.compile(r"\| `([^`]+)` \| ([^ |]+) \| ([^ |]+) \| `([^`]+)` \| ([^|]+) \| `([0-9a-f]{64})` \|")


class Vendored(NamedTuple):
    file: str
    package: str
    version: str
    path: str
    licence: str
    sha256: str


LISTED = [Vendored(*found.groups()) for found in ROW.finditer((VENDOR / "README.md").read_text())]


def test_each_vendored_file_is_listed_and_has_its_hash() -> None:
    files = {path.name: path.read_bytes() for path in VENDOR.iterdir() if path.name != "README.md"}
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == {
        each.file: each.sha256 for each in LISTED
    }
    assert sum(map(len, files.values())) <= BYTES_MAX


@pytest.mark.node
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize("package", sorted({(each.package, each.version) for each in LISTED}), ids="@".join)
def test_npm_has_the_same_bytes(package: tuple[str, str], tmp_path: Path) -> None:
    name = "@".join(package)
    command = ["npm", "pack", name, "--json", "--pack-destination", str(tmp_path)]
    packed = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    if packed.returncode:
        pytest.skip(f"npm cannot be reached: {packed.stderr[-200:]!r}")
    data = (tmp_path / json.loads(packed.stdout)[0]["filename"]).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for each in LISTED:
            if (each.package, each.version) == package:
                member = archive.extractfile(f"package/{each.path}")
                assert member is not None and member.read() == (VENDOR / each.file).read_bytes(), each
