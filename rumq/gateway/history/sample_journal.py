"""The newest samples of the history, one behind the other in a file beside it: a process that is killed loses none of
those that it has added. Begun anew whenever the whole history is written.

Not synced: a power loss may take minutes. An entry: step and slot, a value of each series, CRC-32."""

from __future__ import annotations

import errno
import os
import struct
import zlib
from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from rumq.gateway.history.ring_store import RingStore
from rumq.gateway.history.series import NAN, SERIES

NAME = "gateway-history.samples"
FORMAT = b"rumq-history-samples-1\n"
BYTES_MAX = 16 << 20
HEAD, CHECK = struct.Struct("<IQ"), struct.Struct("<I")


class SlotSample(NamedTuple):
    """Of one slot of the ring with this step, in seconds."""

    step: int
    slot: int
    values: Mapping[str, float]


def begin(path: str) -> None:
    """Begin anew: everything so far is in the history's own file. raises: OSError"""
    with open(f"{path}.new", "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(FORMAT + msgspec.json.encode(list(SERIES)) + b"\n")
    os.replace(f"{path}.new", path)


def add(path: str, samples: Iterable[SlotSample]) -> None:
    """raises: OSError, FileNotFoundError if it was not begun"""
    data = b"".join(entry_of(each) for each in samples)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        if os.write(handle, data) < len(data):
            os.ftruncate(handle, size)  # or entries behind a part of one could not be read
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def entry_of(sample: SlotSample) -> bytes:
    values = array("d", [sample.values.get(name, NAN) for name in SERIES]).tobytes()
    body = HEAD.pack(sample.step, sample.slot) + values
    return body + CHECK.pack(zlib.crc32(body))


def read(path: str, store: RingStore, now: float) -> int:
    """Put the samples into the store that it lacks; returns how many. What is behind damage, of another version, of a
    time to come, or of a series or ring that there is not, is left out. raises: OSError"""
    with open(path, "rb") as file:
        data = file.read(BYTES_MAX)
    if not data.startswith(FORMAT):
        return 0
    end = data.find(b"\n", len(FORMAT))
    try:
        names = msgspec.json.decode(data[len(FORMAT) : end], type=list[str])
    except msgspec.DecodeError:
        return 0
    size = HEAD.size + 8 * len(names) + CHECK.size
    tiers = {tier.step: tier for tier in store.tiers}
    found = 0
    for at in range(end + 1, len(data) - size + 1, size):
        body = data[at : at + size - CHECK.size]
        if CHECK.unpack_from(data, at + size - CHECK.size)[0] != zlib.crc32(body):
            break
        step, slot = HEAD.unpack_from(body)
        tier = tiers.get(step)
        if tier is None or slot <= tier.end or slot * step > now + 2 * step:
            continue
        tier.put(slot, dict(zip(names, array("d", body[HEAD.size :]), strict=True)))
        found += 1
    return found
