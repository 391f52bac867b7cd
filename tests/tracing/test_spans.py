"""The ring of finished spans: bounded, and who asks too late is told how many are gone."""

from rumq.tracing.spans import Span, SpanRing


def ring(count: int, spans_max: int = 3) -> SpanRing:
    made = SpanRing(spans_max)
    for number in range(count):
        made.add(Span(trace_id="t", span_id=str(number), name="n", start_us=0, end_us=1))
    return made


def taken(made: SpanRing, number: int, limit: int = 10) -> tuple[list[str], int, int]:
    spans, last, lost = made.after(number, limit)
    return [span.span_id for span in spans], last, lost


def test_who_continues_gets_each_span_once() -> None:
    made = ring(2)
    assert taken(made, 0, limit=1) == (["0"], 1, 0)
    assert taken(made, 1) == (["1"], 2, 0)
    assert taken(made, 2) == ([], 2, 0)


def test_the_oldest_make_room_and_are_counted_once() -> None:
    made = ring(7)
    assert taken(made, 1, limit=2) == (["4", "5"], 6, 3)
    assert taken(made, 6) == (["6"], 7, 0)


def test_a_number_of_an_earlier_run_begins_anew() -> None:
    assert taken(ring(2), 900) == (["0", "1"], 2, 0)
