"""What is noted before a frame changes a copy. docs/explanation/replication.md, R3 and R5."""

from __future__ import annotations

from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import DataFrame, LogCopies, ReplicaState


def change_copy(
    frame: DataFrame, raw: memoryview, logs: LogCopies, state: ReplicaState, effects: list[fx.Effect]
) -> None:
    """What is not committed of a copy goes out of the notes before it is cut. One that begins anew will lack what it
    had: its mark is noted before, so that nobody takes what it has meanwhile for the whole log (R3).

    raises: CutRefused, of a copy that is as it was; OSError, LogError"""
    if isinstance(frame, m.Cut):
        if frame.drop or frame.name:
            state.note_cut(frame.partition)
        if logs.begins_anew(frame):
            state.note_copies(logs.marks(), {})
            effects.append(
                fx.Alarm(
                    "cluster.copy_anew",
                    f"retention removed records of {frame.partition} here that its leader has, and what was left is"
                    " not in the leader's log: this copy is filled from its beginning",
                )
            )
    logs.apply(frame, raw)
