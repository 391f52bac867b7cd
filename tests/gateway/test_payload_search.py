"""Records are searched by a part of their payload; the rest of a request is as without it."""

from pathlib import Path

import pytest

from rumq.gateway.records import records
from rumq.gateway.records.records import ServedRecords
from tests.gateway.conftest import started


def test_records_are_found_by_a_part_of_their_payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = started(tmp_path)
    try:
        given = [{"topic": f"s/{n % 2}", "payload": f"value {n}", "qos": 1} for n in range(30)]
        assert gateway.publish(*given, {"topic": "s/0", "payload": "süß", "qos": 1}).status == 200
        while len(gateway.get("records?topic=s/%23")["records"]) < 31:
            pass
        found = gateway.get("records?topic=s/%23&contains=value%202")["records"]
        assert [row["payload"] for row in found] == ["value 2", *(f"value {n}" for n in range(20, 30))]
        only = gateway.get("records?topic=s/1&contains=value%202")["records"]
        assert {row["topic"] for row in only} == {"s/1"} and len(only) == 5
        assert [row["payload"] for row in gateway.get("records?topic=s/%23&contains=%C3%BC")["records"]] == ["süß"]
        assert gateway.get("records?topic=s/%23&contains=nothing")["records"] == []
        assert gateway.ask("GET", "/api/v1/records?topic=s/%23&contains=value", token="sender").status == 403
    finally:
        gateway.broker.end()
    monkeypatch.setattr(records, "EXAMINED_MAX", 4)
    served, cursor, payloads, requests = ServedRecords(str(gateway.broker.data)), None, [], 0
    is_more = True
    while is_more:
        page = served.fetch("s/#", "earliest", cursor, 100, lambda topic: True, 0, contains=b"value 29")
        payloads += [each.payload for each in page.records]
        cursor, is_more, requests = page.cursor, page.more, requests + 1
        assert requests < 50
    assert payloads == ["value 29"] and requests > 5, "a request looks at a bounded number of records"
