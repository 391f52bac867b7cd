"""Pages of spans: each span once, and cursors of other shards are left to those."""

from types import SimpleNamespace
from typing import Any

import pytest

from rumq.admin.requests import Spans
from rumq.shards.admin.queries.span_pages import cursor_of, span_page
from rumq.tracing.spans import Span
from rumq.tracing.tracer import TracedPublisher, Tracer


def tracer(count: int) -> Tracer:
    made = Tracer(1, lambda *_: TracedPublisher("", None, {}), lambda: 0, bytes)
    for number in range(count):
        made.ring.add(Span(trace_id="t", span_id=str(number), name="n", start_us=0, end_us=0))
    return made


def test_a_page_continues_behind_the_one_before() -> None:
    made: Any = tracer(3)
    (page,) = span_page(made, Spans(after="0:9,1:1", limit=1))["shards"]
    assert ([span.span_id for span in page.spans], page.next, page.lost) == (["1"], 2, 0)
    (rest,) = span_page(made, Spans(after="1:2"))["shards"]
    assert [span.span_id for span in rest.spans] == ["2"] and rest.sample_every == 0


def test_publishes_that_were_never_acknowledged_are_told_first() -> None:
    swept: list[bool] = []
    made: Any = SimpleNamespace(
        shard=0, sampler=SimpleNamespace(every=7), sweep=lambda: swept.append(True), ring=tracer(0).ring
    )
    (page,) = span_page(made, Spans())["shards"]
    assert swept and page.sample_every == 7


@pytest.mark.parametrize("text", ["1", "a:b", "1:-2", "1:2,", "1:" + "9" * 50])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected shard:number"):
        cursor_of(text)
