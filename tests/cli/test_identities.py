"""Tokens, another server's word and SCRAM, at a running broker."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from rumq.auth.credentials import hashes
from rumq.auth.credentials.files import replace
from tests.auth.credentials.test_scram import PASSWORD, SALT, Talk
from tests.broker_process import Rumqd
from tests.cli.test_users import answer
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Packet, Prop

SECRET = "thirty-two bytes of secret, at least"
METHOD = "SCRAM-SHA-256"


class Knows(http.server.BaseHTTPRequestHandler):
    """Lets carol in, and nobody else."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = asked["username"] == "carol" and asked["password"] == "c"
        body = json.dumps({"allow": True, "user": "carol", "groups": ["ops"]}).encode() if known else b""
        self.send_response(200 if known else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def knows() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Knows) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, knows: str) -> Iterator[Rumqd]:
    folder = tmp_path_factory.mktemp("broker")
    replace(str(folder / "users"), f"user:{hashes.scram(PASSWORD, SALT, 4096)}\n")
    replace(str(folder / "keys"), SECRET)
    (folder / "rules.toml").write_text('[[rule]]\ngroups = ["ops"]\nallow = ["publish"]\ntopics = ["#"]\n')
    config = folder / "config.toml"
    config.write_text(
        f'[auth]\npassword_file = "{folder}/users"\ntoken_keys_file = "{folder}/keys"\nhttp_url = "{knows}"\n'
        f'rules_file = "{folder}/rules.toml"\nguess_seconds_max = 0.0\n[shards]\ncount = {request.param}\n'
    )
    broker = Rumqd(folder / "data", "--config", str(config))
    broker.start()
    yield broker
    broker.end()


def token(**claims: object) -> bytes:
    return jwt.encode({"sub": "alice"} | claims, SECRET, "HS256").encode()


def test_a_token_lets_in_with_its_groups(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    assert peer.connect("t1", username="x", password=token(groups=["ops"])).code == 0
    assert peer.publish("a", b"", 1) in (0, 0x10)
    other = Peer(broker.address)
    assert other.connect("t2", username="x", password=token()).code == 0
    assert other.publish("a", b"", 1) == 0x87


def test_a_connection_ends_with_its_token(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    assert peer.connect("t3", password=token(exp=time.time() + 0.5), username="x").code == 0
    # RFC 7519 lets a clock be off a little when a token is shown; the end of a connection is the token's own.
    peer.expect_refusal(0x87)


@pytest.mark.parametrize("version", [4, 5])
def test_paho_comes_in_with_a_token_or_by_another_servers_word(broker: Rumqd, version: int) -> None:
    assert answer(broker.address, "x", token().decode(), version, client_id="paho-1") == "Success"
    assert answer(broker.address, "carol", "c", version, client_id="paho-2") == "Success"
    assert answer(broker.address, "carol", "d", version, client_id="paho-2") == "Bad user name or password"
    assert answer(broker.address, "x", token(exp=1).decode(), version, client_id="paho-1") == "Not authorized"


def test_an_expired_token_does_not_let_in(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    assert peer.connect("t4", password=token(exp=1), username="x").code == 0x87


def test_another_server_is_asked(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    assert peer.connect("h1", username="carol", password=b"c").code == 0
    assert peer.publish("a", b"", 1) in (0, 0x10)
    assert Peer(broker.address).connect("h2", username="dave", password=b"c").code == 0x86


def test_the_password_of_a_scram_user_is_good_as_a_password_too(broker: Rumqd) -> None:
    assert Peer(broker.address).connect("s0", username="user", password=PASSWORD).code == 0


def auth(reason: int, data: bytes) -> bytes:
    return wire.auth(reason, [(Prop.AUTH_METHOD, METHOD), (Prop.AUTH_DATA, data)])


def data_of(packet: Packet) -> bytes:
    found = dict(packet.properties)
    assert found[Prop.AUTH_METHOD] == METHOD
    data: bytes = found[Prop.AUTH_DATA]
    return data


def challenge_of(packet: Packet) -> bytes:
    """The data of an AUTH of the broker, which has nothing else in it that could make it too large."""
    assert {number for number, _ in packet.properties} == {Prop.AUTH_METHOD, Prop.AUTH_DATA}
    return data_of(packet)


def scram_connect(peer: Peer, client_id: str, password: bytes = PASSWORD) -> Packet:
    talk = Talk()
    peer.send(wire.connect(client_id, properties=[(Prop.AUTH_METHOD, METHOD), (Prop.AUTH_DATA, talk.first)]))
    challenge = peer.expect(Kind.AUTH)
    assert challenge.code == 0x18
    peer.send(auth(0x18, talk.answer(challenge_of(challenge).decode(), password)))
    return peer.receive()


def test_scram(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    connack = scram_connect(peer, "s1")
    assert (connack.kind, connack.code) == (Kind.CONNACK, 0)
    assert data_of(connack).startswith(b"v=")
    assert peer.publish("a", b"", 1) == 0x87  # it is in, and the rules hold


def test_scram_with_the_wrong_password(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    assert scram_connect(peer, "s2", b"guess").code == 0x86
    assert peer.rest_until_end() == []


def test_a_client_can_show_again_who_it_is(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    scram_connect(peer, "s3")
    talk = Talk()
    peer.send(auth(0x19, talk.first))
    offer = data_of(peer.expect(Kind.AUTH)).decode()
    peer.publish("a", b"in between", 0)
    peer.send(auth(0x18, talk.answer(offer)))
    done = peer.expect(Kind.AUTH)
    assert done.code == 0
    assert data_of(done).startswith(b"v=")
    peer.expect_silence()
    peer.send(auth(0x19, talk.first))
    offer = data_of(peer.expect(Kind.AUTH)).decode()
    peer.send(auth(0x18, talk.answer(offer, b"guess")))
    peer.expect_refusal(0x87)


def test_a_client_keeps_its_method_when_it_shows_again_who_it_is(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    scram_connect(peer, "s7")
    peer.send(wire.auth(0x19, [(Prop.AUTH_METHOD, "SCRAM-SHA-1"), (Prop.AUTH_DATA, Talk().first)]))
    peer.expect_refusal(0x82)


@pytest.mark.parametrize(("method", "code"), [("GS2-KRB5", 0x8C), (METHOD, 0x87)])
def test_what_cannot_be_answered_is_refused(broker: Rumqd, method: str, code: int) -> None:
    peer = Peer(broker.address)
    assert peer.connect("s4", properties=[(Prop.AUTH_METHOD, method), (Prop.AUTH_DATA, b"nonsense")]).code == code


def test_auth_where_nothing_was_asked_is_refused(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    scram_connect(peer, "s5")
    peer.send(auth(0x18, b""))
    peer.expect_refusal(0x82)


def test_only_auth_is_taken_in_the_middle_of_it(broker: Rumqd) -> None:
    peer = Peer(broker.address)
    peer.send(wire.connect("s6", properties=[(Prop.AUTH_METHOD, METHOD), (Prop.AUTH_DATA, Talk().first)]))
    peer.expect(Kind.AUTH)
    peer.send(wire.PINGREQ)
    assert peer.receive().code == 0x82


def test_no_secret_is_ever_told(broker: Rumqd, tmp_path: Path) -> None:
    Peer(broker.address).connect("n1", username="user", password=b"super secret")
    Peer(broker.address).connect("n2", username="x", password=token(exp=1))
    said = json.dumps(broker.events)
    for secret in ("super secret", token(exp=1).decode(), SECRET, PASSWORD.decode()):
        assert secret not in said
