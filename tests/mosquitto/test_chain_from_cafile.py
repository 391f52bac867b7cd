"""A server certificate whose intermediate authority stands in `cafile` alone, as mosquitto's users have it.

OpenSSL completes the chain that is sent from there (SSL_CTX_set_mode(3), auto chain); clients know the root only."""

import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from bench.peers.peer import free_port
from tests.broker_process import SECONDS_MAX, Rumqd, run_command
from tests.mosquitto.mosquitto_process import MOSQUITTO, running

CONF = """
listener {port} 127.0.0.1
allow_anonymous true
cafile {folder}/cafile.pem
certfile {folder}/server.pem
keyfile {folder}/server.key
{more}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chain")
    root = trustme.CA(organization_name="root")
    between = root.create_child_ca()
    issued = between.issue_cert("localhost", "127.0.0.1", common_name="server")
    root.cert_pem.write_to_path(folder / "root.pem")
    (folder / "cafile.pem").write_bytes(between.cert_pem.bytes() + root.cert_pem.bytes())
    issued.cert_chain_pems[0].write_to_path(folder / "server.pem")  # without the intermediate one
    issued.private_key_pem.write_to_path(folder / "server.key")
    (folder / "server.key").chmod(0o600)
    client = between.issue_cert("client.invalid", common_name="client")
    (folder / "client.pem").write_bytes(b"".join(pem.bytes() for pem in client.cert_chain_pems))
    client.private_key_pem.write_to_path(folder / "client.key")
    return folder


class FromConf(Rumqd):
    def command(self) -> list[str]:
        return run_command(*self.flags)


@pytest.fixture(params=["require_certificate false", "require_certificate true"])
def broker(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Rumqd]:
    conf = tmp_path / "mosquitto.conf"
    conf.write_text(CONF.format(port=1, folder=folder, more=request.param))
    broker = FromConf(tmp_path, "--mosquitto-conf", str(conf))
    broker.start()
    yield broker
    broker.end()


def chain(port: int, folder: Path) -> list[str]:
    """The certificates that are sent, as OpenSSL's own client sees them, which must believe them."""
    done = subprocess.run(
        [
            "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", str(folder / "root.pem"),
            "-verify_return_error", "-verify_ip", "127.0.0.1", "-showcerts",
            "-cert", str(folder / "client.pem"), "-key", str(folder / "client.key"),
        ],
        input=b"", capture_output=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    said = done.stdout.decode()
    assert "Verify return code: 0 (ok)" in said, said
    return re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END", said, re.S)


def test_clients_that_know_the_root_believe_the_broker(broker: Rumqd, folder: Path) -> None:
    sent = chain(broker.address.port, folder)
    assert len(sent) >= 2
    context = ssl.create_default_context(cafile=str(folder / "root.pem"))
    context.load_cert_chain(str(folder / "client.pem"), str(folder / "client.key"))
    with (
        socket.create_connection(broker.address) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        assert tls.version() in ("TLSv1.2", "TLSv1.3")


@pytest.mark.mosquitto
def test_mosquitto_s_clients_believe_the_broker(broker: Rumqd, folder: Path) -> None:
    if shutil.which("mosquitto_pub") is None:
        pytest.skip("Debian's mosquitto-clients are not here")
    flags = [
        "-h", "127.0.0.1", "-p", str(broker.address.port), "--cafile", str(folder / "root.pem"),
        "--cert", str(folder / "client.pem"), "--key", str(folder / "client.key"), "-t", "t",
    ]  # fmt: skip
    subprocess.run(["mosquitto_pub", *flags, "-m", "x", "-r", "-q", "1"], check=True, timeout=SECONDS_MAX)
    got = subprocess.run(
        ["mosquitto_sub", *flags, "-C", "1", "-W", "10"], check=True, timeout=SECONDS_MAX, capture_output=True
    )
    assert got.stdout == b"x\n"


def test_mosquitto_sends_the_same_chain(broker: Rumqd, folder: Path) -> None:
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed here (Debian's package mosquitto)")
    port = free_port()
    conf = folder / "m.conf"
    conf.write_text("user root\n" + CONF.format(port=port, folder=folder, more=""))
    with running([MOSQUITTO, "-c", str(conf)], port):
        assert chain(port, folder) == chain(broker.address.port, folder)
