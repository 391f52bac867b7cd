"""Replay of the session journal, once, from its first record. docs/reference/session-journal.md."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from commitlog import Gap, Partition, Store
from commitlog.row_layout import FRAME_WORD, PAYLOAD_WORD, ROW_WORDS
from rumq.session.journal import entries as e
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedState


def replay(store: Store, journal: Partition, tell: Callable[..., None]) -> ReplayedState:
    """What a journal says. raises: OSError"""
    state = ReplayedState()
    for chunk in store.chunks_with(journal, 0):
        if isinstance(chunk, Gap):
            tell(
                "log.gap", stream="_state", partition=journal.number, first_lsn=chunk.base_lsn,
                next_lsn=chunk.next_lsn,
            )  # fmt: skip
            continue
        words = struct.unpack(f"<{chunk.count * ROW_WORDS}I", chunk.rows)
        starts = [*words[FRAME_WORD::ROW_WORDS], len(chunk.frames)]
        payloads = words[PAYLOAD_WORD::ROW_WORDS]
        for row in range(chunk.count):
            with memoryview(chunk.frames)[starts[row] + payloads[row] : starts[row + 1]] as record:
                state.apply(e.decode_entries(record))
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
