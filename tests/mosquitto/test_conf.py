"""mosquitto.conf read and turned into settings, line by line; and ACL files into rules."""

from pathlib import Path
from typing import Any

import pytest

from rumq.auth.identity import Identity
from rumq.errors import ConfigError
from rumq.mosquitto.acl import parse_acl
from rumq.mosquitto.conf import OptionLine, read_conf
from rumq.mosquitto.convert import Converted, converted
from rumq.mosquitto.errors import MosquittoFileError
from rumq.settings.load import load_settings


def convert(tmp_path: Path, text: str) -> Converted:
    path = tmp_path / "mosquitto.conf"
    path.write_text(text)
    found = converted(read_conf(str(path)))
    load_settings(tree=(str(path), found.tree))  # whatever comes out must be good settings
    return found


LISTENERS = [
    ("", [{"host": "localhost"}]),
    ("port 1884", [{"host": "*", "port": 1884, "anonymous": "no"}]),
    ("bind_address 127.0.0.1\nport 5", [{"host": "127.0.0.1", "port": 5}]),
    ("listener 1\nlistener 2 10.0.0.1", [{"port": 1, "host": "*"}, {"port": 2, "host": "10.0.0.1"}]),
    ("port 7\nlistener 8", [{"port": 7}, {"port": 8}]),
    ("listener 0 /run/m.sock", [{"path": "/run/m.sock"}]),
    ("listener 1\nsocket_domain ipv4", [{"host": "0.0.0.0"}]),
    ("listener 1\nallow_anonymous true", [{"anonymous": "yes"}]),
    ("allow_anonymous true\nlistener 1\nlistener 2", [{"anonymous": "yes"}, {"anonymous": "yes"}]),
    (
        "per_listener_settings true\nlistener 1\nallow_anonymous true\nlistener 2\npassword_file p",
        [{"anonymous": "yes"}, {"anonymous": "no", "password_file": "p"}],
    ),
    ("listener 1\nprotocol websockets", [{"protocol": "websocket", "websocket_origins": ["*"]}]),
    ("listener 1\nprotocol websockets\nwebsockets_origin https://a.b", [{"websocket_origins": ["https://a.b"]}]),
    ("listener 1\nmax_connections -1", [{}]),
    ("listener 1\nmax_connections 10\nmax_qos 1", [{"connections_max": 10, "maximum_qos": 1}]),
    (
        "listener 1\ncafile a\ncertfile b\nkeyfile c\nrequire_certificate true\nuse_identity_as_username true",
        [
            {
                "tls_authority": "a", "tls_certificate": "b", "tls_key": "c", "tls_client_certificate": "required",
                "certificate_as_user": "common name",
            }
        ],
    ),
    ("listener 1\nuse_subject_as_username true", [{"certificate_as_user": "subject"}]),
    ("listener 1\nuse_username_as_clientid true", [{"user_as_client_id": True}]),
    ("listener 1\npsk_hint x", []),
    ("auto_id_prefix a-\nlistener 1", [{"assigned_prefix": "a-"}]),
    ("allow_zero_length_clientid false\nlistener 1", [{"empty_client_id": False}]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), LISTENERS)
def test_listeners(tmp_path: Path, text: str, wanted: list[dict[str, Any]]) -> None:
    if wanted:
        made = convert(tmp_path, text).tree["listener"]
    else:
        (tmp_path / "m").write_text(text)
        made = converted(read_conf(str(tmp_path / "m"))).tree["listener"]
    assert len(made) == len(wanted)
    for one, some in zip(made, wanted, strict=True):
        assert some.items() <= one.items()


@pytest.mark.parametrize(
    ("line", "section", "key", "value"),
    [
        ("password_file /p", "auth", "password_file", "/p"),
        ("acl_file /a", "auth", "rules_file", "/a"),
        ("max_packet_size 1000", "mqtt", "packet_bytes_max", 1000),
        ("max_packet_size 20", "mqtt", "packet_bytes_max", 20),
        ("global_max_clients 7", "mqtt", "sessions_max", 7),
        ("max_keepalive 60", "mqtt", "keep_alive_seconds_max", 60),
        ("max_keepalive 0", "mqtt", "topic_levels_max", 201),
        ("sys_interval 0", "sys", "interval_seconds", 0),
        ("max_inflight_messages 5", "mqtt", "inflight_max", 5),
        ("max_inflight_messages 0", "mqtt", "receive_maximum", 65535),
        ("retain_available false", "mqtt", "retain_available", False),
        ("persistent_client_expiration 2d", "mqtt", "session_expiry_seconds_max", 172_800),
    ],
)
def test_options(tmp_path: Path, line: str, section: str, key: str, value: object) -> None:
    assert convert(tmp_path, line).tree[section][key] == value


