"""Answers what the copies on this node have, for `rumqd cluster verify` at any node: ends, and digests of records.

Files are read by a thread of its own, some MB a question, so that nobody waits for it. Knows neither who asks nor how.
`rumq.cluster.admin.copy_verify` asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from commitlog.disk.files import Files
from commitlog.errors import LogError
from commitlog.read.copy_digest import SegmentDigest, copy_digest, marked_view
from commitlog.read.record_digest import record_digest

WAITING_MAX = 4  # questions that may wait at once
BYTES_MAX = 16 << 20  # that one question may read
RECORD_BYTES_MAX = 4 << 20  # of the records that one question is about; lone messages take 40 times that on disk
LOOK_SECONDS = 0.02


class CopyQuestion(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """partition: as main/g1/p0, empty: what copies are there; from_lsn, end_lsn: of the records that are meant
    records: digests of records; else, as earlier versions ask, of the bytes of whole chunks, which packing changes"""

    partition: str = ""
    from_lsn: int = 0
    end_lsn: int = 0
    records: bool = False


class CopyAnswer(msgspec.Struct, omit_defaults=True):
    """ends: by partition, (first lsn, end of what its marks prove); segments, next_lsn: as of its digests
    error: why there is no answer"""

    ends: dict[str, tuple[int, int]] = {}
    segments: list[SegmentDigest] = []
    next_lsn: int = 0
    error: str = ""


class CopyInquiries:
    """keys: of the partitions of one shard"""

    def __init__(self, files: Files, root: str, keys: Sequence[str]) -> None:
        self._files, self._root, self._keys = files, root, keys
        self._reader = ThreadPoolExecutor(1, "rumq-copy-digest")
        self._waiting: list[Future[bytes]] = []

    def ask(self, question: bytes) -> Future[bytes]:
        """question: a line of JSON. returns: the answer to be, likewise"""
        self._waiting = [each for each in self._waiting if not each.done()]
        if len(self._waiting) >= WAITING_MAX:
            busy: Future[bytes] = Future()
            busy.set_result(line(CopyAnswer(error=f"{WAITING_MAX} questions about this copy are under way")))
            return busy
        asked = self._reader.submit(self._line, bytes(question))
        self._waiting.append(asked)
        return asked

    def answer(self, later: Callable[[float, Callable[[], None]], None]) -> Callable[[dict[str, object]], object]:
        """As the answerer of `rumq.shards.links.admin_callers`. later: calls back after seconds"""

        def answerer(question: dict[str, object]) -> object:
            asked = self.ask(msgspec.json.encode(question))

            def wait(done: Callable[[dict[str, object]], None]) -> None:
                if asked.done():
                    done(msgspec.json.decode(asked.result()))
                else:
                    later(LOOK_SECONDS, lambda: wait(done))

            return wait

        return answerer

    def close(self) -> None:
        self._reader.shutdown(wait=False, cancel_futures=True)

    def _line(self, question: bytes) -> bytes:
        try:
            return line(self._answer(msgspec.json.decode(question, type=CopyQuestion)))
        except (msgspec.MsgspecError, OSError, LogError) as fault:
            return line(CopyAnswer(error=str(fault) or type(fault).__name__))

    def _answer(self, asked: CopyQuestion) -> CopyAnswer:
        """raises: OSError, LogError"""
        if not asked.partition:
            views = {key: marked_view(self._files, self._root, key) for key in self._keys}
            return CopyAnswer(ends={k: (each.first_lsn, each.end_lsn) for k, each in views.items() if each is not None})
        view = marked_view(self._files, self._root, asked.partition) if asked.partition in self._keys else None
        if view is None:
            return CopyAnswer(error=f"there is no {asked.partition} here")
        if asked.records:
            found = record_digest(view, asked.from_lsn, asked.end_lsn, RECORD_BYTES_MAX)
        else:
            found = copy_digest(self._files, view, asked.from_lsn, asked.end_lsn, BYTES_MAX)
        return CopyAnswer(segments=found.segments, next_lsn=found.next_lsn)


def line(answer: CopyAnswer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"
