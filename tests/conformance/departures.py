"""Tests in which Debian's mosquitto 2.0.11 does not do what the standard says; the standard stays right.

Each key is how the test's name begins. Only looked at where mosquitto is the broker under test.

It also ends some MQTT 5 connections without the DISCONNECT that 4.13.1 asks for: SILENT_REFUSALS."""

SILENT_REFUSALS = {"mosquitto"}

LAX = "takes it as if it were right"
BAD_PUBLISH = "test_message_properties.py::test_a_bad_property_of_publish_is_refused"

MOSQUITTO: dict[str, str] = {
    "test_connect_properties.py::test_a_bad_value_or_a_repeated_property_is_refused"
    "[authentication data without method]": LAX,
    "test_connect_properties.py::test_a_bad_will_property_is_refused[payload format 2]": LAX,
    "test_flow_control.py::test_the_broker_keeps_to_the_client_s_receive_maximum": "sends more after an ack",
    "test_flow_control.py::test_a_client_that_exceeds_the_broker_s_receive_maximum_is_refused": "drops it",
    "test_malformed.py::test_reserved_flags_have_their_value[3.1.1-puback": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[3.1.1-pubrec": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[3.1.1-pubcomp": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[3.1.1-pingreq": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[5-puback": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[5-pubrec": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[5-pubcomp": LAX,
    "test_malformed.py::test_reserved_flags_have_their_value[5-pingreq": LAX,
    "test_malformed.py::test_a_packet_that_no_client_sends_is_refused[3.1.1-0xd0]": LAX,
    "test_malformed.py::test_a_packet_that_no_client_sends_is_refused[5-0xd0]": LAX,
    "test_malformed.py::test_bytes_left_over_make_a_packet_malformed[pu": LAX,
    "test_malformed.py::test_bytes_left_over_make_a_packet_malformed[ping": LAX,
    "test_malformed.py::test_bytes_left_over_make_a_311_packet_malformed": LAX,
    "test_malformed.py::test_bad_properties_and_codes_are_refused[pu": LAX,
    f"{BAD_PUBLISH}[payload format 2]": LAX,
    f"{BAD_PUBLISH}[response topic with": LAX,
    f"{BAD_PUBLISH}[subscription identifier]": LAX,
    "test_packet_size.py::test_the_limit_counts_the_whole_packet[1]": "sends one byte more",
    "test_packet_size.py::test_skipped_messages_take_no_quota": "they do",
    "test_qos.py::test_a_repeated_qos_2_publish_is_answered_again_and_delivered_once": "ends at the third",
    "test_qos.py::test_a_pubrel_that_nobody_awaits_gets_pubcomp[5]": "answers with success",
    "test_qos.py::test_a_pubrec_that_nobody_awaits_gets_pubrel_0x92": "answers with success",
    "test_redelivery.py::test_redelivery_keeps_to_a_smaller_receive_maximum": "sends them all",
    "test_shared.py::test_no_retained_message_greets_a_shared_subscription": "sends it",
    "test_shared.py::test_a_share_name_that_breaks_the_rules_is_refused": "grants it",
    "test_subscribe.py::test_overlapping_subscriptions_deliver_at_the_greatest_qos[3.1.1]": "takes the least",
    "test_subscribe.py::test_no_local_on_a_shared_subscription_is_a_protocol_error": LAX,
    "test_websocket.py::test_a_text_frame_ends_the_connection": LAX,
    "test_will_properties.py::test_disconnect_by_an_error_publishes_the_will": "discards it",
    "test_will_properties.py::test_a_will_delay_is_not_waited_for_when_the_session_ends_at_once": "waits",
    "test_will_properties.py::test_a_delayed_will_goes_out_when_a_clean_start_ends_its_session": "drops it",
    "test_will_properties.py::test_a_will_delay_survives_a_disconnect_that_ends_the_session": "waits",
}
