"""Logins over sockets: PLAIN and SCRAM, certificates, rules, and guesses that are refused."""

import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import trustme

from rumq.auth.credentials import hashes
from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.credentials.certificates import Certificates
from rumq.auth.credentials.passwords import Passwords
from rumq.auth.credentials.scram import Scram
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.identity import Identity
from rumq.auth.rules import parse
from rumq.client.login.scram import ScramLogin
from tests.kafka.decoded import batches
from tests.kafka.served import Served, served
from tests.kafka.wire_client import WireClient, frame_of
from tests.tries import tries

USERS = {name: hashes.scram(b"secret", b"salt of " + name.encode(), 4096) for name in ("anna", "ben", "carl")}
RULES = parse(
    """
[[rule]]
users = ["anna"]
allow = ["subscribe", "replay"]
topics = ["#"]
[[rule]]
users = ["ben"]
allow = ["subscribe", "replay"]
topics = ["plant/2/#"]
""",
    "rules.toml",
)
NAMES = {"topics": None}


def authenticator(*, anonymous: bool = False) -> Authenticator:
    methods = [Passwords(USERS, VerificationCache(300.0), bytes(32))]
    return Authenticator(methods, anonymous=anonymous, enhanced=[Scram(USERS, bytes(32))])


def plain(client: WireClient, user: str, password: str, version: int = 1) -> dict[str, Any]:
    assert client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})["error_code"] == 0
    return client.ask("SaslAuthenticate", version, {"auth_bytes": f"\0{user}\0{password}".encode()})


def scram(client: WireClient, user: str, password: str) -> dict[str, Any]:
    assert client.ask("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-256"})["error_code"] == 0
    login = ScramLogin(user, password)
    challenge = client.ask("SaslAuthenticate", 1, {"auth_bytes": login.first()})
    assert challenge["error_code"] == 0
    found = client.ask("SaslAuthenticate", 1, {"auth_bytes": login.answer(challenge["auth_bytes"])})
    if not found["error_code"]:
        login.finish(found["auth_bytes"])
    return found


def names(client: WireClient) -> list[str]:
    return [each["name"] for each in client.ask("Metadata", 1, NAMES)["topics"]]


LOGINS = [plain, scram]


@pytest.mark.parametrize("login", LOGINS)
def test_a_user_is_shown_what_its_rules_allow(login: Callable[..., dict[str, Any]], root: str) -> None:
    with served(root, authenticator(), RULES) as here:
        anna, ben, carl = (WireClient(here.port) for _ in range(3))
        for client, user in ((anna, "anna"), (ben, "ben"), (carl, "carl")):
            assert login(client, user, "secret")["error_code"] == 0
        assert names(anna) == ["main", "two", "none"] and names(ben) == ["main", "two"] and names(carl) == []
        [all_of_ben] = batches(ben.fetch("main", 0, bytes_max=1)["records"])[:1]
        assert [(each.offset, each.key) for each in all_of_ben.records] == [(2, b"plant/2/temp")]
        assert len([each for batch in batches(anna.fetch("main", 0)["records"]) for each in batch.records]) == 300
        for client, topic in ((ben, "none"), (carl, "main"), (carl, "nope")):
            assert client.fetch(topic, 0)["error_code"] == 29  # whether there is one is not told


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize(("user", "password"), [("anna", "wrong"), ("nobody", "secret"), ("anna", "")])
def test_a_wrong_login_is_told_counted_and_ends_the_connection(
    login: Callable[..., dict[str, Any]], user: str, password: str, root: str
) -> None:
    with served(root, authenticator()) as here:
        client = WireClient(here.port)
        found = login(client, user, password)
        assert found["error_code"] == 58 and found["error_message"]
        assert "secret" not in found["error_message"]
        assert client.frame() == b""
        assert here.server.door.figures.refused_logins == 1 and here.told("kafka.refused")


def test_without_a_login_nothing_is_told(root: str) -> None:
    with served(root, authenticator()) as here:
        client = WireClient(here.port)
        assert client.ask("ApiVersions", 0, {})["error_code"] == 0
        client.send("Metadata", 1, NAMES)
        assert client.frame() == b""
        early = WireClient(here.port)
        assert early.ask("SaslAuthenticate", 1, {"auth_bytes": b"\0anna\0secret"})["error_code"] == 34


def test_other_mechanisms_are_refused_with_those_that_there_are(root: str) -> None:
    with served(root, authenticator()) as here:
        for mechanism in ("SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"):
            found = WireClient(here.port).ask("SaslHandshake", 1, {"mechanism": mechanism})
            assert (found["error_code"], found["mechanisms"]) == (33, ["PLAIN", "SCRAM-SHA-256"])


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0anna", b"\0anna\0secret\0", b"ben\0anna\0secret", b"\0an:na\0secret", b"\0\xff\0secret"]
)
def test_a_malformed_plain_is_refused(data: bytes, root: str) -> None:
    with served(root, authenticator()) as here:
        client = WireClient(here.port)
        client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        assert client.ask("SaslAuthenticate", 1, {"auth_bytes": data})["error_code"] == 58


