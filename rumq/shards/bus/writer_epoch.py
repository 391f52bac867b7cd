"""The writer epoch that a shard's process writes under: two runs with different histories never have the same one.

Other shards tell by it which of an owner's records they know (`rumq.shards.bus.owner_run`). One higher than any on the
disk is not enough: a disk that is set back to an older image would give epochs out again that others have met, and a
leader of a term may have shown records under an epoch of which its successor's copy has nothing."""

from __future__ import annotations

from commitlog.chunk import EPOCH_MAX

SECONDS_BEGIN = 1_577_836_800  # 2020 began, in seconds since 1970
# Epochs of terms begin here: above all that a broker alone has had before it became a cluster.
TERMS_BEGIN = EPOCH_MAX // 2
ALONE_MAX = TERMS_BEGIN - (1 << 24)  # leaves room for starts behind a clock that is far ahead


def writer_epoch(now_us: int, term_epoch: int | None) -> int:
    """The lowest one that a run may have, beside being higher than those on its disk.

    now_us: since 1970; term_epoch: of the term that the shard is led in, which nobody else has had; None: alone"""
    if term_epoch is not None:
        return TERMS_BEGIN + term_epoch
    return min(max(now_us // 1_000_000 - SECONDS_BEGIN, 0), ALONE_MAX)
