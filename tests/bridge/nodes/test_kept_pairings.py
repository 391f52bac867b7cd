"""Pairings of a cluster's bridges: what one node noted the next one finds, and who was replaced writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from rumq.admin.socket.held_values import HeldValues, Named, ValuesLost, take_over_values
from rumq.admin.socket.kept_values import Confirm, KeepValues, KeptQuestion, KeptReply, ReadPage, TakeOver
from rumq.bridge.nodes.kept_pairings import INHERITED, KeptPairings, inherit
from rumq.bridge.pairing import Pairing, PairingFiles


class Journal:
    """Of shard 0, as its leader keeps it. holder: who has taken the values over last"""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.holder = 0

    async def ask(self, asked: KeptQuestion, seconds: float) -> KeptReply:
        if isinstance(asked, TakeOver):
            self.holder += 1
            return KeptReply(holder=self.holder)
        if asked.holder != self.holder:
            return KeptReply("another process has taken the values over")
        if isinstance(asked, ReadPage):
            return KeptReply(values=list(self.values.items())[asked.first :])
        if isinstance(asked, KeepValues):
            for name, value in asked.values:
                self.values[name] = value
                if not value:
                    del self.values[name]
        assert isinstance(asked, KeepValues | Confirm)
        return KeptReply()

    async def taken(self) -> tuple[HeldValues, KeptPairings]:
        held, found = await take_over_values(self.ask)
        return held, KeptPairings(held, found)


def test_the_next_node_finds_what_was_noted_and_the_one_before_notes_nothing_more() -> None:
    async def scene() -> None:
        journal = Journal()
        old_held, old = await journal.taken()
        await Pairing(old, "centre").note_new("remote")
        _, new = await journal.taken()
        assert Pairing(new, "centre").new == {"remote"} and new.names() == ["centre"]
        await Pairing(new, "centre").note_paired("abc")
        with pytest.raises(ValuesLost):
            await Pairing(old, "centre").note_filters("local", ["a/#"])
        assert old_held.lost.is_set()
        _, last = await journal.taken()
        assert (Pairing(last, "centre").remote, Pairing(last, "centre").filters) == ("abc", {})
        await last.remove("centre")
        _, after = await journal.taken()
        assert after.names() == [] and after.maybe_read("centre") is None

    trio.run(scene)


def test_a_broker_alone_that_becomes_a_node_brings_its_pairings_unless_there_is_something_newer(tmp_path: Path) -> None:
    files = PairingFiles(tmp_path)

    async def scene() -> None:
        journal = Journal()
        for name in ("a", "b"):
            await Pairing(files, name).note_paired("of the file")
        _, kept = await journal.taken()
        await Pairing(kept, "b").note_paired("newer")
        await inherit(kept, files)
        assert (Pairing(kept, "a").remote, Pairing(kept, "b").remote) == ("of the file", "newer")
        assert files.names() == [] and sorted(each.name for each in tmp_path.iterdir()) == [
            f"a.sessions{INHERITED}", f"b.sessions{INHERITED}",
        ]  # fmt: skip
        _, again = await journal.taken()
        await Pairing(again, "a").note_paired("later")
        await inherit(again, files)
        assert Pairing(again, "a").remote == "later", "a file is taken once"

    trio.run(scene)


def test_values_are_read_by_name(tmp_path: Path) -> None:
    found: list[Named] = [(b"a", b"{}"), (b"b", b'{"remote": "x"}')]

    async def nobody(asked: KeptQuestion, seconds: float) -> KeptReply:
        raise FileNotFoundError

    kept = KeptPairings(HeldValues(nobody, 1), found)
    assert kept.names() == ["a", "b"] and Pairing(kept, "b").remote == "x"
