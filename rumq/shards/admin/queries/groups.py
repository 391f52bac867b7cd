"""Shared groups: of those whose home is here the place, and of all of them the members that are here."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import islice

from router.matching.feed import Feed
from router.readers.shared_group import SharedGroup
from router.shard import ShardRouter
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.loop.ports import Timers
from rumq.session.state.session_owner import client_id_of
from rumq.shards.admin.listings.listings import Answer, Done

GROUPS_A_TURN = 64
CLIENTS_MAX = 100  # members that are named of each group
PLACES_MAX = 10_000  # channels of an answer
RETURNED_MAX = 1_000  # ranges that are told of a group
QUEUES = "$queues/"


class GroupsQuery:
    def __init__(self, router: ShardRouter, timers: Timers) -> None:
        self._shares, self._feeds, self._timers = router.sharing.shares, router.feeds, timers
        self._maybe_behind = router.delivery.groups.maybe_behind

    def list(self, asked: q.Groups, done: Done) -> None:
        left = sorted(self._shares)
        rows: list[r.GroupRow] = []

        def go_on() -> None:
            some = left[:GROUPS_A_TURN]
            del left[:GROUPS_A_TURN]
            for key in some:
                share = self._shares.get(key)
                if share is not None and has_client(share, asked.client):
                    rows.append(self._row(share))
            if left:
                self._timers.next_turn(go_on)
                return
            answer: Answer = {"groups": rows[: min(asked.offset + asked.limit, q.ROWS_MAX)]}
            answer["left_out"] = len(rows) - len(answer["groups"])
            done(answer)

        go_on()

    def channel_places(self) -> Answer:
        """Of channels of queues whose home is here and that have something to hand out.

        cost: a look at each of those and at each group that had a message since the last call, and its partitions"""
        rows: list[r.ChannelPlaceRow] = []
        names = [f"{p.stream}/g{p.generation}/p{p.number}" for p in (feed.partition for feed in self._feeds)]
        for share in list(self._maybe_behind):
            if not share.is_here or self._shares.get(share.key) is not share:
                del self._maybe_behind[share]
                continue
            if not share.returned and share.reader.caught_up():
                del self._maybe_behind[share]
                continue
            if not share.topic_filter.startswith(QUEUES):
                continue
            lsns = {
                names[feed.index]: cursor
                for feed, cursor in zip(self._feeds, share.reader.cursors, strict=True)
                if not share.reader.is_live(feed.index) and cursor < feed.mark(True)
            }
            returned = [(names[index], first, stop) for index, first, stop in islice(share.returned, RETURNED_MAX)]
            if lsns or returned:
                rows.append(
                    r.ChannelPlaceRow(
                        channel=share.key.split("/", 2)[1],
                        filter=share.topic_filter,
                        lsns=lsns,
                        returned=returned,
                    )
                )
                if len(rows) >= PLACES_MAX:
                    break
        return {"places": rows}

    def _row(self, share: SharedGroup) -> r.GroupRow:
        members = [subscriber for subscriber in share.members if not subscriber.is_shard]
        behind = group_lag(share, self._feeds) if share.is_here else 0
        return r.GroupRow(
            group=share.key, filter=share.topic_filter, members=len(members), behind_records=behind,
            returned_records=sum(stop - first for _, first, stop in share.returned) if share.is_here else 0,
            clients=sorted(client_id_of(subscriber.key) for subscriber in members[:CLIENTS_MAX]),
        )  # fmt: skip


def group_lag(share: SharedGroup, feeds: Sequence[Feed]) -> int:
    """Records that a group whose home is here has not handed out yet."""
    return sum(
        max(0, feed.mark(True) - share.reader.cursors[feed.index])
        for feed in feeds
        if not feed.partition.is_volatile and not share.reader.is_live(feed.index)
    )


def has_client(share: SharedGroup, pattern: str | None) -> bool:
    """Whether a member that is here has such a client id; also one that the row does not name."""
    return pattern is None or any(
        fnmatchcase(client_id_of(member.key), pattern) for member in share.members if not member.is_shard
    )
