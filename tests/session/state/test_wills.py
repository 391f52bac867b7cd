"""A will is published only while the rules permit it. MQTT 5.0, 3.1.2.5; docs/guides/security.md."""

from rumq.auth.identity import Certificate, Identity
from rumq.auth.rules import RuleSet, parse
from rumq.mqtt.packets import Will
from rumq.session.state.wills import (
    author_of,
    identity_of,
    message_of,
    permits_will,
    rules_permit_will,
)


class Listener:
    def __init__(self, name: str, rules: RuleSet | None) -> None:
        self.name, self.rules = name, rules


def rules(*actions: str, topics: str = "status/#") -> RuleSet:
    return parse(f'[[rule]]\nallow = {list(actions)}\ntopics = ["{topics}"]\n'.replace("'", '"'), "rules")


def will(topic: str = "status/pump", *, retain: bool = False) -> Will:
    return Will(topic, b"gone", 1, retain, {"will_delay_interval": 5, "message_expiry_interval": 60})


ANNA = Identity("anna", frozenset({"operators"}), certificate=Certificate("cn", "CN=cn", ("a", "b")))


def test_an_author_outlives_the_broker() -> None:
    author = author_of(ANNA, "0.0.0.0:1883")
    assert identity_of(author) == Identity("anna", frozenset({"operators"}), certificate=ANNA.certificate)
    assert identity_of(None) == Identity()


def test_a_retained_will_needs_both_permissions() -> None:
    permit = rules("will").permit(ANNA, "pump")
    assert permits_will(permit, will()) and not permits_will(permit, will(retain=True))
    assert permits_will(rules("will", "retain").permit(ANNA, "pump"), will(retain=True))
    assert permits_will(None, will(retain=True))
    assert not permits_will(permit, will("elsewhere"))


def test_the_rules_of_the_listener_that_its_client_came_through_decide() -> None:
    author = author_of(ANNA, "inside")
    listeners = [Listener("inside", rules("will")), Listener("outside", rules("publish"))]
    assert rules_permit_will(author, "pump", will(), listeners)
    assert not rules_permit_will(author_of(ANNA, "outside"), "pump", will(), listeners)


def test_if_that_listener_is_gone_all_must_permit_it() -> None:
    author = author_of(ANNA, "gone")
    open_one, strict = Listener("a", None), Listener("b", rules("publish"))
    assert rules_permit_will(author, "pump", will(), [open_one])
    assert not rules_permit_will(author, "pump", will(), [open_one, strict])
    assert not rules_permit_will(None, "pump", will(), [open_one, strict])


def test_the_message_has_the_will_properties_without_the_delay() -> None:
    """MQTT 5.0, 3.1.3.2: the delay interval is not a property of the message."""
    message = message_of(will())
    assert (message.topic, message.payload, message.qos, message.retain) == ("status/pump", b"gone", 1, False)
    assert message.properties == {"message_expiry_interval": 60}
