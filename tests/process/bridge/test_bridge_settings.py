"""Everything that is wrong with bridges is named before a start, each with its key."""

from pathlib import Path
from typing import Any

import pytest

from rumq.auth.credentials.vouched import BROKERS_PASSWORD, OWN_PASSWORD
from rumq.errors import ConfigError
from rumq.process.bridge.bridge_settings import faults_of, local_side, remote_sides, rules_of
from rumq.process.listeners.broker_secret import broker_id
from rumq.process.listeners.gateway_listener import is_wanted
from rumq.process.listeners.setting_changes import differences, in_force, need_restart
from rumq.process.wiring.sidecars import check_sidecars, sidecars
from rumq.settings.load import Flag, load_settings
from rumq.settings.show import in_force as shown
from rumq.settings.table import Settings


def settings_of(*bridges: dict[str, Any], **sections: Any) -> Settings:
    return load_settings(tree=("test", {"bridge": list(bridges), **sections})).settings


def bridge(name: str = "centre", **more: Any) -> dict[str, Any]:
    return {"name": name, "url": "mqtt://centre.example", "topics": ["plant/# out 2"], **more}


@pytest.mark.parametrize(
    ("bridges", "key", "words"),
    [
        ([bridge(), bridge()], "bridge.centre.name", "two bridges"),
        ([bridge(topics=["plant/# sideways"])], "bridge.centre.topics", "no direction"),
        ([bridge(url="centre.example")], "bridge.centre.url", "expected one of"),
        ([bridge(url="mqtt://u:p@centre.example")], "bridge.centre.url", "password_file"),
        ([bridge(password_file="p")], "bridge.centre.user", "is missing"),
        ([bridge(tls_authority="ca.pem")], "bridge.centre.tls_authority", "needs TLS"),
        ([bridge(url="mqtts://c", tls_authority="/no/ca.pem")], "bridge.centre.tls_authority", "No such file"),
        ([bridge(url="mqtts://c", tls_key="/no/key.pem")], "bridge.centre.tls_key", "without a certificate"),
    ],
)
def test_what_is_wrong_has_its_key(bridges: list[dict[str, Any]], key: str, words: str) -> None:
    (fault,) = faults_of(settings_of(*bridges))
    assert fault.key == key and words in fault.problem
    assert ":p@" not in str(fault)
    with pytest.raises(ConfigError):
        check_sidecars(settings_of(*bridges))


def test_a_missing_key_and_an_unknown_one_are_named() -> None:
    with pytest.raises(ConfigError, match=r"url is missing"):
        settings_of({"name": "centre", "topics": ["#"]})
    with pytest.raises(ConfigError, match=r"bridge\.centre\.toppics"):
        settings_of(bridge(toppics=["#"]))
    with pytest.raises(ConfigError, match=r"bridge = \"7\": expected \[\[bridge\]\] sections"):
        load_settings(flags=[Flag("bridge", "7", "--set")])


def test_on_a_node_what_bridges_note_has_to_be_on_a_majority_and_of_a_size() -> None:
    def faults(durability: str, *topics: str, replicas: int = 3) -> list[str]:
        settings = settings_of(bridge(topics=topics))
        cluster = type(settings.cluster)(name="c", replicas=replicas)
        stream = type(settings.stream[0])(name="main", durability=durability)
        return [each.key for each in faults_of(Settings(bridge=settings.bridge, cluster=cluster, stream=(stream,)))]

    assert faults("quorum", "#") == [] == faults("disk", "#", replicas=1)
    assert faults("disk", "#") == ["log.durability"]
    many = [f"{'x' * 1000}/{n}" for n in range(100)]
    assert faults("quorum", *many) == ["bridge.centre.topics"]
    assert not list(faults_of(settings_of(bridge(topics=many)))), "a broker alone writes a file"


def test_nodes_of_a_cluster_have_one_client_id_at_the_other_broker() -> None:
    (side,) = remote_sides(settings_of(bridge()).bridge[0], broker_id("/no/such/data", "c"))
    assert side.options.client_id == f"rumq-bridge/centre/{broker_id('/another', 'c')}"


def test_one_line_of_the_command_line_is_a_bridge_and_the_settings_in_force_can_be_run_again() -> None:
    flag = Flag("bridge", '[{name="a", url="mqtt://b", topics=["# in 1"], bytes_per_second_max="1 MiB"}]', "--set")
    loaded = load_settings(flags=[flag])
    assert loaded.settings.bridge[0].bytes_per_second_max == 1 << 20
    assert "[[bridge]]" in shown(loaded) and 'topics = ["# in 1"]' in shown(loaded)


def test_a_broker_with_a_bridge_has_its_socket_and_its_process() -> None:
    settings = settings_of(bridge())
    assert is_wanted(settings) and not is_wanted(settings_of())
    (own,) = [each for each in sidecars(settings, "/data", []) if "bridge" in each.command]
    assert own.reloads and "--for-broker" in own.command
    assert not [each for each in sidecars(settings_of(), "/data", []) if "bridge" in each.command]


def test_sides_have_sessions_and_logins_by_the_settings(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    own = bridge(user="edge", password_file=str(tmp_path / "password"), topics=["a/# in 1", "b/# out"])
    settings = settings_of(own, bridge("other", local_user="robot", client_id="me", session_expiry_seconds=3600))
    first, second = settings.bridge
    here, there = local_side(settings, first), *remote_sides(first, "0123")
    assert (here.options.client_id, here.options.username, here.options.password) == (
        "rumq-bridge/centre", None, BROKERS_PASSWORD,
    )  # fmt: skip
    assert (there.options.client_id, there.options.username) == ("rumq-bridge/centre/0123", "edge")
    assert callable(there.options.password) and there.options.password() == "secret"
    assert (here.filters, there.filters) == ({"b/#": 0}, {"a/#": 1})
    here, there = local_side(settings, second), *remote_sides(second, "0123")
    assert (here.options.username, here.options.password) == ("robot", OWN_PASSWORD)
    assert (there.options.client_id, there.options.session_expiry) == ("me", 3600)
    assert rules_of(first).inflight_max == 1000 and rules_of(first).exactly_once


def test_a_reload_puts_bridges_into_force_where_there_is_a_process_for_them() -> None:
    none, one, other = settings_of(), settings_of(bridge()), settings_of(bridge(topics=["# in"]))
    assert list(differences(one, other)) == ["bridge"]
    assert need_restart(one, other, ["bridge"]) == [] and in_force(one, other).bridge == other.bridge
    assert need_restart(none, one, ["bridge"]) == ["bridge"] and in_force(none, one).bridge == ()
    assert in_force(one, none).bridge == ()


def test_a_topic_for_notifications_is_a_will_at_both_sides_or_here() -> None:
    both, here = settings_of(
        bridge(notification_topic="b/x"), bridge("other", notification_topic="b/x", notifications_local_only=True)
    ).bridge
    (there,) = remote_sides(both, "0123")
    assert there.options.will is not None
    assert (there.options.will.topic, there.options.will.payload, there.options.will.retain) == ("b/x", b"0", True)
    (there,) = remote_sides(here, "0123")
    assert there.options.will is None and local_side(settings_of(), here).options.will is not None


@pytest.mark.parametrize("topic", ["a/#", "$SYS/broker/connection/x/state"])
def test_a_topic_for_notifications_is_one_that_clients_publish_to(topic: str) -> None:
    (fault,) = faults_of(settings_of(bridge(notification_topic=topic)))
    assert fault.key == "bridge.centre.notification_topic"
