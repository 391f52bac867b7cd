"""Counts of calls, by method and status."""

import grpc
import pytest

from rumq.services.call_figures import CallFigures


def test_calls_are_counted_by_method_and_code() -> None:
    now = 10.0
    figures = CallFigures(lambda: now)
    with figures.counted("A") as code:
        assert figures.open["A"] == 1
        now = 12.0
        code.append(grpc.StatusCode.OK)
    with pytest.raises(KeyError), figures.counted("A"):
        raise KeyError
    assert figures.calls == {("A", "OK"): 1, ("A", "CANCELLED"): 1} and figures.open["A"] == 0
