"""Token buckets against a count of what went through, and quotas of users. docs/guides/security.md."""

from hypothesis import given
from hypothesis import strategies as st

from rumq.session.flow_control.rate_limits import BURST_SECONDS, Bucket, Quotas, Rate, Rates


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 3)), max_size=60), st.integers(1, 200))
def test_who_waits_as_told_never_sends_faster(sends: list[tuple[int, float]], rate: int) -> None:
    bucket, now, sent, largest = Bucket(Rate(rate), 0.0), 0.0, 0, 0
    for count, pause in sends:
        wait = bucket.spend(count, 0, now)
        sent, largest = sent + count, max(largest, count)
        assert sent <= rate * (now + BURST_SECONDS) + largest + 1e-6
        now += max(wait, 0.0) + pause


def test_a_bucket_of_bytes() -> None:
    bucket = Bucket(Rate(0, 100), 0.0)
    assert bucket.spend(1000, 200, 0.0) <= 0
    assert bucket.spend(1, 50, 0.0) == 0.5
    assert bucket.spend(1, 0, 0.5) <= 0


def test_users_share_a_bucket_and_their_number_is_bounded() -> None:
    quotas = Quotas(Rates(user=Rate(10)), connections_max=2)
    assert [quotas.enter("a"), quotas.enter("a"), quotas.enter("a"), quotas.enter("b")] == [
        True,
        True,
        False,
        True,
    ]
    assert quotas.sending.buckets("a", 0.0)[0] is quotas.sending.buckets("a", 1.0)[0]
    assert quotas.sending.buckets("b", 0.0)[0] is not quotas.sending.buckets("a", 1.0)[0]
    assert quotas.sending.buckets(None, 0.0) == ()
    quotas.leave("a")
    assert quotas.enter("a")
    assert all(quotas.enter(None) for _ in range(9))


def test_a_user_s_topics_are_counted_over_its_connections() -> None:
    quotas = Quotas(topics_max=2)
    assert quotas.may_add_topic("a") and quotas.may_add_topic(None)
    for _ in range(2):
        quotas.added_topic("a")
    quotas.enter("a")
    quotas.leave("a")
    assert not quotas.may_add_topic("a")
    assert quotas.may_add_topic("b")
    for _ in range(9):
        quotas.added_topic(None)
    assert quotas.may_add_topic(None)
    quotas.become(Quotas(topics_max=3))
    assert quotas.may_add_topic("a")
