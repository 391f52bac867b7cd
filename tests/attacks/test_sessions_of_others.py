"""A client says somebody else's client id: it gets nothing of that session, and ends nothing of it.

The attack: connect as another user, without a name or through another mount point, with the client id of a session that
has messages in flight and waiting, a subscription and a will; with and without clean start."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Address, Peer
from tests.conformance.wire import Prop, Will

LASTING = [(Prop.SESSION_EXPIRY, 1000), (Prop.RECEIVE_MAXIMUM, 1)]
USERS = ("alice", "bob")
# Listener, user: who else could say alice's client id.
STRANGERS = {
    "another user": ("users", "bob"),
    "nobody": ("open", None),
    "nobody who says to be her": ("open", "alice"),
    "another mount point": ("site-7", None),
    "her name at a mount point": ("site-8", "alice"),
}
Join = Callable[..., Peer]


def users_in(folder: Path) -> Path:
    path = folder / "users"
    for number, user in enumerate(USERS):
        flags = ["-c"] if not number else []
        subprocess.run(
            [sys.executable, "-m", "rumq", "passwd", *flags, "-b", "-H", "sha512-pbkdf2", str(path), user, user],
            check=True,
        )
    return path


def config_in(folder: Path, shards: int) -> Path:
    """Listeners: users, users once more, open, site-7 (open), site-8 (users)."""
    users, config = users_in(folder), folder / "config.toml"
    own = f'[[listener]]\nhost = "127.0.0.1"\nport = 0\npassword_file = "{users}"\n'
    everybody = '[[listener]]\nhost = "127.0.0.1"\nport = 0\nanonymous = "yes"\n'
    config.write_text(
        f'shards.count = {shards}\n{own}{own}{everybody}{everybody}mount_point = "site-7/"\n'
        f'{own}mount_point = "site-8/"\n'
    )
    return config


def addresses(broker: Rumqd) -> dict[str, Address]:
    names = ["users", "again", "open", "site-7", "site-8"]
    broker.event("listener.bound", number=len(names))
    return {
        name: ("127.0.0.1", bound["port"]) for name, bound in zip(names, broker.named("listener.bound"), strict=True)
    }


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    folder = tmp_path_factory.mktemp("broker")
    broker = Rumqd(folder / "data", "--config", str(config_in(folder, request.param)))
    broker.start()
    yield broker
    broker.end()


@pytest.fixture
def join(broker: Rumqd) -> Iterator[Join]:
    peers: list[Peer] = []

    def call(listener: str, user: str | None, client_id: str, **fields: Any) -> Peer:
        peer = Peer(addresses(broker)[listener], fields.pop("version", 5))
        peers.append(peer)
        if user is not None:
            fields |= {"username": user, "password": user.encode()}
        assert peer.connect(client_id, **fields).code == 0
        return peer

    yield call
    for peer in peers:
        peer.close()


def leave_a_session(join: Join, client_id: str, topic: str) -> None:
    """Alice's, with one message in flight and one that waits."""
    alice = join("users", "alice", client_id, properties=LASTING)
    alice.subscribe(topic, qos=1)
    publisher = join("users", "alice", f"{client_id}-publisher")
    publisher.publish(topic, b"in flight", 1)
    publisher.publish(topic, b"waiting", 1)
    assert alice.message(ack=False).payload == b"in flight"
    alice.leave()


def expect_her_session(join: Join, client_id: str) -> None:
    alice = join("users", "alice", client_id, clean=False, properties=LASTING)
    assert alice.connack.session_present
    first, second = alice.messages(2)
    assert (first.payload, first.dup, second.payload) == (b"in flight", True, b"waiting")


