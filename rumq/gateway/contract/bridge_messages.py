"""What REST tells of the bridges of a broker. docs/guides/bridges.md, "How it does".

No user, no password, no payload; a failure's text may name a topic filter of the settings."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rumq.admin import requests as q
from rumq.admin.answers import Answer
from rumq.admin.units import field, number

ROWS_MAX, ROWS_USUAL = 200, 100


class FindBridges(q.Request, kw_only=True):
    limit: Annotated[int, number("rows at most", "rows", 1, ROWS_MAX)] = ROWS_USUAL
    offset: Annotated[int, number("rows to skip", "rows", 0, 1_000_000)] = 0


class BridgeDirection(msgspec.Struct, kw_only=True):
    """What a bridge has relayed one way since the process of the bridges began."""

    messages: Annotated[int, field("that the target has taken, also one that came again", "messages")] = 0
    bytes: Annotated[int, field("their payloads", "bytes")] = 0
    doubtful: Annotated[int, field("sent again to a target that had lost its session", "messages")] = 0
    refused: Annotated[int, field("that the target refused for good", "messages")] = 0
    looped: Annotated[int, field("left out: they have been at the target", "messages")] = 0
    dropped: Annotated[int, field("of QoS 0, that the target was too slow for", "messages")] = 0
    unmapped: Annotated[int, field("that no rule of the bridge names now", "messages")] = 0


class BridgeRow(msgspec.Struct, kw_only=True):
    """A bridge to another broker."""

    name: str
    connected: Annotated[bool, field("to both brokers")]
    since_us: Annotated[int | None, field("connected, or not connected; null: not known", "µs since 1970")] = None
    why: Annotated[str, field("why it is not connected, or the last time was not; empty: it always was")] = ""
    address: Annotated[str, field("of the other broker, that is in use or tried; empty: none was tried yet")] = ""
    broker: Annotated[str, field("id of the other broker, if it is a rumq broker that was connected")] = ""
    mqtt: Annotated[str, field("5.0 or 3.1.1, of the last connection; empty: there was none")] = ""
    connections: Annotated[int, field("times that it was connected to both brokers")] = 0
    outgoing: Annotated[BridgeDirection, field("to the other broker")]
    incoming: Annotated[BridgeDirection, field("from it")]


class Bridges(Answer, kw_only=True):
    bridges: Annotated[list[BridgeRow], field("in the order of their names")]
    elsewhere: Annotated[
        str, field("on a node of a cluster that does not run them: which one does; empty: they run here, or nowhere")
    ] = ""
    left_out: Annotated[int, field("rows on other pages", "rows")] = 0
