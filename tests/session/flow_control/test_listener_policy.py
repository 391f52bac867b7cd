"""What a listener allows, and how a reload changes it. docs/guides/security.md."""

from dataclasses import fields

import msgspec
import pytest

from rumq.auth.connection_rate import Arrivals
from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.identity import Certificate
from rumq.auth.rules import File, RuleSet
from rumq.mqtt.packets import Connect
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import OPEN, STAYS, ListenerPolicy
from rumq.session.flow_control.rate_limits import Quotas, Rate, Rates

PUMP = Certificate("pump-7", "CN=pump-7,O=Plant", ("pump-7.plant",))


def other_than_default() -> ListenerPolicy:
    """A policy without one value of the default's."""
    made = ListenerPolicy(
        3,
        Authenticator(anonymous=False),
        Limits(maximum_qos=1),
        rules=RuleSet(msgspec.convert({"rule": []}, File)),
        quotas=Quotas(Rates(client=Rate(7)), connections_max=1),
        certificate_as_user="subject",
        user_as_client_id=True,
        client_id_prefixes=("pump-",),
        versions=frozenset({5}),
        assigned_prefix="auto-",
        empty_client_id=False,
        exact_refusals=False,
        name="tls",
        mount_point="site-7/",
        is_removed=True,
        bytes_in=1,
        bytes_out=1,
        arrivals=Arrivals(delayed=1),
        is_gateway=True,
    )
    assert all(getattr(made, each.name) != getattr(OPEN, each.name) for each in fields(made))
    return made


def test_a_reload_takes_everything_over_but_what_identifies_the_listener() -> None:
    policy, other = ListenerPolicy(name="plain", mount_point="site-1/"), other_than_default()
    policy.become(other)
    taken = {each.name for each in fields(policy) if getattr(policy, each.name) == getattr(other, each.name)}
    assert taken == {each.name for each in fields(policy)} - STAYS
    assert (policy.name, policy.mount_point) == ("plain", "site-1/")


def test_connections_stay_counted_over_a_reload() -> None:
    """Otherwise a reload would let a user have its quota once more."""
    policy = ListenerPolicy(quotas=Quotas(connections_max=5))
    quotas = policy.quotas
    assert quotas.enter("anna")
    policy.become(ListenerPolicy(quotas=Quotas(Rates(client=Rate(7)), connections_max=1)))
    assert policy.quotas is quotas and not quotas.enter("anna") and quotas.enter("ben")
    assert len(quotas.sending.buckets("anna", 0.0)) == 1


def test_listeners_do_not_share_their_quotas() -> None:
    assert ListenerPolicy().quotas is not ListenerPolicy().quotas


@pytest.mark.parametrize(
    ("is_user", "field", "certificate", "username", "client_id"),
    [
        (False, "no", PUMP, "anna", "c"),
        (False, "common name", PUMP, "anna", "c"),
        (True, "no", None, "anna", "anna"),
        (True, "no", PUMP, "anna", "anna"),  # the certificate authenticates, the name is CONNECT's
        (True, "no", None, None, ""),
        (True, "common name", PUMP, "anna", "pump-7"),
        (True, "subject", PUMP, "anna", "CN=pump-7,O=Plant"),
        (True, "common name", None, "anna", "anna"),  # client certificates are optional there
        (True, "common name", None, None, ""),
    ],
)
def test_the_client_id_is_the_user_name_where_the_listener_says_so(
    is_user: bool, field: str, certificate: Certificate | None, username: str | None, client_id: str
) -> None:
    policy = ListenerPolicy(user_as_client_id=is_user, certificate_as_user=field)
    assert policy.client_id_of(Connect("c", username=username), certificate) == client_id
