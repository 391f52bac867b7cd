"""A listener's rate of new connections: before TLS and CONNECT, each address in turn. docs/guides/security.md"""

import socket

from rumq.net.listening.listener import listener_rate
from rumq.net.listening.transports import PLAIN
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.net.site import Site


def came(address: tuple[str, int], host: str) -> socket.socket:
    sock = socket.create_connection(address, source_address=(host, 0))
    sock.setblocking(False)
    return sock


def test_what_is_over_the_rate_waits_and_then_is_reset() -> None:
    site, policy = Site(), ListenerPolicy(name="here:1883")
    rate = listener_rate(policy, 4, site.event)
    address = site.listen(PLAIN, rate=rate)
    flood = [came(address, "127.0.0.2") for _ in range(4 + 16 + 10)]
    site.until(lambda: policy.arrivals.refused == 10)
    assert len(site.links) == 4 and policy.arrivals.delayed == 26
    reset = 0
    for sock in flood:
        try:
            sock.recv(1)
        except BlockingIOError:
            continue
        except ConnectionResetError:
            reset += 1
    assert reset == 10, "and nothing of them is left here"
    other = came(address, "127.0.0.3")
    site.until(lambda: policy.arrivals.delayed == 27)
    for _ in range(2):
        site.now += 0.25
        site.turn(3)
    hosts = [link.transport.peer.partition(":")[0] for link in site.links]
    assert hosts == ["127.0.0.2"] * 5 + ["127.0.0.3"], "one turn of the other address"
    told = [fields for name, fields in site.events if name == "listener.rate_reached"]
    assert told[0] == {
        "listener": "here:1883",
        "address": "127.0.0.2",
        "per_second": 4,
        "delayed": 1,
        "refused": 0,
    }
    site.listeners[0].close()
    other.settimeout(5)
    assert len(rate) == 0
    for sock in (*flood, other):
        sock.close()


def test_a_unix_socket_has_no_rate(tmp_path: object) -> None:
    path = f"{tmp_path}/s"
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(path)
    bound.listen(100)
    bound.setblocking(False)
    site = Site()
    site.listen(PLAIN, bound, listener_rate(ListenerPolicy(), 1, site.event))
    clients = []
    for _ in range(20):
        clients.append(socket.socket(socket.AF_UNIX))
        clients[-1].connect(path)
    site.until(lambda: len(site.links) == 20)
    for client in clients:
        client.close()