def test_nothing_is_kept_without_persistence(tmp_path: Path) -> None:
    found = convert(tmp_path, "persistence_location /var/lib/mosquitto/\n")
    assert found.temporary
    assert found.tree["log"]["durability"] == "process"
    found = convert(tmp_path, "persistence true\npersistence_location /var/lib/mosquitto/\n")
    assert not found.temporary
    assert found.tree["data"]["dir"] == "/var/lib/mosquitto/rumq-data"
    assert "durability" not in found.tree["log"]


@pytest.mark.parametrize(
    "line",
    [
        "upgrade_outgoing_qos true",
        "made_up 1",
        "max_queued_messages 10",
        "memory_limit 1000",
        "check_retain_source true",
        "disable_client_cert_date_checks true",
        "message_size_limit 1000",
        "global_max_clients 7",
    ],
)
def test_what_cannot_be_carried_over_is_named(tmp_path: Path, line: str) -> None:
    found = convert(tmp_path, f"listener 1\n{line}\n")
    assert [(each.key, each.number) for each, _ in found.left_out] == [(line.split()[0], 2)]


@pytest.mark.parametrize("key", ["check_retain_source", "upgrade_outgoing_qos", "disable_client_cert_date_checks"])
def test_without_what_rumq_does_not_have_nothing_is_missing(tmp_path: Path, key: str) -> None:
    found = convert(tmp_path, f"listener 1\n{key} false\n")
    assert not found.left_out and [line.key for line, _ in found.idle] == [key]


def test_an_option_with_a_typing_error_is_named_with_what_was_meant(tmp_path: Path) -> None:
    """Also behind a bridge: what mosquitto would not know is not of the bridge."""
    text = "listener 1\nconnection b\naddress 10.0.0.1\nmax_conections 5\nremote_usrname x\nzzz 1\n"
    said = {line.key: why for line, why in convert(tmp_path, text).left_out}
    assert "did you mean max_connections?" in said["max_conections"]
    assert "did you mean remote_username?" in said["remote_usrname"]
    assert said["zzz"] == "rumq knows no such option"
    assert "no topic" in said["connection"] and said["address"] == "of a bridge that is left out"


def test_an_option_of_a_bridge_without_one_is_named(tmp_path: Path) -> None:
    [(line, why)] = convert(tmp_path, "listener 1\nremote_username x\n").left_out
    assert (line.number, why) == (2, "it belongs to a bridge, behind its `connection`")


@pytest.mark.parametrize("key", ["remote_password", "password", "local_password", "bridge_psk", "auth_opt_pass"])
def test_a_secret_is_shown_nowhere(tmp_path: Path, key: str) -> None:
    found = convert(tmp_path, f"listener 1\nconnection b\n{key} hunter2\n")
    shown = [line for line, _ in found.left_out if line.key == key]
    assert [line.shown for line in shown] in ([f"{key} ***"], [])
    with pytest.raises(MosquittoFileError) as refused:
        raise (shown or [OptionLine("f", 1, key, "hunter2")])[0].refused("bad")
    assert "hunter2" not in str(refused.value)
    assert OptionLine("f", 1, "password_file", "/p").shown == "password_file /p"


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = "allow_anonymous maybe\nmax_keepalive x\nlistener x\nmax_qos 3\nlistener 2\nmax_qos 1\nmax_topic_alias -1\n"
    with pytest.raises(ConfigError) as refused:
        convert(tmp_path, text)
    assert [str(fault).split(": ")[0].rpartition(" ")[2] for fault in refused.value.faults] == list("12347")


UNSAFE = [
    "bind_interface eth0",
    "plugin /usr/lib/mosquitto_dynamic_security.so",
    "auth_plugin /usr/lib/x.so",
    "ciphers_tls1.3 TLS_AES_256_GCM_SHA384",
    "enable_proxy_protocol 2",
    "proxy_protocol_v2_require_tls true",
    "psk_hint x",
    "tls_engine pkcs11",
    "tls_keyform engine",
]


