"""Parse the properties of many PUBLISH frames at once: each step parses the next property of every frame that has one,
so the cost in Python grows with properties per message, not with messages. MQTT 5.0, 3.3.2.3 and 2.2.2.

The broker has checked the frames."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rumq.table.arrow.slices import Bytes, Positions, slices, spread

PAYLOAD_FORMAT, EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION = 1, 2, 3, 8, 9
IDENTIFIER, ALIAS, USER = 11, 35, 38
NUMBERS = {PAYLOAD_FORMAT: 1, EXPIRY: 4, ALIAS: 2}  # bytes of a number
TEXTS = (CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION)


class FrameProperties:
    """Properties of frames in a buffer, as arrays with one item per frame."""

    def __init__(self, frames: Bytes, starts: Positions, qos: Positions, has: npt.NDArray[np.bool_]) -> None:
        """frames: uint8; starts: start of each frame, int64; has: whether it has properties"""
        self._frames, self._count = frames, len(starts)
        self._numbers: dict[int, list[tuple[Positions, Positions]]] = {kind: [] for kind in NUMBERS}
        self._texts: dict[int, list[tuple[Positions, ...]]] = {kind: [] for kind in TEXTS}
        self._users: list[tuple[Positions, ...]] = []
        rows = np.flatnonzero(has)
        at = self._behind_number(starts[rows] + 1)
        at = at + 2 + self._number(at, 2) + np.where(qos[rows] > 0, 2, 0)
        lengths, at = self._variable(at)
        ends = at + lengths
        while len(rows := rows[more := at < ends]):
            ends = ends[more]
            at = self._step(rows, at[more])

    def _step(self, rows: Positions, at: Positions) -> Positions:
        """Parse one property of each frame; returns the positions of the next ones."""
        kinds = self._frames[at]
        at = at + 1
        following = at.copy()
        for kind in np.unique(kinds).tolist():
            some = kinds == kind
            here, where = rows[some], at[some]
            if kind in NUMBERS:
                self._numbers[kind].append((here, self._number(where, NUMBERS[kind])))
                following[some] = where + NUMBERS[kind]
            elif kind in TEXTS:
                end = where + 2 + self._number(where, 2)
                self._texts[kind].append((here, where + 2, end))
                following[some] = end
            elif kind == USER:
                key_end = where + 2 + self._number(where, 2)
                end = key_end + 2 + self._number(key_end, 2)
                self._users.append((here, where + 2, key_end, key_end + 2, end))
                following[some] = end
            elif kind == IDENTIFIER:
                following[some] = self._behind_number(where)
            else:
                raise ValueError(f"a frame in the log has property {kind}, which no PUBLISH has")
        return following

    def number(self, kind: int, made: pa.DataType) -> pa.Array:
        values, absent = np.zeros(self._count, np.int64), np.ones(self._count, bool)
        for rows, found in self._numbers[kind]:
            values[rows], absent[rows] = found, False
        return pa.array(values, mask=absent).cast(made)

    def text(self, kind: int) -> pa.Array:
        """As binary."""
        rows, starts, ends = in_order(self._texts[kind], 3)
        return spread(slices(self._frames, starts, ends), rows, self._count)

    def users(self) -> tuple[npt.NDArray[np.int32], pa.Array, pa.Array]:
        """User properties of all frames: offsets (one more than frames), keys, values."""
        rows, key_starts, key_ends, starts, ends = in_order(self._users, 5)
        offsets = np.zeros(self._count + 1, np.int32)
        np.cumsum(np.bincount(rows, minlength=self._count), out=offsets[1:])
        return (
            offsets,
            slices(self._frames, key_starts, key_ends).cast(pa.string()),
            slices(self._frames, starts, ends).cast(pa.string()),
        )

    def _number(self, at: Positions, size: int) -> Positions:
        value: Positions = self._frames[at].astype(np.int64)
        for more in range(1, size):
            value = value << 8 | self._frames[at + more]
        return value

    def _variable(self, at: Positions) -> tuple[Positions, Positions]:
        """Variable byte integers, and their ends."""
        value, going = np.zeros(len(at), np.int64), np.ones(len(at), bool)
        for shift in (0, 7, 14, 21):
            byte = self._frames[np.where(going, at, 0)].astype(np.int64)
            value += np.where(going, (byte & 127) << shift, 0)
            at = at + going
            going = going & (byte > 127)
            if not going.any():
                break
        return value, at

    def _behind_number(self, at: Positions) -> Positions:
        return self._variable(at)[1]


def in_order(steps: list[tuple[Positions, ...]], width: int) -> list[Positions]:
    """Concatenated columns of several steps, ordered by frame and then by step."""
    if not steps:
        return [np.zeros(0, np.int64)] * width
    columns = [np.concatenate(found) for found in zip(*steps, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]
