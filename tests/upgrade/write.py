"""Write the data of a version: `python -m tests.upgrade.write NAME [--tree DIR]` makes data/NAME.tar.xz.

--tree: a checkout of the version that writes; without it this tree. An archive of a released version is never written
again. It has the data directory of a broker that was killed, a backup of it, a lake of its finished segments, its
settings and users, and what `formats` says of the version that wrote it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.broker_process import ENVIRONMENT, Rumqd
from tests.upgrade import formats
from tests.upgrade.story import PASSWORD, USER, before

FOLDER = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]
SETTINGS = """\
[auth]
anonymous = "no"
[shards]
count = 2
[log]
durability = "process"
retention = "forever"
segment_bytes_max = 65_536
[[stream]]
name = "alarms"
filters = ["alarms/#"]
durability = "disk"
[mqtt]
session_expiry_seconds_max = 4_294_967_295
"""
NOT_KEPT = {"LOCK", "admin.sock"}


class Writer(Rumqd):
    """The broker of a checkout."""

    def __init__(self, tree: Path, data: Path, *flags: str) -> None:
        super().__init__(data, *flags)
        self.tree = tree

    def command(self) -> list[str]:
        return ["env", f"--chdir={self.tree}", *super().command()]


def rumqd(tree: Path, *words: object, said: str = "") -> None:
    subprocess.run(
        [sys.executable, "-m", "rumq", *map(str, words)],
        cwd=tree, env=ENVIRONMENT, input=said, text=True, check=True, timeout=600,
    )  # fmt: skip


def write(name: str, tree: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        has_orders = (tree / "rumq/shards/orders").exists()
        (folder / "config.toml").write_text(SETTINGS)
        (folder / "users").touch(0o600)
        rumqd(tree, "passwd", folder / "users", USER, said=f"{PASSWORD}\n")
        broker = Writer(tree, folder / "data", *flags_of(folder))
        broker.start()
        try:
            left = before(broker.address)
            rumqd(tree, "backup", folder / "backup", "--data", folder / "data")
            rumqd(tree, "lake", "export", "--to", folder / "lake", "--data", folder / "data", "--once")
        finally:
            broker.kill()
        for peer in left:
            peer.close()
        if has_orders:
            write_drained(tree, folder)
        about: dict[str, Any] = {"settings": settings_of(tree)}
        if tree == ROOT:
            about["formats"] = formats.current()
            about["samples"] = formats.samples()
        (folder / "about.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")
        FOLDER.mkdir(exist_ok=True)
        with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(folder, ".", filter=lambda each: None if Path(each.name).name in NOT_KEPT else each)


def write_drained(tree: Path, folder: Path) -> None:
    """Another data directory, of a broker that was ordered to drain: an order that has no end."""
    broker = Writer(tree, folder / "drained", *flags_of(folder))
    broker.start()
    try:
        rumqd(tree, "ask", "drain", "--data", folder / "drained")
    finally:
        broker.kill()


def flags_of(folder: Path) -> list[str]:
    return ["--config", str(folder / "config.toml"), "--set", f"auth.password_file={folder / 'users'}"]


def settings_of(tree: Path) -> str:
    """All settings of that version with their defaults, as it prints them."""
    done = subprocess.run(
        [sys.executable, "-m", "rumq", "config", "--example"],
        cwd=tree, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade.write")
    parser.add_argument("name", help="version, or unreleased")
    parser.add_argument("--tree", type=Path, default=ROOT)
    args = parser.parse_args()
    write(args.name, args.tree.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
