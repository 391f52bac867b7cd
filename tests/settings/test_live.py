"""Each key that the table calls live, for new connections, or another listener's: changed in the file of a running
broker, told by the broker as in force, and seen in force where `tests/settings/seen.py` says, or from outside."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.peers.peer import free_port
from rumq.settings.keys import KEYS, STREAM_KEYS, Key
from rumq.settings.types.setting_types import ANOTHER_LISTENER, RESTART
from tests.settings.other_values import other_value
from tests.settings.seen import ALSO, IN_BROKER, IN_FLIGHT, IN_GATEWAY, IN_GRPC, IN_KAFKA
from tests.settings.site import HASH, REPLACED, TLS, Site, rules

ALL: dict[str, Key] = KEYS | {f"stream.{name}": key for name, key in STREAM_KEYS.items()}
LIVE = [name for name, key in ALL.items() if key.applies not in (RESTART, ANOTHER_LISTENER)]
TABLES = {"broker": IN_BROKER, "gateway": IN_GATEWAY, "flight": IN_FLIGHT, "grpc": IN_GRPC, "kafka": IN_KAFKA}
CHANGED_ONLY = {"events.format", "events.level"}  # seen as what they make, which is not called as they are


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.end()


def files(site: Site) -> dict[str, tuple[object, object]]:
    """Key -> the value that it gets, and what is seen of it."""
    rules_file = (site.made("second.toml", rules("second")), [["second"]])
    users = (site.made("ben.users", f"ben:{HASH}\n"), ["ben"])
    tokens = '{"name": "desk", "roles": ["read"], "sha256": "' + 64 * "0" + '"}\n'
    return {
        "auth.password_file": users, "listener.password_file": users, "flight.password_file": users,
        "grpc.password_file": users, "kafka.password_file": users, "kafka.rules_file": rules_file,
        "auth.rules_file": rules_file, "listener.rules_file": rules_file, "flight.rules_file": rules_file,
        "gateway.rules_file": rules_file,
        "gateway.tokens_file": (site.made("tokens", tokens), ["desk"]),
        "trace.headers_file": (site.made("headers", "x-tenant: plant\n"), {"x-tenant": "plant"}),
        "trace.otlp_endpoint": ("http://127.0.0.1:10", "http://127.0.0.1:10"),
        "auth.methods": (["password"], ["password"]), "listener.methods": (["token"], ["token"]),
        "auth.anonymous": ("no", "no"), "listener.anonymous": ("no", "no"), "flight.anonymous": ("no", "no"),
        "grpc.anonymous": ("no", "no"), "kafka.anonymous": ("no", "no"),
        "listener.mqtt_versions": (["5", "3.1"], [3, 5]),
        # A listener has at most what [mqtt] has.
        "listener.receive_maximum": (5, 5), "listener.inflight_max": (5, 5), "listener.subscriptions_max": (5, 5),
        "listener.topic_alias_maximum": (5, 5), "trace.sample_every": (8, 8),
        "log.retention_bytes_max": (128 << 20, 128 << 20), "stream.retention_bytes_max": (128 << 20, 128 << 20),
        "events.level": ("debug", None),
    }  # fmt: skip


def test_it_is_said_of_each_live_key_how_it_is_seen() -> None:
    where = [set(table) for table in TABLES.values()] + [set(FROM_OUTSIDE)]
    assert set().union(*where) == set(LIVE)
    assert sum(map(len, where)) == len(LIVE), "one place for each"
    assert {key for also in ALSO.values() for key in also} <= set(LIVE)


@pytest.mark.parametrize("name", [name for name in LIVE if any(name in table for table in TABLES.values())])
def test_a_change_of_a_live_key_is_in_force_and_is_told(site: Site, name: str) -> None:
    key, process = ALL[name], next(process for process, table in TABLES.items() if name in table)
    if name == "auth.token_keys_file":
        value, expected = site.made("second.keys", 32 * "t"), [str(32 * b"t")]
    else:
        value, expected = files(site).get(name) or (other := other_value(key), other)
    expected = list(expected) if isinstance(expected, tuple) else expected
    before, after = site.first[process][name], site.reload(site.changed((name, 0, value))).get(name)
    if process != "broker":
        after = site.in_force(process, name, lambda found: found != before)
    assert after != before
    if name not in CHANGED_ONLY:
        assert after == expected
        told = site.told()
        wanted = name.replace("stream.", "stream.plant.")
        assert told["event"] == "settings.reloaded" and wanted in told["changed"] and not told["after_restart"]
    for other, also in ALSO.items():
        if name in also:
            assert site.in_force(other, name, lambda found: found == after) != site.first[other][name]


# Seen from outside: a file with a secret that others can read; TLS as a client meets it.


def exposed(site: Site) -> None:
    """A file that others can read is refused, then reported."""
    path = Path(site.base["auth"]["password_file"])
    path.chmod(0o644)
    try:
        site.reload(site.changed(("auth.exposed_files", 0, "warn")))
        assert "auth.exposed_files" in site.told()["changed"]
        assert site.broker.event("secrets.exposed")["path"] == str(path)
        site.reload(site.base)
        assert str(path) in str(site.told()["why"])
    finally:
        path.chmod(0o600)


def greeting(
    site: Site, client: str = "", most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, ciphers: str = ""
) -> tuple[str, str]:
    """(cipher, serial number of the broker's certificate) of a connection; client: its certificate

    raises: OSError where the broker wants no such client"""
    context = ssl.create_default_context(cafile=site.authorities.path("ca"))
    context.check_hostname = False
    context.maximum_version = most
    if ciphers:
        context.set_ciphers(ciphers)
    if client:
        context.load_cert_chain(site.authorities.path(client), site.authorities.path(client, "key"))
    port = next(each["port"] for each in site.broker.named("listener.bound") if each["host"] == "127.0.0.2")
    with socket.create_connection(("127.0.0.2", port), timeout=30) as plain, context.wrap_socket(plain) as sock:
        sock.sendall(bytes.fromhex("101000044d5154540402003c000474657374"))  # CONNECT of "test"
        if not sock.recv(4):
            raise ConnectionResetError("no answer")
        return sock.cipher()[0], str(sock.getpeercert()["serialNumber"])  # type: ignore[index]


def is_refused(site: Site, **how: object) -> bool:
    try:
        greeting(site, **how)  # type: ignore[arg-type]
    except OSError:
        return True
    return False


def tls(site: Site, **values: object) -> None:
    """Change keys of the listener with TLS."""
    site.reload(site.changed(*((f"listener.{name}", TLS, value) for name, value in values.items())))
    told = site.told()
    assert {f"listener number 2.{name}" for name in values} <= {*told["changed"]} and not told["after_restart"]


def certificate(site: Site) -> None:
    """Another certificate is served, which its key alone can."""
    before = greeting(site)
    tls(site, tls_certificate=site.authorities.path("server2"), tls_key=site.authorities.path("server2", "key"))
    assert greeting(site)[1] != before[1]


def client_certificate(site: Site) -> None:
    """A client without one is refused."""
    assert not is_refused(site)
    tls(site, tls_client_certificate="required")
    assert is_refused(site) and not is_refused(site, client="client")


def authority(site: Site) -> None:
    """Clients of the other one are refused, and those of this one are not."""
    assert is_refused(site, client="stranger")
    tls(site, tls_authority=site.authorities.path("other-ca"))
    assert is_refused(site, client="client") and not is_refused(site, client="stranger")


def authority_dir(site: Site) -> None:
    """Clients of an authority in it are accepted as well."""
    folder = site.folder / "authorities"
    folder.mkdir()
    (folder / "other.pem").write_bytes(Path(site.authorities.path("other-ca")).read_bytes())
    os.symlink("other.pem", folder / f"{subject_hash(folder / 'other.pem')}.0")
    assert is_refused(site, client="stranger")
    tls(site, tls_authority_dir=str(folder))
    assert not is_refused(site, client="stranger")


def subject_hash(path: Path) -> str:
    import subprocess

    return subprocess.check_output(["openssl", "x509", "-hash", "-noout", "-in", str(path)], text=True).strip()


def revoked(site: Site) -> None:
    assert not is_refused(site, client="revoked")
    tls(site, tls_revoked=site.authorities.path("crl", "pem"))
    assert is_refused(site, client="revoked") and not is_refused(site, client="client")


def version_min(site: Site) -> None:
    assert not is_refused(site, most=ssl.TLSVersion.TLSv1_2)
    tls(site, tls_version_min="1.3")
    assert is_refused(site, most=ssl.TLSVersion.TLSv1_2)


def ciphers(site: Site) -> None:
    offered = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"
    wanted = "ECDHE-ECDSA-AES128-GCM-SHA256"
    assert greeting(site, most=ssl.TLSVersion.TLSv1_2, ciphers=offered)[0] != wanted
    tls(site, tls_ciphers=wanted)
    assert greeting(site, most=ssl.TLSVersion.TLSv1_2, ciphers=offered)[0] == wanted


def ciphersuites(site: Site) -> None:
    if not hasattr(ssl.SSLContext, "set_ciphersuites"):  # Python 3.15 has it
        site.reload(site.changed(("listener.tls_ciphersuites", TLS, "TLS_AES_128_GCM_SHA256")))
        assert "this Python cannot choose" in site.told()["why"]
        return
    assert greeting(site)[0] != "TLS_AES_128_GCM_SHA256"
    tls(site, tls_ciphersuites="TLS_AES_128_GCM_SHA256")
    assert greeting(site)[0] == "TLS_AES_128_GCM_SHA256"


FROM_OUTSIDE: dict[str, Callable[[Site], None]] = {
    "auth.exposed_files": exposed,
    "listener.tls_certificate": certificate,
    "listener.tls_key": certificate,
    "listener.tls_client_certificate": client_certificate,
    "listener.tls_authority": authority,
    "listener.tls_authority_dir": authority_dir,
    "listener.tls_revoked": revoked,
    "listener.tls_version_min": version_min,
    "listener.tls_ciphers": ciphers,
    "listener.tls_ciphersuites": ciphersuites,
}


@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_a_change_of_a_live_key_is_met_by_a_client(site: Site, name: str) -> None:
    try:
        FROM_OUTSIDE[name](site)
    finally:
        site.reload(site.base)


@pytest.mark.parametrize("name", [name for name, key in KEYS.items() if key.applies == ANOTHER_LISTENER])
def test_a_change_of_a_listener_s_address_is_another_listener(site: Site, name: str, tmp_path: Path) -> None:
    value = {"host": "127.0.0.4", "port": free_port(), "path": f"{tmp_path}/s", "protocol": "websocket"}
    bound, removed = (len(site.broker.named(f"listener.{what}")) for what in ("bound", "removed"))
    site.reload(site.changed((name, REPLACED, value[name.partition(".")[2]])))
    assert "listener" in site.told()["changed"] and not site.told()["after_restart"]
    assert len(site.broker.named("listener.bound")) == bound + 1
    assert len(site.broker.named("listener.removed")) == removed + 1
    site.reload(site.base)


def valid_others(site: Site) -> dict[str, object]:
    """Of keys for which not every other value is."""
    own = site.authorities
    tls = {"tls_certificate": own.path("server"), "tls_key": own.path("server", "key")}
    return {
        "cluster.name": "c", "cluster.node": "n", "cluster.etcd": ("http://127.0.0.1:9",),
        "listener.proxies": ("10.0.0.0/8",), "listener.mount_point": "site-7/", "stream.filters": ("pump/#",),
        "gateway.cors_origins": ("https://app.example",), "gateway.port": 8080, "flight.port": 8815,
        "flight.tls_authority": own.path("ca"), "grpc.port": 8820, "grpc.tls_authority": own.path("ca"),
        "kafka.port": 9092, "kafka.tls_authority": own.path("ca"), "kafka.advertised": "broker.example:9092",
        **{f"{section}.{key}": path for section in ("flight", "gateway", "grpc", "kafka") for key, path in tls.items()},
    }  # fmt: skip


@pytest.mark.parametrize("is_cluster", [False, True], ids=["a broker", "a node"])
def test_keys_that_need_a_restart_are_told_as_such_until_there_is_one(site: Site, is_cluster: bool) -> None:
    """Those of a cluster by themselves: they are bound to each other."""
    names = [name for name, key in ALL.items() if key.applies == RESTART]
    wanted = {name for name in names if name.startswith("cluster.") == is_cluster}
    wanted -= {"stream.name", "queues.enabled"}  # these change which streams there are
    others = valid_others(site)
    changes = [(name, 0, others.get(name, other_of(site, name))) for name in wanted]
    # A mount point is refused without them.
    rules_files = [
        (f"{section}.rules_file", 0, site.base["auth"]["rules_file"]) for section in ("flight", "gateway", "kafka")
    ]
    tree = site.changed(*rules_files, *changes)
    now = site.reload(tree)
    told = site.told()
    assert told["event"] == "settings.reloaded", told.get("why")
    assert {key.replace("stream.plant.", "stream.") for key in told["after_restart"]} >= wanted
    assert not {key.replace("stream.plant.", "stream.") for key in told["changed"]} & wanted
    assert now == site.first["broker"], "nothing of it is in force"
    site.reload(tree)
    assert site.told()["after_restart"] == told["after_restart"] and not site.told()["changed"], "still"
    site.reload(site.base)
    assert site.told()["after_restart"] == [], "what was taken back waits for nothing"


def test_other_views_of_kafka_need_a_restart(site: Site) -> None:
    changed = site.changed()
    changed["kafka.view"] = [{"name": "plants", "filter": "plant/#", "stream": "plant"}]
    site.reload(changed)
    assert site.told()["after_restart"] == ["kafka.view"]
    site.reload(site.base)


def test_other_streams_need_a_restart(site: Site) -> None:
    site.reload(site.changed(("stream.name", 0, "pumps")))
    assert site.told()["after_restart"] == ["stream"]
    site.reload(site.base)


def other_of(site: Site, name: str) -> object:
    section, _, last = name.partition(".")
    known = site.base.get(section) or {}
    return other_value(ALL[name], (known[0] if isinstance(known, list) else known).get(last))


def test_queues_that_are_turned_on_wait_for_a_restart_with_their_streams(site: Site) -> None:
    site.reload(site.changed(("queues.enabled", 0, True)))
    assert {"queues.enabled", "stream"} <= set(site.told()["after_restart"])
    assert not {"queues.enabled", "stream"} & set(site.told()["changed"])
    site.reload(site.base)
