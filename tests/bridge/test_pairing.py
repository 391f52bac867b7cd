"""What is said of a bridge's sessions outlives the process, and a damaged file is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from rumq.bridge.pairing import Pairing, PairingFiles


def test_it_is_there_again(tmp_path: Path) -> None:
    files = PairingFiles(tmp_path)

    async def scene() -> None:
        await Pairing(files, "a").note_new("local")
        again = Pairing(files, "a")
        assert again.new == {"local"} and again.filters == {}
        await again.note_filters("local", ["x/#"])
        await again.note_paired("centre")
        assert (Pairing(files, "a").new, Pairing(files, "a").filters) == (set(), {"local": ["x/#"]})
        assert Pairing(files, "a").remote == "centre" and not Pairing(files, "a").exactly_once
        await again.note_paired("centre", exactly_once=True)
        assert Pairing(files, "a").exactly_once
        await again.note_new("local")
        assert (Pairing(files, "a").new, Pairing(files, "a").filters) == ({"local"}, {})
        assert files.names() == ["a"]
        await files.remove("a")
        await files.remove("a")
        assert files.names() == [] and files.maybe_read("a") is None

    trio.run(scene)


def test_one_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    files = PairingFiles(tmp_path)
    for text in ("", "{", "[1]", "null"):
        files.path("a").write_text(text)
        assert Pairing(files, "a").new == set()


def test_what_could_not_be_written_is_written_again(tmp_path: Path) -> None:
    """A disk that was full: who only remembered it would not know it after a kill."""

    class Failing(PairingFiles):
        is_full = True

        async def write(self, name: str, text: bytes) -> None:
            if self.is_full:
                raise OSError("the disk is full")
            await super().write(name, text)

    async def scene() -> None:
        files = Failing(tmp_path)
        pairing = Pairing(files, "a")
        with pytest.raises(OSError):
            await pairing.note_new("local")
        files.is_full = False
        await pairing.note_new("local")
        assert Pairing(files, "a").new == {"local"}

    trio.run(scene)
