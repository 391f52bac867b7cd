"""What a reload says has changed, and what it says needs a restart."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from rumq.process.listeners.gateway_listener import with_gateway
from rumq.process.listeners.listener_changes import Pair, paired, removed
from rumq.process.listeners.setting_changes import (
    DIRECTORIES,
    FILES,
    changed_files,
    differences,
    file_digests,
    in_force,
    need_restart,
    sections_before,
)
from rumq.settings.table import Auth, Data, Flight, Listener, Log, Mqtt, Settings, Stream
from rumq.settings.table.cluster import Cluster
from rumq.settings.table.gateway import Gateway
from rumq.settings.table.trace import Trace


def test_each_key_that_names_a_file_is_watched() -> None:
    named = {
        key
        for section in (Listener, Flight, Auth, Trace)
        for key in section.__struct_fields__
        if re.search(r"_file$|^tls_(certificate|key|authority|revoked)", key)
    }
    assert named == {*FILES, *DIRECTORIES}


def test_keys_of_further_listeners_are_named_with_their_number() -> None:
    old = Settings(more_listeners=(Listener(port=1884),))
    new = Settings(listener=Listener(maximum_qos=1), more_listeners=(Listener(port=1884, backlog=9, anonymous="no"),))
    changed = list(differences(old, new))
    assert changed == ["listener.maximum_qos", "listener number 2.backlog", "listener number 2.anonymous"]
    assert need_restart(old, new, changed) == ["listener number 2.backlog"]


@pytest.mark.parametrize(
    "listeners",
    [
        (),
        (Listener(port=1884), Listener(port=1885)),
        (Listener(port=1885),),
        (Listener(host="10.0.0.1", port=1884),),
        (Listener(port=1884, protocol="websocket"),),
        (Listener(port=1884, tls_certificate="a.pem"),),
        (Listener(path="/run/mqtt.sock"),),
    ],
    ids=["fewer", "more", "port", "host", "protocol", "TLS", "path"],
)
def test_listeners_come_and_go_without_a_restart_but_on_a_node(listeners: tuple[Listener, ...]) -> None:
    old, new = Settings(more_listeners=(Listener(port=1884),)), Settings(more_listeners=listeners)
    changed = list(differences(old, new))
    assert changed == ["listener"] and need_restart(old, new, changed) == []
    assert in_force(old, new) == new
    node = replace(old, cluster=Cluster(name="plant"))
    assert need_restart(node, new, list(differences(node, new))) == ["listener", "cluster.name"]
    assert in_force(node, new) == node


def test_a_listener_is_the_same_wherever_it_stands() -> None:
    old = Settings(listener=Listener(port=1), more_listeners=(Listener(port=2), Listener(port=3), Listener(port=2)))
    new = Settings(
        listener=Listener(port=2, maximum_qos=0),
        more_listeners=(Listener(port=4), Listener(port=1), Listener(port=2)),
    )
    assert paired(old, new) == [Pair(1, 0), Pair(None, 1), Pair(0, 2), Pair(3, 3)]
    assert removed(old, paired(old, new)) == [2]
    assert list(differences(old, new)) == ["listener", "listener.maximum_qos"]
    assert sections_before(paired(old, new)) == {
        "listener": "listener number 2",
        "listener number 2": "",
        "listener number 3": "listener",
        "listener number 4": "listener number 4",
    }


def test_the_gateways_own_listener_comes_and_goes_with_the_gateway(tmp_path: Path) -> None:
    """Which is at a start of the broker: a reload neither takes its socket away nor opens one for nobody."""
    without = Settings(data=Data(dir=str(tmp_path)))
    with_one = with_gateway(replace(without, gateway=Gateway(port=8080)))
    assert paired(without, with_one) == [Pair(0, 0)]
    assert paired(with_one, without) == [Pair(0, 0), Pair(1, None)]
    assert in_force(with_one, without).listeners == with_one.listeners


def test_a_file_of_a_listener_that_has_moved_is_compared_with_itself(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    a, b = (Listener(port=n, password_file=str(tmp_path / name)) for n, name in enumerate("ab"))
    old, new = Settings(listener=a, more_listeners=(b,)), Settings(listener=b, more_listeners=(a,))
    before, moved = file_digests(old), sections_before(paired(old, new))
    assert changed_files(before, file_digests(new), moved) == []
    (tmp_path / "b").write_text("other users")
    assert changed_files(before, file_digests(new), moved) == ["listener.password_file"]


def test_in_force_is_what_is_new_without_what_needs_a_restart() -> None:
    old = Settings(more_listeners=(Listener(port=1884), Listener(port=1885)))
    new = Settings(
        listener=Listener(backlog=5, anonymous="no"),
        more_listeners=(Listener(port=1999), Listener(port=1884, path_mode="600", rules_file="rules.toml")),
        auth=Auth(anonymous="no"),
        log=Log(linger_ms=9, hot_bytes_max=1 << 20),
        mqtt=Mqtt(maximum_qos=1, outbox_bytes_max=8192),
        stream=(Stream(topics_max=7, durability="process"),),
    )
    now = in_force(old, new)
    assert now == Settings(
        listener=Listener(anonymous="no"),
        more_listeners=(Listener(port=1999), Listener(port=1884, rules_file="rules.toml")),
        auth=Auth(anonymous="no"),
        log=Log(linger_ms=9),
        mqtt=Mqtt(maximum_qos=1),
        stream=(Stream(topics_max=7),),
    )
    left = list(differences(now, new))
    assert left == need_restart(now, new, left)


def test_other_streams_need_a_restart() -> None:
    old, new = Settings(), Settings(stream=(Stream(name="other", topics_max=7),))
    assert in_force(old, new) == old


@pytest.mark.parametrize("key", FILES)
def test_a_file_with_other_content_is_a_changed_key(tmp_path: Path, key: str) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    section = next(each for each in (Auth, Trace, Listener) if key in each.__struct_fields__)
    settings = Settings(**{section.__name__.lower(): section(**{key: str(path)})})
    before = file_digests(settings)
    assert changed_files(before, file_digests(settings)) == []
    path.write_text("after")
    assert changed_files(before, file_digests(settings)) == [f"{section.__name__.lower()}.{key}"]


def test_a_directory_of_authorities_has_changed_with_a_file_in_it(tmp_path: Path) -> None:
    settings = Settings(listener=Listener(tls_authority_dir=str(tmp_path)))
    before = file_digests(settings)
    (tmp_path / "12345678.0").write_text("one more")
    assert changed_files(before, file_digests(settings)) == ["listener.tls_authority_dir"]