def converted_as_it_is(tmp_path: Path, text: str) -> Converted:
    path = tmp_path / "mosquitto.conf"
    path.write_text(text)
    return converted(read_conf(str(path)))


@pytest.mark.parametrize("line", UNSAFE)
def test_what_makes_a_listener_safer_keeps_it_closed_where_rumq_has_it_not(tmp_path: Path, line: str) -> None:
    """Others are opened; and whoever is let in without a name does not change it."""
    text = f"per_listener_settings true\nlistener 1\nallow_anonymous true\n{line}\nlistener 2\nallow_anonymous true\n"
    found = convert(tmp_path, text)
    assert [each["port"] for each in found.tree["listener"]] == [2]
    assert [(each.key, each.number) for each, _ in found.closing] == [(line.split()[0], 4)]
    assert found.closed == ["listener 1"]


@pytest.mark.parametrize(
    "line",
    [
        "ciphers_tls1.3 TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
        "proxy_protocol_v2_require_tls false",
        "tls_keyform pem",
        "plugin /usr/lib/x86_64-linux-gnu/mosquitto_persist_sqlite.so",
    ],
)
def test_what_asks_for_what_is_so_anyway_closes_nothing(tmp_path: Path, line: str) -> None:
    found = convert(tmp_path, f"per_listener_settings true\nlistener 1\n{line}\n")
    assert len(found.tree["listener"]) == 1 and not found.closing and not found.left_out
    assert [each.number for each, _ in found.idle if each.key == line.split()[0]] == [3]


@pytest.mark.parametrize("listeners", ["", "listener 1\n", "listener 1\nallow_anonymous true\nlistener 2\n"])
def test_a_plugin_of_all_listeners_closes_them_all(tmp_path: Path, listeners: str) -> None:
    found = converted_as_it_is(tmp_path, f"plugin x.so\nallow_anonymous true\n{listeners}")
    assert found.tree["listener"] == []
    assert {each.key for each, _ in found.closing} == {"plugin"}


@pytest.mark.parametrize("per_listener", [False, True])
def test_plugins_that_read_files_become_settings(tmp_path: Path, per_listener: bool) -> None:
    """mosquitto 2.1 has its password and ACL files in plugins as well."""
    plugins = (
        "plugin /usr/lib/mosquitto_password_file.so\nplugin_opt_password_file /p\n"
        "plugin /usr/lib/mosquitto_acl_file.so\nplugin_opt_acl_file /a\n"
    )
    text = f"per_listener_settings true\nlistener 1\n{plugins}" if per_listener else f"{plugins}listener 1\n"
    found = convert(tmp_path, text)
    [listener] = found.tree["listener"]
    assert (listener["password_file"], listener["rules_file"]) == ("/p", "/a")
    assert not found.closing and not found.left_out
    assert {"plugin", "plugin_opt_password_file", "plugin_opt_acl_file"} <= {line.key for line in found.carried}
    unnamed = converted_as_it_is(tmp_path, "plugin mosquitto_password_file.so\nlistener 1\n")
    assert unnamed.tree["listener"] == [], "without its file it would let everybody in"


@pytest.mark.parametrize(("told", "wanted"), [("4, 5", ["3.1.1", "5"]), ("5", ["5"]), ("3,4,5", ["3.1", "3.1.1", "5"])])
def test_versions_of_mqtt(tmp_path: Path, told: str, wanted: list[str]) -> None:
    found = convert(tmp_path, f"listener 1\naccept_protocol_versions {told}\n")
    assert found.tree["listener"][0]["mqtt_versions"] == wanted and not found.left_out


def test_connections_of_all_listeners(tmp_path: Path) -> None:
    one = convert(tmp_path, "global_max_connections 9\nlistener 1\nmax_connections 20\n")
    assert one.tree["listener"][0]["connections_max"] == 9 and not one.left_out
    two = convert(tmp_path, "global_max_connections 9\nlistener 1\nmax_connections 5\nlistener 2\n")
    assert [each["connections_max"] for each in two.tree["listener"]] == [5, 9]
    assert [line.key for line, _ in two.left_out] == ["global_max_connections"]


