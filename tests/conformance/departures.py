"""Tests in which Debian's mosquitto 2.0.11 does not do what the standard says; the standard stays right."""

SILENT = "closes without DISCONNECT"

MOSQUITTO: dict[str, str] = {
    "test_connect.py::test_a_second_connect_ends_the_connection[5]": SILENT,
    "test_connect_properties.py::test_a_bad_value_or_a_repeated_property_is_refused"
    "[authentication data without method]": "accepts it",
    "test_connect_properties.py::test_a_bad_will_property_is_refused[payload format 2]": "accepts it",
    "test_session.py::test_a_second_connection_takes_the_session_over[5]": SILENT,
    "test_session.py::test_a_second_connection_with_clean_start_ends_the_first[5]": SILENT,
    "test_session.py::test_a_connection_taken_over_between_versions": SILENT,
    "test_session.py::test_a_chain_of_take_overs_leaves_one_connection[5]": SILENT,
    "test_subscribe.py::test_overlapping_subscriptions_deliver_at_the_greatest_qos[3.1.1]": "takes the least",
    "test_subscribe.py::test_no_local_on_a_shared_subscription_is_a_protocol_error": "accepts it",
    "test_will_properties.py::test_disconnect_by_an_error_publishes_the_will": "discards it",
    "test_will_properties.py::test_a_will_delay_is_not_waited_for_when_the_session_ends_at_once": "waits",
    "test_will_properties.py::test_a_delayed_will_goes_out_when_a_clean_start_ends_its_session": "drops it",
    "test_will_properties.py::test_a_will_delay_survives_a_disconnect_that_ends_the_session": "waits",
}
