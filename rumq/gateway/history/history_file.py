"""The history as one file of the data directory, written now and then; what is newer is in `sample_journal`.

It is not synced. One that cannot be read is put aside, and the history begins anew."""

from __future__ import annotations

import os
import zlib
from array import array

import msgspec

from rumq.gateway.history.ring_store import RingStore

NAME = "gateway-history"
ASIDE = "gateway-history.unreadable"
FORMAT = b"rumq-history-1\n"
BYTES_MAX = 64 << 20


class Unreadable(Exception):
    """The file is damaged, of another version, or of a time to come."""


class TierContent(msgspec.Struct):
    """series: little-endian doubles by name"""

    step: int
    slots: int
    end: int
    series: dict[str, bytes]


def content(store: RingStore) -> list[TierContent]:
    """A copy of what there is now."""
    return [
        TierContent(tier.step, tier.slots, tier.end, {name: ring.tobytes() for name, ring in tier.series.items()})
        for tier in store.tiers
    ]


def write(path: str, tiers: list[TierContent]) -> None:
    """raises: OSError"""
    body = zlib.compress(msgspec.msgpack.encode(tiers), 1)
    data = FORMAT + zlib.crc32(body).to_bytes(4, "little") + body
    with open(f"{path}.new", "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)
    os.replace(f"{path}.new", path)


def read(path: str, store: RingStore, now: float) -> None:
    """Fill the store. Series and rings that it does not have are left out.

    raises: FileNotFoundError, OSError, Unreadable"""
    with open(path, "rb") as file:
        data = file.read(BYTES_MAX + 1)
    if not data.startswith(FORMAT):
        raise Unreadable("it is of another version, or no history")
    check, body = data[len(FORMAT) :][:4], data[len(FORMAT) + 4 :]
    if zlib.crc32(body).to_bytes(4, "little") != check:
        raise Unreadable("its checksum differs")
    try:
        inflate = zlib.decompressobj()
        found = msgspec.msgpack.decode(inflate.decompress(body, BYTES_MAX), type=list[TierContent])
    except (zlib.error, msgspec.DecodeError) as fault:
        raise Unreadable(str(fault)) from None
    own = {(tier.step, tier.slots): tier for tier in store.tiers}
    for each in found:
        if each.end * each.step > now + 2 * each.step:
            raise Unreadable("it is of a time to come: the clock was set back")
        tier = own.get((each.step, each.slots))
        if tier is None:
            continue
        tier.end = each.end
        for name, raw in each.series.items():
            if name in tier.series and len(raw) == 8 * tier.slots:
                tier.series[name] = array("d", raw)
