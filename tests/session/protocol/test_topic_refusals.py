"""Topics and filters that are well-formed, and that this broker refuses to everybody. MQTT 5.0, 4.7 and 4.8."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_filter, matches
from rumq.session.flow_control.limits import Limits
from rumq.session.protocol import topic_refusals

repeatable = settings(derandomize=True, deadline=None)

LIMITS = Limits()
SMALL = Limits(topic_bytes_max=6, topic_levels_max=3)
LEVEL = st.sampled_from(["$log", "$share", "$SYS", "$SYSTEM", "a", "", "+", "#"])
FILTER = st.lists(LEVEL, min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("topic", "mount", "reason"),
    [
        ("plant/7", "", None),
        ("$SYS", "", Reason.NOT_AUTHORIZED),
        ("$SYS/broker/version", "", Reason.NOT_AUTHORIZED),
        ("$SYSTEM", "", None),  # the reserved name is a level, not a prefix
        ("a/$SYS/b", "", None),
        ("$log/earliest/a", "", Reason.TOPIC_NAME_INVALID),
        ("$log", "", None),
        ("a/$log/b", "", None),
        ("$share/g/a", "", Reason.TOPIC_NAME_INVALID),
        ("site/$share/g/a", "", None),
        ("site/$share/g/a", "site/", Reason.TOPIC_NAME_INVALID),  # as its clients see it: $share/g/a
        ("site/$log/earliest/a", "site/", Reason.TOPIC_NAME_INVALID),
        ("site/a/$log/b", "site/", None),
    ],
)
def test_nobody_may_publish_there(topic: str, mount: str, reason: Reason | None) -> None:
    refusal = topic_refusals.of_name(topic, LIMITS, mount)
    assert (refusal and refusal.reason) == reason


@pytest.mark.parametrize(
    ("topic", "acknowledged"),
    [("$SYS/a", True), ("$log/a/b", True), ("$share/a/b", True), ("seven77", False), ("a/b/c/d", False)],
)
def test_before_mqtt_5_only_what_is_too_large_ends_the_connection(topic: str, acknowledged: bool) -> None:
    """3.1.1, 3.3.5-2: what no client could receive is acknowledged; a limit of this broker is not."""
    refusal = topic_refusals.of_name(topic, SMALL, "")
    assert refusal is not None and refusal.acknowledged is acknowledged and refusal.why


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [("123456", True), ("1234567", False), ("äöü", True), ("äöüx", False), ("a/b/c", True), ("a///", False)],
)
def test_names_and_filters_have_the_same_limits_in_bytes_and_levels(text: str, is_taken: bool) -> None:
    assert (topic_refusals.of_name(text, SMALL, "") is None) is is_taken
    assert (topic_refusals.of_filter(text, SMALL, "") == "") is is_taken


@pytest.mark.parametrize(
    ("plain", "mount", "is_taken"),
    [
        ("plant/#", "", True),
        ("#", "", True),
        ("$SYS/#", "", True),  # read, not written
        ("$log/earliest/a", "", False),  # behind another $log/... or a $share/...
        ("$share/g/a", "", False),
        ("+/$log/a", "", True),
        ("site/$log/earliest/a", "site/", False),
        ("site/$log/earliest/a", "", True),
    ],
)
def test_a_prefix_stands_at_the_beginning_once(plain: str, mount: str, is_taken: bool) -> None:
    assert (topic_refusals.of_filter(plain, LIMITS, mount) == "") is is_taken


@repeatable
@given(FILTER, FILTER)
def test_what_nobody_may_publish_to_no_filter_that_is_taken_would_have_brought(topic: str, plain: str) -> None:
    assume("+" not in topic and "#" not in topic and topic)
    try:
        check_topic_filter(plain)
    except TopicFilterInvalid:
        assume(False)
    refusal = topic_refusals.of_name(topic, LIMITS, "")
    if refusal is not None and refusal.reason is Reason.TOPIC_NAME_INVALID:
        assert topic_refusals.of_filter(plain, LIMITS, "") or not matches(plain, topic)
