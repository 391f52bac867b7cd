"""The answer about bridges, from the file of figures that their process writes every second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rumq.admin.topic_names import ANY_TOPIC
from rumq.gateway.access.tokens import Token
from rumq.gateway.contract.bridge_messages import BridgeDirection, BridgeRow, Bridges, FindBridges
from rumq.gateway.handlers.context import BridgeReport, GatewayFigures, GatewayRights
from rumq.gateway.http.requests import as_json, parameters_of

OUT, IN = "out", "in"  # directions, as the file of figures names them
NOT_RUNNING = "the process of the bridges does not run"
COUNTS = {each.name for each in msgspec.structs.fields(BridgeDirection)}


class BridgeEndpoints:
    def __init__(self, figures: GatewayFigures, rights: GatewayRights) -> None:
        self._figures, self._rights = figures, rights

    async def bridges(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, FindBridges)
        self._rights.topics_of(token).check(ANY_TOPIC, asked)
        return as_json(page_of(self._figures.bridge_report(), asked))


def page_of(report: BridgeReport, asked: FindBridges) -> Bridges:
    names = sorted(report.figures)
    shown = names[asked.offset : asked.offset + asked.limit]
    rows = [row_of(name, report.figures[name], is_live=report.is_live) for name in shown]
    elsewhere = report.elsewhere if report.is_live else ""
    return Bridges(bridges=rows, elsewhere=elsewhere, left_out=len(names) - len(shown))


def row_of(name: str, found: Mapping[str, Any], *, is_live: bool) -> BridgeRow:
    """found: as `BridgeCounts.figures`; keys that an older process did not write are left out"""
    return BridgeRow(
        name=name, connected=is_live and bool(found.get("up")),
        since_us=(found.get("since_us") or None) if is_live else None,
        why=found.get("why", "") if is_live else NOT_RUNNING,
        address=found.get("address", ""), broker=found.get("broker", ""), mqtt=found.get("mqtt", ""),
        connections=found.get("connections", 0),
        outgoing=direction_of(found, OUT), incoming=direction_of(found, IN),
    )  # fmt: skip


def direction_of(found: Mapping[str, Any], direction: str) -> BridgeDirection:
    return BridgeDirection(**{name: n for name, n in found.get(direction, {}).items() if name in COUNTS})
