"""What is no MQTT at all, or never ends: that connection is over or waits, and everyone else is served.

MQTT 5.0, 4.13; MQTT 3.1.1, 4.8. Nothing here is answered by more than a refusal."""

import random
import socket
import time

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.peer import Ended, Peer

TLS_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(160))
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n"
NOT_MQTT = {
    "tls hello": TLS_HELLO,
    "http get": HTTP,
    "http post": b"POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n" + b"\0" * 100,
    "smtp": b"EHLO example.org\r\n" * 20,
    "proxy v2": b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + b"\1" * 12,
    "zeros": b"\0" * 1000,
    "ones": b"\xff" * 1000,
    "a redis command": b"*1\r\n$4\r\nPING\r\n",
}


@pytest.fixture
def bystander(join: Dial, topic: str) -> Peer:
    peer = join()
    peer.subscribe(topic, qos=1)
    return peer


def expect_served(bystander: Peer, topic: str) -> None:
    bystander.publish(topic, b"served", 1)
    assert bystander.message().payload == b"served"


def end_of(connection: socket.socket) -> bytes:
    """Whatever is said until the other side closes; TimeoutError if it does not."""
    found = b""
    try:
        while data := connection.recv(65_536):
            found += data
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize("words", NOT_MQTT.values(), ids=NOT_MQTT.keys())
def test_another_protocol_is_ended(bystander: Peer, dial: Dial, topic: str, words: bytes) -> None:
    peer = dial()
    peer.send(words)
    assert len(end_of(peer.socket)) <= 8
    expect_served(bystander, topic)


@pytest.mark.parametrize("seed", range(20))
def test_garbage_is_ended_or_starved(bystander: Peer, dial: Dial, topic: str, seed: int) -> None:
    """Random bytes: refused, or waited for as a packet that has not come; never a crash."""
    chance = random.Random(seed)
    peer = dial()
    try:
        peer.send(chance.randbytes(chance.randrange(1, 3000)))
        peer.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    end_of(peer.socket)
    expect_served(bystander, topic)


@pytest.mark.parametrize("seed", range(20))
def test_a_connect_with_a_flipped_byte_does_no_harm(bystander: Peer, dial: Dial, topic: str, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(wire.connect(f"flip{seed}", username="u", password=b"p", will=wire.Will("flip/will")))
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    peer = dial()
    try:
        peer.send(bytes(data))
        peer.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    end_of(peer.socket)
    expect_served(bystander, topic)


@pytest.mark.parametrize("seed", range(20))
def test_a_session_of_broken_packets_does_no_harm(
    bystander: Peer, join: Dial, version: int, topic: str, seed: int
) -> None:
    """Valid packets with one byte changed, after a good CONNECT, until the broker has enough."""
    chance = random.Random(seed)
    peer = join(version=version)
    good = [
        wire.publish(f"{topic}/x", b"payload", 1, 1, version=version),
        wire.publish(f"{topic}/x", b"payload", 2, 2, version=version),
        wire.subscribe(3, [(f"{topic}/y", 1)], version=version),
        wire.unsubscribe(4, [f"{topic}/y"], version=version),
        wire.ack(wire.Kind.PUBREL, 2),
    ]
    try:
        for _ in range(30):
            data = bytearray(chance.choice(good))
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            peer.send(bytes(data))
        peer.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    end_of(peer.socket)
    expect_served(bystander, topic)


def test_a_length_of_256_mb_costs_no_memory_up_front(bystander: Peer, join: Dial, topic: str) -> None:
    """Twenty clients announce the longest packet there is and send a little of it."""
    peers = [join() for _ in range(20)]
    for peer in peers:
        peer.send(b"\x30\xff\xff\xff\x7f" + wire.text(topic) + b"\0" + b"x" * 1000)
    expect_served(bystander, topic)


def test_a_first_packet_of_256_mb_is_not_waited_for_in_memory(bystander: Peer, dial: Dial, topic: str) -> None:
    for _ in range(20):
        dial().send(b"\x10\xff\xff\xff\x7f" + wire.text("MQTT") + b"\5\2\0\0\0" + b"x" * 1000)
    expect_served(bystander, topic)


@pytest.mark.parametrize("cut", [1, 2, 3, 10])
def test_half_a_connect_keeps_nobody_waiting(bystander: Peer, dial: Dial, topic: str, cut: int) -> None:
    peer = dial()
    peer.send(wire.connect("half")[:cut])
    expect_served(bystander, topic)
    peer.reset()
    expect_served(bystander, topic)


def test_half_a_publish_is_never_delivered(bystander: Peer, join: Dial, version: int, topic: str) -> None:
    peer = join(version=version)
    peer.send(wire.publish(topic, b"half of this", 1, 1, version=version)[:-3])
    peer.close()
    expect_served(bystander, topic)


def test_a_packet_may_come_byte_by_byte(bystander: Peer, dial: Dial, version: int, topic: str) -> None:
    peer = dial(version)
    for byte in wire.connect("slow", version) + wire.publish(topic, b"slowly", 1, 1, version=version):
        peer.send(bytes([byte]))
        time.sleep(0.001)  # lets the bytes go out one by one
    assert peer.expect(wire.Kind.CONNACK).code == 0
    assert peer.expect(wire.Kind.PUBACK).packet_id == 1
    assert bystander.message().payload == b"slowly"


def test_many_packets_may_come_in_one_piece(bystander: Peer, dial: Dial, version: int, topic: str) -> None:
    peer = dial(version)
    packets = [wire.publish(topic, b"%d" % number, version=version) for number in range(500)]
    peer.send(wire.connect("quick", version), *packets)
    assert bystander.payloads(500) == [b"%d" % number for number in range(500)]


def test_a_connection_that_says_nothing_holds_up_nobody(bystander: Peer, dial: Dial, topic: str) -> None:
    for _ in range(50):
        dial()
    expect_served(bystander, topic)


def test_connections_that_come_and_go_do_no_harm(bystander: Peer, dial: Dial, topic: str) -> None:
    for number in range(100):
        peer = dial()
        if number % 3:
            peer.send(wire.connect(f"fleeting{number}"))
        peer.reset() if number % 2 else peer.close()
    expect_served(bystander, topic)


def test_a_subscriber_that_never_reads_holds_up_nobody(bystander: Peer, join: Dial, topic: str) -> None:
    deaf, publisher = join(), join()
    deaf.subscribe(f"{topic}/loud", qos=0)
    for _ in range(200):
        publisher.publish(f"{topic}/loud", b"x" * 50_000)
    publisher.publish(topic, b"through", 1)
    assert bystander.message().payload == b"through"
    expect_served(bystander, topic)


def test_the_end_of_a_connection_can_be_a_half_close(join: Dial, version: int) -> None:
    peer = join(version=version)
    peer.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(Ended):
        peer.receive()
