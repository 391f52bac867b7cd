"""Streams by address: a Unix socket, however long its path. The others: tests/cli/test_client_tls.py."""

import os
from pathlib import Path

import pytest
import trio

from rumq.client import connect
from rumq.client.transport.address import BrokerAddress, parse_url
from rumq.errors import ConfigError
from rumq.mqtt.packets import Connack, Connect, Disconnect
from tests.client.fake_broker import Peer


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("unix:///run/a.socket", BrokerAddress("", 0, "unix", path="/run/a.socket")),
        ("unix:/run/a%20b", BrokerAddress("", 0, "unix", path="/run/a b")),
        ("unix://host/a", None), ("unix:///", None), ("amqp://a", None),
    ],
)  # fmt: skip
def test_a_url_may_name_a_unix_socket(url: str, address: BrokerAddress | None) -> None:
    if address is None:
        with pytest.raises(ConfigError, match="unix:///PATH"):
            parse_url(url)
    else:
        assert parse_url(url) == address


@pytest.mark.parametrize("depth", [1, 12])
def test_a_client_connects_to_a_unix_socket(tmp_path: Path, depth: int) -> None:
    """Also where its path is longer than an address holds. unix(7)"""
    folder = tmp_path.joinpath(*["a" * 20] * depth)
    folder.mkdir(parents=True)

    async def main() -> None:
        listener = trio.socket.socket(trio.socket.AF_UNIX)
        with listener:
            here = Path(f"/proc/self/fd/{folder_fd}") if depth > 1 else folder
            await listener.bind(str(here / "s"))
            listener.listen(1)

            async def serve() -> None:
                accepted, _ = await listener.accept()
                peer = Peer(trio.SocketStream(accepted))
                assert isinstance(await peer.receive(), Connect)
                await peer.send(Connack())
                assert await peer.receive() == Disconnect()
                await peer.hang_up()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve)
                async with connect(f"unix://{folder}/s"):
                    pass

    folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        trio.run(main)
    finally:
        os.close(folder_fd)
