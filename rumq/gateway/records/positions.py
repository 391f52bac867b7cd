"""Where messages lie that the gateway has published: found in the log's files, by the client id of its connection.

An acknowledgement does not say it. Messages of equal content are alike; each record is told once (`PositionClaims`)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec

from commitlog import Gap
from commitlog.read.partition_view import PartitionView
from commitlog.row_layout import ROW, ROW_QOS, ROW_RETAIN
from rumq.admin.units import field
from rumq.client.session.messages import Outgoing
from rumq.gateway.records.record_rows import publish_of
from rumq.gateway.records.records import ServedRecords

# An idle broker marks what is committed within 50 ms; a copy may be some hundred ms behind, or not be there at all.
SEARCH_SECONDS_MIN, SEARCH_SECONDS_MAX = 0.1, 1.0
CLAIMS_MAX = 20_000  # records that are remembered as told; requests look back by some hundred ms
Content = tuple[bytes, bytes, int, bool]  # topic, payload, QoS, retain


class Position(msgspec.Struct, kw_only=True, frozen=True):
    """A record of the log."""

    partition: Annotated[str, field("such as main/g1/p0")]
    lsn: Annotated[int, field("in its partition, from 0", "lsn")]
    offset: Annotated[int, field("in its topic, from 0")]


class PositionClaims:
    """Records of one connection that were told to a request."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, int], None] = OrderedDict()

    def take(self, partition: str, lsn: int) -> bool:
        """False: it was told already."""
        key = partition, lsn
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > CLAIMS_MAX:
            self._told.popitem(last=False)
        return True


class PositionSearch:
    """The messages of one request. begin: where each partition ended before they were sent; client_id: who sent them

    found: by number of the message"""

    def __init__(
        self, records: ServedRecords, begin: Mapping[str, int], client_id: str, claims: PositionClaims,
        messages: Sequence[Outgoing], refused: Mapping[int, object],
    ) -> None:  # fmt: skip
        self._records, self._at, self._claims = records, dict(begin), claims
        self._client = client_id.encode()
        self.found: dict[int, Position] = {}
        self._wanted: defaultdict[Content, deque[int]] = defaultdict(deque)  # numbers, in the order of sending
        self._acknowledged = {n for n, each in enumerate(messages) if each.qos and n not in refused}
        for number, each in enumerate(messages):
            if number not in refused:
                key = (each.topic.encode(), bytes(each.payload), each.qos, each.retain)
                self._wanted[key].append(number)
        self._left = len(self._acknowledged)  # of them to be found

    @property
    def is_over(self) -> bool:
        """Every message that was acknowledged is found."""
        return not self._left

    def look(self) -> None:
        """Look at what has come since. raises: OSError

        cost: one pass over the records of every publisher since the last look; decodes those of this one"""
        for view in self._records.views.current():
            begin = self._at.get(view.name, view.first_lsn)
            if begin >= view.end_lsn:
                continue
            for topic, lsn, offset, content in self._own(view, begin):
                numbers = self._wanted.get((topic, *content))
                if numbers and self._claims.take(view.name, lsn):
                    number = numbers.popleft()
                    self.found[number] = Position(partition=view.name, lsn=lsn, offset=offset)
                    self._left -= number in self._acknowledged
            self._at[view.name] = view.end_lsn

    def _own(self, view: PartitionView, begin: int) -> Iterator[tuple[bytes, int, int, tuple[bytes, int, bool]]]:
        """(topic, lsn, offset, content) of the records of the connection."""
        known = view.publishers(begin, view.end_lsn)
        own = {number for number, name in known.items() if name == self._client}
        if not own:
            return
        names = self._records.names_of(view)
        for chunk in view.chunks(begin, view.end_lsn):
            if isinstance(chunk, Gap):
                continue
            rows = list(ROW.iter_unpack(chunk.rows))
            for number, (topic_id, start, offset, _, _, publisher, flags, _) in enumerate(rows):
                if publisher not in own:
                    continue
                stop = rows[number + 1][1] if number + 1 < len(rows) else len(chunk.frames)
                packet = publish_of(bytes(memoryview(chunk.frames)[start:stop]), flags)
                content = bytes(packet.payload), flags & ROW_QOS, bool(flags & ROW_RETAIN)
                yield names.topic_name(topic_id, view), chunk.base_lsn + number, offset, content
