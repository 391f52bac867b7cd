"""Drop counters: their sums are exact, and their memory is bounded."""

from rumq.session.state.drop_counters import DropCounters, Undelivered


def test_lines_are_by_reason_client_and_topic() -> None:
    counters = DropCounters()
    counters.count("expired", "c", "t", 2)
    counters.count("expired", "c", "t")
    counters.count("retention", "c", "t")
    counters.count("expired", "d", "u")
    assert counters.rows("c", "t") == [
        Undelivered("expired", "c", "t", 3),
        Undelivered("retention", "c", "t", 1),
    ]
    assert (
        counters.total(),
        counters.total("expired"),
        counters.of_client("c"),
        counters.of_client("x"),
    ) == (
        5,
        4,
        4,
        0,
    )


def test_a_client_with_many_topics_has_the_rest_under_one_name() -> None:
    counters = DropCounters(topics_max=2)
    for topic in "abcab":
        counters.count("expired", "c", topic)
    assert {row.topic: row.records for row in counters.rows("c")} == {"a": 2, "b": 2, "#": 1}


def test_past_its_bound_the_client_counted_longest_ago_is_one_of_the_others() -> None:
    counters = DropCounters(rows_max=3)
    for client, topic in ("a1", "a2", "b1", "a1", "c1", "c2"):
        counters.count("expired", client, topic)
    named = {(row.client_id, row.topic): row.records for row in counters.rows()}
    assert named == {("c", "1"): 1, ("c", "2"): 1, ("", "#"): 4}
    assert counters.total() == sum(named.values())


def test_names_have_a_bound_in_bytes() -> None:
    counters = DropCounters(bytes_max=1000)
    for number in range(100):
        counters.count("expired", f"{number}" + 100 * "x", 100 * "t")
    assert len(counters.rows()) <= 5
    assert counters.total() == sum(row.records for row in counters.rows()) == 100
