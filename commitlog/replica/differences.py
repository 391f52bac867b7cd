"""What a follower's copy of a partition must lose, and from where it must be sent the rest. Pure; knows no file.

Two copies of one segment name have the same records up to the shorter end, and if their files have one salt the same
bytes, too. A packed file has another salt than what it was made of; it has all records of its segment. A segment
without records is nothing: one that only the follower has is dropped, one that only the leader has need not be sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from commitlog.replica.inventory import SegmentState


class Difference(NamedTuple):
    """drop: names of the segments that the follower must remove; it also removes what is below the leader's first lsn
    name, end_lsn, stop: the segment that it must cut at a byte, before an lsn; "" for none
    salt: of the leader's file, which `stop` is a byte of; the follower finds the byte in one with another salt
    send_index, position: of the leader's segments, the first that must be sent, and from which byte; 0: with its
    header, as the follower does not have it. An index behind the last: the follower has everything
    refill, refill_lsn: the follower's last segment, which is sent as a whole because its file is another one, and the
    lsn up to which the leader has it; "" for none"""

    drop: list[str]
    name: str
    end_lsn: int
    stop: int
    send_index: int
    position: int
    salt: int = 0
    refill: str = ""
    refill_lsn: int = 0


def difference(ours: Sequence[SegmentState], theirs: Sequence[SegmentState]) -> Difference:
    """ours: of the leader; theirs: of the follower, in order.

    A follower may begin earlier or later than the leader: retention removes on each node for itself. But behind a hole,
    or without a segment in common, nothing of it is of use.
    """
    place = {state.name: at for at, state in enumerate(ours)}
    kept, tail = common(ours, theirs, place)
    drop = [state.name for state in theirs if state.name not in kept]
    if tail is None:
        return Difference(drop, "", 0, 0, 0, 0)
    index = place[tail.name]
    our = ours[index]
    is_finished = our.is_done or index + 1 < len(ours)
    if is_other_file(our, tail):
        is_longer = tail.end_lsn > our.end_lsn
        cut = (our.name, our.end_lsn, our.stop) if is_longer else ("", 0, 0)
        if is_finished and tail.end_lsn >= our.end_lsn:
            return Difference(drop, *cut, index + 1, 0, our.salt)
        return Difference(drop, *cut, index, 0, our.salt, our.name, our.end_lsn)
    is_whole = tail.stop >= our.stop and is_finished
    rest = (index + 1, 0) if is_whole else (index, min(tail.stop, our.stop))
    if tail.stop > our.stop or tail.end_lsn > our.end_lsn:
        return Difference(drop, our.name, our.end_lsn, our.stop, *rest, our.salt)
    return Difference(drop, "", 0, 0, *rest)


def is_other_file(our: SegmentState, their: SegmentState) -> bool:
    """Whether bytes of one are not bytes of the other."""
    return 0 not in (our.salt, their.salt) and our.salt != their.salt


def common(
    ours: Sequence[SegmentState], theirs: Sequence[SegmentState], place: dict[str, int]
) -> tuple[set[str], SegmentState | None]:
    """Names of the segments that the follower keeps; the last of them, as the follower has it, None: there is none."""
    known = [state for state in theirs if state.name in place or state.end_lsn > state.base_lsn]
    begin = anchor(ours, known, place)
    if begin is None:
        return set(), None
    kept, tail = known[:begin], known[begin]
    index = place[tail.name]
    for state in known[begin:]:
        at = place.get(state.name)
        if at is None or has_records(ours[index:at]):
            break
        kept.append(state)
        tail, index = state, at + 1
        if state.end_lsn != ours[at].end_lsn:
            break
    return {state.name for state in kept}, tail


def anchor(ours: Sequence[SegmentState], theirs: Sequence[SegmentState], place: dict[str, int]) -> int | None:
    """The follower's first segment that the leader has too; None if it is of no use.

    What the follower has before it must be what the leader has removed, or the other way round."""
    at = next((at for at, state in enumerate(theirs) if state.name in place), None)
    if at is None:
        return None
    if at and has_records(ours[: place[theirs[at].name]]):
        return None
    return at


def has_records(segments: Sequence[SegmentState]) -> bool:
    return any(state.end_lsn > state.base_lsn for state in segments)
