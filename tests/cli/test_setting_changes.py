"""What a reload says has changed, and what it says needs a restart."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from rumq.cli.broker.setting_changes import (
    BOUND_TO_ITS_SOCKET,
    DIRECTORIES,
    FILES,
    OF_A_LISTENER,
    changed_files,
    differences,
    file_digests,
    in_force,
    need_restart,
)
from rumq.config import Log, Mqtt, Settings, Stream
from rumq.config.access import Auth, Flight, Listener


def test_each_key_of_a_listener_is_in_force_at_once_or_bound_to_its_socket() -> None:
    keys = set(Listener.__struct_fields__)
    assert keys == OF_A_LISTENER | BOUND_TO_ITS_SOCKET
    assert not OF_A_LISTENER & BOUND_TO_ITS_SOCKET


def test_each_key_that_names_a_file_is_watched() -> None:
    named = {
        key
        for section in (Listener, Flight, Auth)
        for key in section.__struct_fields__
        if re.search(r"_file$|^tls_(certificate|key|authority|revoked)", key)
    }
    assert named == {*FILES, *DIRECTORIES}


def test_keys_of_further_listeners_are_named_with_their_number() -> None:
    old = Settings(more_listeners=(Listener(port=1884),))
    new = Settings(listener=Listener(maximum_qos=1), more_listeners=(Listener(port=1885, anonymous="no"),))
    changed = list(differences(old, new))
    assert changed == ["listener.maximum_qos", "listener number 2.port", "listener number 2.anonymous"]
    assert need_restart(old, new, changed) == ["listener number 2.port"]


def test_one_listener_more_needs_a_restart() -> None:
    old, new = Settings(), Settings(more_listeners=(Listener(port=1884),))
    assert need_restart(old, new, list(differences(old, new))) == ["listener"]


def test_tls_that_is_switched_on_needs_a_restart() -> None:
    old, new = Settings(), Settings(listener=Listener(tls_certificate="a.pem"))
    assert need_restart(old, new, list(differences(old, new))) == ["listener.tls_certificate"]
    newer = replace(new, listener=Listener(tls_certificate="b.pem"))
    assert need_restart(new, newer, list(differences(new, newer))) == []


def test_in_force_is_what_is_new_without_what_needs_a_restart() -> None:
    old = Settings(more_listeners=(Listener(port=1884), Listener(port=1885)))
    new = Settings(
        listener=Listener(backlog=5, anonymous="no"),
        more_listeners=(Listener(port=1999, rules_file="rules.toml"),),
        auth=Auth(anonymous="no"),
        log=Log(linger_ms=9, hot_bytes_max=1 << 20),
        mqtt=Mqtt(maximum_qos=1, outbox_bytes_max=8192),
        stream=(Stream(topics_max=7, durability="process"),),
    )
    now = in_force(old, new)
    assert now == Settings(
        listener=Listener(anonymous="no"),
        more_listeners=(Listener(port=1884, rules_file="rules.toml"), Listener(port=1885)),
        auth=Auth(anonymous="no"),
        log=Log(linger_ms=9),
        mqtt=Mqtt(maximum_qos=1),
        stream=(Stream(topics_max=7),),
    )
    left = list(differences(now, new))
    assert left == need_restart(now, new, left)


def test_a_listener_that_has_tls_in_one_of_the_two_keeps_all_its_tls_keys() -> None:
    old = Settings(listener=Listener(tls_certificate="a.pem", tls_key="a.key", maximum_qos=2))
    new = Settings(listener=Listener(maximum_qos=1))
    assert in_force(old, new).listener == replace(old.listener, maximum_qos=1)


def test_other_streams_need_a_restart() -> None:
    old, new = Settings(), Settings(stream=(Stream(name="other", topics_max=7),))
    assert in_force(old, new) == old


@pytest.mark.parametrize("key", FILES)
def test_a_file_with_other_content_is_a_changed_key(tmp_path: Path, key: str) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    section = Auth if key in Auth.__struct_fields__ else Listener
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