@pytest.mark.parametrize("data", [b"", b"n,,", b"p=tls-unique,,n=anna,r=x", b"n,,n=anna,r=" + b"x" * 5000, b"\xff"])
def test_a_malformed_scram_is_refused(data: bytes, root: str) -> None:
    with served(root, authenticator()) as here:
        client = WireClient(here.port)
        client.ask("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-256"})
        assert client.ask("SaslAuthenticate", 1, {"auth_bytes": data})["error_code"] == 58


def test_the_first_version_of_a_handshake_takes_the_message_alone(root: str) -> None:
    with served(root, authenticator()) as here:
        client = WireClient(here.port)
        client.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
        data = b"\0anna\0secret"
        client.sock.sendall(len(data).to_bytes(4, "big") + data)
        assert client.frame() == b""  # four bytes of length: an empty message
        assert names(client) == ["main", "two", "none"]


def test_a_login_of_another_user_is_none(root: str) -> None:
    with served(root, authenticator(), RULES) as here:
        client = WireClient(here.port)
        plain(client, "ben", "secret")
        assert plain(client, "ben", "secret")["error_code"] == 0
        assert plain(client, "anna", "secret")["error_code"] == 58


def test_other_rules_end_connections_and_hold_from_then_on(root: str) -> None:
    with served(root, authenticator(), RULES) as here:
        ben = WireClient(here.port)
        plain(ben, "ben", "secret")
        logins = here.server.door.logins
        logins.replace_rules(authenticator(), parse("", "rules.toml"))
        here.call(here.server.end_all)
        assert ben.frame() == b""
        again = WireClient(here.port)
        assert plain(again, "ben", "secret")["error_code"] == 0 and names(again) == []


class TokenLogin:
    """Every password is a token that is good until then."""

    name = "token"

    def __init__(self, expires_us: int) -> None:
        self._expires_us = expires_us

    def check(self, credentials: Any) -> Any:
        return Identity(credentials.username, method="token", expires_us=self._expires_us)
        yield


def test_a_token_that_expires_ends_the_connection(root: str) -> None:
    now = [1_000_000]
    with served(root, Authenticator([TokenLogin(61_000_000)]), now_us=lambda: now[0]) as here:
        client = WireClient(here.port)
        assert plain(client, "anna", "token")["session_lifetime_ms"] == 60_000
        assert names(client)
        now[0] = 61_000_000
        client.send("Metadata", 1, NAMES)
        assert client.frame() == b"" and "expired" in here.told("kafka.ended")[0]["why"]


class Tls:
    """An authority, and contexts of a server that asks for certificates, and of clients."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._authority.issue_cert("127.0.0.1").configure_cert(self.server)
        self._authority.configure_trust(self.server)
        self.server.verify_mode = ssl.CERT_REQUIRED

    def client(self, port: int, common_name: str = "") -> WireClient:
        context = ssl.create_default_context()
        self._authority.configure_trust(context)
        if common_name:
            self._authority.issue_cert("client.invalid", common_name=common_name).configure_cert(context)
        sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        return WireClient(port, context.wrap_socket(sock, server_hostname="127.0.0.1"))


def test_a_certificate_is_a_login(root: str) -> None:
    tls = Tls()
    with served(root, Authenticator([Certificates("common name")]), RULES, tls=tls.server) as here:
        assert names(tls.client(here.port, "ben")) == ["main", "two"]
        assert names(tls.client(here.port, "anna")) == ["main", "two", "none"]
        assert is_refused(tls, here)


def is_refused(tls: Tls, here: Served) -> bool:
    """Without a certificate, and without TLS."""
    try:
        without = tls.client(here.port)
        without.sock.sendall(frame_of("Metadata", 1, NAMES))
        assert without.frame() == b""
    except ssl.SSLError:
        pass
    in_the_clear = WireClient(here.port)
    in_the_clear.sock.sendall(frame_of("Metadata", 1, NAMES))
    return b"main" not in in_the_clear.frame()


class GroupLogin:
    """Every password is a token, of whoever is in these groups."""

    name = "token"
    groups = frozenset({"all"})

    def check(self, credentials: Any) -> Any:
        return Identity(credentials.username, method="token", groups=self.groups)
        yield


def test_a_repeated_login_with_fewer_rights_has_only_these(root: str) -> None:
    """Whatever the connection knows of topics and of fetches that found nothing."""
    rules = parse(
        """
        [[rule]]
        groups = ["all"]
        allow = ["subscribe", "replay"]
        topics = ["#"]
        [[rule]]
        groups = ["some"]
        allow = ["subscribe", "replay"]
        topics = ["plant/2/#"]
        """,
        "rules.toml",
    )
    login = GroupLogin()
    with served(root, Authenticator([login]), rules) as here:
        client = WireClient(here.port)
        assert plain(client, "anna", "token")["error_code"] == 0
        shown = batches(client.fetch("main", 0)["records"])
        assert len([each for batch in shown for each in batch.records]) == 300
        assert client.fetch("none", 300, max_wait_ms=100)["error_code"] == 0
        login.groups = frozenset({"some"})
        assert plain(client, "anna", "token")["error_code"] == 0
        shown = batches(client.fetch("main", 0)["records"])
        assert {each.key.split(b"/")[1] for batch in shown for each in batch.records} == {b"2"}
        assert client.fetch("two", 300, max_wait_ms=100)["error_code"] == 0
        assert any(here.call(len, here.server.parked) for _ in tries())
        assert client.fetch("none", 300, max_wait_ms=100)["error_code"] == 29