def test_each_of_several_plugins_is_named(tmp_path: Path) -> None:
    found = converted_as_it_is(tmp_path, "plugin a.so\nplugin_opt_x 1\nplugin b.so\n")
    assert [each.value for each, _ in found.closing] == ["a.so", "b.so"]
    assert [each.key for each, _ in found.left_out] == ["plugin_opt_x"]


def test_of_options_that_add_up_each_counts_and_of_others_the_last(tmp_path: Path) -> None:
    origins = "websockets_origin https://a\nwebsockets_origin https://b\n"
    text = f"listener 1\nprotocol websockets\n{origins}max_qos 0\nmax_qos 1\n"
    found = convert(tmp_path, text)
    assert found.tree["listener"][0]["websocket_origins"] == ["https://a", "https://b"]
    assert found.tree["listener"][0]["maximum_qos"] == 1
    assert [(each.number, why) for each, why in found.idle] == [(5, "given again in line 6")]


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    text = (
        "user mosquitto\nlog_dest file /x\nlog_dest syslog\nmax_queued_messages 5\npassword_file p\npid_file x\n"
        "bogus 1\nlistener 1\nmax_qos 1\nhttp_dir x\nlistener 2\nbind_interface lo\nconnection b\naddress h\n"
    )
    found = convert(tmp_path, text)
    told = [
        *found.carried,
        *(line for each in (found.idle, found.left_out, found.closing) for line, _ in each),
    ]
    numbers = {number for number, line in enumerate(text.splitlines(), 1) if line != "listener 2"}
    assert {line.number for line in told} == numbers


@pytest.mark.parametrize(
    "line",
    [
        "listener x",
        "max_qos 3",
        "accept_protocol_versions 6",
        "allow_anonymous maybe",
        "protocol http",
        "max_keepalive x",
    ],
)
def test_a_line_that_mosquitto_would_refuse_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"mosquitto\.conf, line 2"):
        convert(tmp_path, f"listener 1\n{line}\n")


def test_included_files_stand_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "b.conf").write_text("listener 2\n")
    (tmp_path / "conf.d" / "a.conf").write_text("listener 1\n")
    (tmp_path / "conf.d" / "c.txt").write_text("nonsense\n")
    made = convert(tmp_path, f"include_dir {tmp_path}/conf.d\n").tree["listener"]
    assert [one["port"] for one in made] == [1, 2]


@pytest.mark.parametrize("name", ["/usr/share/doc/mosquitto/examples/mosquitto.conf", "/etc/mosquitto/mosquitto.conf"])
def test_debian_s_examples(name: str) -> None:
    if not Path(name).exists():
        pytest.skip("Debian's package mosquitto is not here")
    found = converted(read_conf(name))
    load_settings(tree=(name, found.tree))
    assert not found.left_out


ACL = """
# anonymous clients
topic read public/#
topic deny public/secret

user roger
topic foo/bar
topic write only/write
topic deny foo/bar/no

pattern read device/%c/#
pattern write user/%u/state
"""


@pytest.mark.parametrize(
    ("user", "action", "topic", "allowed"),
    [
        (None, "subscribe", "public/x", True),
        (None, "subscribe", "public/secret", False),
        (None, "publish", "public/x", False),
        ("roger", "subscribe", "public/x", False),
        ("roger", "publish", "foo/bar", True),
        ("roger", "subscribe", "foo/bar", True),
        ("roger", "retain", "foo/bar", True),
        ("roger", "will", "foo/bar", True),
        ("roger", "subscribe", "only/write", False),
        ("roger", "publish", "only/write", True),
        ("roger", "subscribe", "device/c/1", True),
        ("roger", "subscribe", "device/d/1", False),
        ("roger", "publish", "user/roger/state", True),
        (None, "publish", "user//state", False),
        ("ro*", "publish", "foo/bar", False),
    ],
)
def test_acl_files(user: str | None, action: str, topic: str, allowed: bool) -> None:
    permit = parse_acl(ACL, "acl").permit(Identity(user), "c")
    assert permit.may(action, topic) is allowed  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["tpic a", "topic", "user", "topic a#"])
def test_an_acl_file_that_cannot_be_taken_says_where(line: str) -> None:
    with pytest.raises(Exception, match="acl"):
        parse_acl(line, "acl")
