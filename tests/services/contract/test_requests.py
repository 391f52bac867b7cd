"""Requests and pages."""

import pytest

from rumq.services.contract.faults import CallFault
from rumq.services.contract.requests import next_page, page_of, parsed
from rumq.services.generated.broker_service_pb2 import FetchRequest


def test_a_request() -> None:
    assert parsed(FetchRequest, FetchRequest(topic="a", id=3).SerializeToString()).id == 3
    with pytest.raises(CallFault, match="2 bytes were sent that are no FetchRequest"):
        parsed(FetchRequest, b"\x0a\xff")


def test_pages() -> None:
    assert page_of(0, "") == (100, 0) and page_of(10, "20") == (10, 20) and page_of(1_000, "9500") == (500, 9_500)
    for size, token in ((1_001, ""), (1, "x"), (1, "-1"), (1, "10000"), (1, "9" * 20)):
        with pytest.raises(CallFault):
            page_of(size, token)
    # 25 rows in pages of 10: what is left out counts those that were skipped
    assert [next_page(0, 10, 15), next_page(10, 10, 15), next_page(20, 5, 20)] == ["10", "20", ""]
    assert next_page(0, 0, 0) == "" and next_page(9_900, 100, 20_000) == ""
