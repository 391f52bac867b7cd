"""The leader that a replica follows: what it sends is written, synced and acknowledged here. Sans-IO. R4 to R6, R11"""

from __future__ import annotations

from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.copy_change import change_copy
from rumq.cluster.replication.ports import CutRefused, DataFrame, LogCopies, ReplicaState
from rumq.cluster.replication.quorum import noted
from rumq.cluster.replication.standby.office import WAY_OUT


class FollowedLeader:
    """link: its number, None while nobody is followed; is_fed: it has sent more than its claim

    has_missed: frames of it were not taken, while a promise to another one was held"""

    def __init__(self, logs: LogCopies, state: ReplicaState, effects: list[fx.Effect]) -> None:
        self._logs, self._state, self._effects = logs, state, effects
        self.link: int | None = None
        self.is_fed = self.has_missed = False
        self._is_dirty = False

    def follow(self, link: int) -> None:
        """This link's from now on."""
        self.link, self.is_fed, self.has_missed = link, False, False

    def take(self, message: m.ReplicaMessage, raw: memoryview) -> None:
        """What it says of the copies, in the epoch that is promised. raises: OSError, LogError"""
        assert self.link is not None
        epoch = self._state.promised
        if isinstance(message, m.Inventory):
            self.flush()
            segments = self._logs.inventory(message.partition)
            self._reply(self.link, m.SegmentStates(epoch, message.partition, segments))
        elif isinstance(message, DataFrame):
            try:
                change_copy(message, raw, self._logs, self._state, self._effects)
            except CutRefused as refused:
                self._refuse(self.link, refused)
                return
            self._is_dirty = True
        elif isinstance(message, m.Complete):
            self.flush()
            members = message.members  # R4: its log is a part of this term's from here on
            self._state.open(epoch, self._state.promised_term, None if members is None else noted(members))
            self._reply(self.link, m.Opened(epoch))
        elif isinstance(message, m.Distrust):
            self._state.distrust()  # R11
            self._effects.append(
                fx.Alarm(
                    "cluster.copy_doubted",
                    "it ends before what it had acknowledged: its disk went back in time",
                )
            )

    def _refuse(self, link: int, refused: CutRefused) -> None:
        """R5: this copy stays as it is, and its leader learns that its own log lacks what was committed."""
        self._effects.append(fx.Alarm("cluster.copies_disagree", f"{refused.why}: {WAY_OUT}"))
        self.link = None
        self._reply(link, m.Ahead(self._state.promised, refused.partition, refused.why), is_last=True)

    def flush(self) -> None:
        """Sync what came, and acknowledge it: R6."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        for partition, next_lsn, name, stop in self._logs.sync():
            if self.link is not None:
                self._reply(self.link, m.Synced(self._state.promised, partition, next_lsn, name, stop))

    def _reply(self, link: int, message: m.ReplicaMessage, *, is_last: bool = False) -> None:
        self._effects.append(fx.Reply(link, message, is_last))
