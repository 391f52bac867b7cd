"""Replay of the session journal, once, from its first record. docs/reference/session-journal.md."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from commitlog import Gap, Partition, Store
from commitlog.chunk import ALIGN, HEADER_BYTES, SYNC_ALIGN, padded
from commitlog.row_layout import FRAME_WORD, PAYLOAD_WORD, ROW_WORDS
from rumq.session.journal import entries as e
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedState


def replay(store: Store, journal: Partition, tell: Callable[..., None]) -> ReplayedState:
    """What a journal says. raises: OSError"""
    state = ReplayedState()
    align = SYNC_ALIGN if journal.writer.sync_groups else ALIGN
    read_bytes = snapshot_at = 0  # with all padding, before the chunk; of the snapshot that is being read
    for chunk in store.chunks_with(journal, 0):
        if isinstance(chunk, Gap):
            tell(
                "log.gap", stream="_state", partition=journal.number, first_lsn=chunk.base_lsn,
                next_lsn=chunk.next_lsn,
            )  # fmt: skip
            continue
        next_bytes = read_bytes + padded(HEADER_BYTES + len(chunk.rows) + len(chunk.frames), align)
        words = struct.unpack(f"<{chunk.count * ROW_WORDS}I", chunk.rows)
        starts = [*words[FRAME_WORD::ROW_WORDS], len(chunk.frames)]
        payloads = words[PAYLOAD_WORD::ROW_WORDS]
        for row in range(chunk.count):
            with memoryview(chunk.frames)[starts[row] + payloads[row] : starts[row + 1]] as record:
                entries = e.decode_entries(record)
            state.apply(entries)
            if entries and type(entries[-1]) is e.SnapshotEnded:
                state.snapshot = entries[-1].begun_lsn, next_bytes - snapshot_at
            elif any(type(entry) is e.SnapshotBegun for entry in entries[:2]):
                snapshot_at = read_bytes
        read_bytes = next_bytes
    state.settle()
    return state


def add_tags(state: ReplayedState, tags: Iterable[tuple[str, int]]) -> None:
    """Add inbound QoS 2 messages that came after the journal's last checkpoint.

    tags: (client id, session tag << 16 | packet id)"""
    by_client: dict[str, list[ReplayedSession]] = {}
    for session in state.sessions.values():
        by_client.setdefault(session.client_id, []).append(session)
    for client_id, packet_id in tags:
        state.apply_tag(by_client, client_id, packet_id)
