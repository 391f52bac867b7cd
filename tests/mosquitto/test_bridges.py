"""Bridges of mosquitto.conf become [[bridge]], or are left out with the line that is to blame."""

from pathlib import Path

import pytest

from rumq.errors import ConfigError
from rumq.mosquitto.bridges import url_of
from rumq.mosquitto.conf import read_conf
from rumq.mosquitto.convert import Converted, converted
from rumq.settings.load import load_settings

BRIDGE = 'connection Centre 1\naddress 10.0.0.1:1884\ntopic plant/# out 2\ntopic cmd/# in 1 "" edge/\n'


def convert(folder: Path, text: str) -> Converted:
    path = folder / "mosquitto.conf"
    path.write_text(f"listener 1\n{text}")
    return converted(read_conf(str(path)))


def test_a_bridge_is_one_here(tmp_path: Path) -> None:
    more = (
        "remote_username edge\nremote_clientid me\nkeepalive_interval 30\nrestart_timeout 5 30\nlocal_username robot\n"
        "bridge_protocol_version mqttv50\nbridge_cafile /ca.pem\nbridge_certfile /c.pem\nbridge_keyfile /k.pem\n"
    )
    found = convert(tmp_path, BRIDGE + more)
    assert found.tree["bridge"] == [
        {
            "name": "centre-1", "url": "mqtts://10.0.0.1:1884", "topics": ["plant/# out 2", 'cmd/# in 1 "" edge/'],
            "user": "edge", "client_id": "me", "keep_alive_seconds": 30, "retry_seconds_max": 30, "local_user": "robot",
            "mqtt_version": "5", "tls_authority": "/ca.pem", "tls_certificate": "/c.pem", "tls_key": "/k.pem",
        }
    ]  # fmt: skip
    assert not found.left_out
    (own,) = load_settings(tree=("f", {"bridge": found.tree["bridge"]})).settings.bridge
    assert own.url == "mqtts://10.0.0.1:1884"


def test_several_have_names_of_their_own(tmp_path: Path) -> None:
    found = convert(tmp_path, BRIDGE + BRIDGE.replace("Centre 1", "centre_1") + BRIDGE)
    assert [each["name"] for each in found.tree["bridge"]] == ["centre-1", "centre_1", "centre-1-2"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("remote_password hunter2", "password_file"),
        ("bridge_psk 1234", "shared key"),
        ("bridge_capath /etc/ssl", "tls_authority"),
        ("bridge_require_ocsp true", "revoked"),
    ],
)
def test_one_that_would_be_less_safe_or_not_let_in_is_left_out_as_a_whole(
    line: str, words: str, tmp_path: Path
) -> None:
    found = convert(tmp_path, f"{BRIDGE}{line}\n")
    assert "bridge" not in found.tree
    said = {each.key: why for each, why in found.left_out}
    assert words in said[line.split()[0]] and "as a whole" in said["connection"] and "topic" in said
    assert "hunter2" not in "".join(each.shown for each, _ in found.left_out)


@pytest.mark.parametrize(
    "line",
    [
        "bridge_protocol_version mqttv31",
        "notifications true",
        "notifications_local_only false",
        "start_type lazy",
        "bridge_insecure true",
        "bridge_outgoing_retain false",
        "bridge_nosuch 1",
    ],
)
def test_what_a_bridge_lacks_here_is_named(line: str, tmp_path: Path) -> None:
    found = convert(tmp_path, f"{BRIDGE}{line}\n")
    assert len(found.tree["bridge"]) == 1
    assert [each.key for each, _ in found.left_out] == [line.split()[0]]


def test_nothing_is_missing_without_these(tmp_path: Path) -> None:
    found = convert(tmp_path, f"{BRIDGE}cleansession true\ntry_private true\nbridge_require_ocsp false\n")
    assert [each.key for each, _ in found.idle] == ["cleansession", "try_private", "bridge_require_ocsp"]
    assert not found.left_out and len(found.tree["bridge"]) == 1


def test_several_addresses_are_tried_as_there(tmp_path: Path) -> None:
    found = convert(tmp_path, "connection b\naddresses one.example two.example:1884\ntopic #\nround_robin true\n")
    (own,) = found.tree["bridge"]
    assert (own["url"], own["more_urls"]) == ("mqtt://one.example:1883", ["mqtt://two.example:1884"])
    assert own["round_robin"] is True and not found.left_out


def test_a_version_of_mqtt_is_the_one_that_is_spoken(tmp_path: Path) -> None:
    found = convert(tmp_path, f"{BRIDGE}bridge_protocol_version mqttv311\n")
    assert found.tree["bridge"][0]["mqtt_version"] == "3.1.1" and not found.left_out


def test_state_is_said_where_it_is_there(tmp_path: Path) -> None:
    here = convert(tmp_path, f"{BRIDGE}notifications true\nnotifications_local_only true\n")
    assert not here.left_out and "notification_topic" not in here.tree["bridge"][0]
    none = convert(tmp_path, f"{BRIDGE}notifications false\nnotification_topic a/b\n")
    assert not none.left_out and len(none.idle) == 2 and "notification_topic" not in none.tree["bridge"][0]
    both = convert(tmp_path, f"{BRIDGE}notification_topic a/b\n")
    assert both.tree["bridge"][0]["notification_topic"] == "a/b" and not both.left_out
    local = convert(tmp_path, f"{BRIDGE}notification_topic a/b\nnotifications_local_only true\n")
    assert local.tree["bridge"][0]["notifications_local_only"] is True


@pytest.mark.parametrize(
    ("text", "words"), [("connection b\ntopic #\n", "no address"), ("connection b\naddress h\n", "no topic")]
)
def test_half_of_a_bridge_is_none(text: str, words: str, tmp_path: Path) -> None:
    found = convert(tmp_path, text)
    assert "bridge" not in found.tree and words in found.left_out[0][1]


def test_a_value_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 6"):
        convert(tmp_path, f"{BRIDGE}restart_timeout soon\n")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("host", "mqtt://host:1883"),
        ("host:8883", "mqtt://host:8883"),
        ("[::1]:99", "mqtt://[::1]:99"),
        ("fe80::1", "mqtt://[fe80::1]:1883"),
    ],
)
def test_an_address_is_a_url(address: str, url: str) -> None:
    assert url_of(address, is_tls=False) == url