@pytest.mark.parametrize("clean", [False, True], ids=["resume", "clean start"])
@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_session_is_its_owners(join: Join, stranger: str, clean: bool) -> None:
    listener, user = STRANGERS[stranger]
    client_id = f"pump-{stranger}-{clean}".replace(" ", "-")
    leave_a_session(join, client_id, f"x/{client_id}")
    other = join(listener, user, client_id, clean=clean, properties=LASTING)
    assert not other.connack.session_present
    other.expect_silence()
    other.leave()
    expect_her_session(join, client_id)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_connection_is_not_taken_over_by_others(join: Join, stranger: str) -> None:
    listener, user = STRANGERS[stranger]
    client_id = f"live-{stranger}".replace(" ", "-")
    alice = join("users", "alice", client_id, will=Will(f"gone/{client_id}"))
    watcher = join("users", "bob", f"{client_id}-watcher")
    watcher.subscribe(f"gone/{client_id}")
    join(listener, user, client_id)
    join(listener, user, client_id, clean=False, version=4)
    alice.expect_silence()
    watcher.expect_silence()


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_will_that_waits_is_not_sent_because_of_others(join: Join, stranger: str) -> None:
    listener, user = STRANGERS[stranger]
    client_id = f"will-{stranger}".replace(" ", "-")
    will = Will(f"gone/{client_id}", properties=[(Prop.WILL_DELAY, 500)])
    join("users", "alice", client_id, properties=LASTING, will=will).reset()
    watcher = join("users", "bob", f"{client_id}-watcher")
    watcher.subscribe(f"gone/{client_id}")
    join(listener, user, client_id).leave()
    watcher.expect_silence()


def test_the_owner_takes_its_connection_over_through_any_listener_of_its_mount_point(join: Join) -> None:
    first = join("users", "alice", "roaming", properties=LASTING)
    second = join("again", "alice", "roaming", clean=False, properties=LASTING)
    assert second.connack.session_present
    first.expect_refusal(0x8E)


def test_names_that_nobody_has_checked_are_one_owner(join: Join) -> None:
    """On a listener that lets everybody in, a client that says another name is the same client."""
    first = join("open", "ann", "unchecked", properties=LASTING)
    second = join("open", "ben", "unchecked", clean=False, properties=LASTING)
    assert second.connack.session_present
    first.expect_refusal(0x8E)


@pytest.mark.parametrize("shards", [1, 2])
def test_owners_outlive_the_broker(tmp_path: Path, shards: int) -> None:
    """Alice's, bob's and a tenant's session with one client id, each with an inbound QoS 2 message half done."""
    broker = Rumqd(tmp_path / "data", "--config", str(config_in(tmp_path, shards)))
    broker.start()
    owners = [("users", "alice"), ("users", "bob"), ("site-7", None)]

    def connect(listener: str, user: str | None) -> Peer:
        peer = Peer(addresses(broker)[listener])
        fields: Any = {} if user is None else {"username": user, "password": user.encode()}
        assert peer.connect("same", clean=False, properties=[(Prop.SESSION_EXPIRY, 1000)], **fields).code == 0
        return peer

    try:
        for number, (listener, user) in enumerate(owners, start=1):
            with connect(listener, user) as peer:
                peer.subscribe(f"own/{number}", qos=1)
                peer.send(wire.publish("half/done", b"once", 2, packet_id=number))
                assert peer.expect(wire.Kind.PUBREC).code == 0
        broker.kill()
        broker.start()
        with Peer(addresses(broker)["open"]) as watcher:
            watcher.connect("watcher")
            watcher.subscribe("#")
            for number, (listener, user) in enumerate(owners, start=1):
                with connect(listener, user) as peer:
                    assert peer.connack.session_present
                    # The ones of the others are free, its own is not.
                    for packet_id in (1, 2, 3):
                        peer.send(wire.publish("half/done", b"%d" % packet_id, 2, packet_id=packet_id))
                        assert peer.expect(wire.Kind.PUBREC).code == 0
                taken = {1, 2, 3} - {number}
                assert {m.payload for m in watcher.messages(2)} == {b"%d" % packet_id for packet_id in taken}
            watcher.expect_silence()
    finally:
        broker.end()
