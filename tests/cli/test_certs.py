"""`rumqd certs`: certificates with which a TLS handshake works, and keys that nobody else reads."""

import os
import shlex
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from rumq.cli.main import main
from rumq.cluster.links.node_names import uris_of
from rumq.net.tls_options import TlsOptions, make_context


def handshake(folder: Path, client: str, host: str) -> dict[str, object]:
    """Both sides in memory; what the broker sees of the client."""
    server_context = make_context(
        TlsOptions(
            certfile=str(folder / "server.pem"), keyfile=str(folder / "server.key"), cafile=str(folder / "ca.pem"),
            client_certificates="required",
        )
    )  # fmt: skip
    client_context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client_context.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client_context.wrap_bio(down, up, server_hostname=host)
    far = server_context.wrap_bio(up, down, server_side=True)
    open_ones: set[object] = set()
    while len(open_ones) < 2:
        for side in (near, far):
            try:
                side.do_handshake()
                open_ones.add(side)
            except ssl.SSLWantReadError:
                pass
    return far.getpeercert() or {}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my certs"
    assert main(["certs", "dev", str(made)]) == 0
    return made


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_a_client_and_the_broker_believe_each_other(folder: Path, host: str) -> None:
    assert (("commonName", "client"),) in handshake(folder, "client", host)["subject"]  # type: ignore[operator]


def test_keys_are_for_their_owner_only(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "server.key", "client.key"}
    assert set(modes) == {"ca.key", "ca.pem", "server.key", "server.pem", "client.key", "client.pem"}


def test_another_client_is_of_the_same_authority(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", "dev", str(folder), "--client", "pump-7"]) == 0
    assert (("commonName", "pump-7"),) in handshake(folder, "pump-7", "localhost")["subject"]  # type: ignore[operator]
    assert all((folder / name).read_bytes() == content for name, content in before.items())


def test_a_name_more_is_the_brokers_too(tmp_path: Path) -> None:
    assert main(["certs", "dev", str(tmp_path), "--host", "broker.lan", "--host", "192.0.2.7"]) == 0
    for host in ("broker.lan", "192.0.2.7"):
        handshake(tmp_path, "client", host)


def test_the_line_it_prints_can_be_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", "dev", str(folder), "--client", "two"]) == 0
    line = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert line[0] == "mosquitto_pub"
    for flag, name in (("--cafile", "ca.pem"), ("--cert", "two.pem"), ("--key", "two.key")):
        assert line[line.index(flag) + 1] == str(folder / name)


def test_nothing_is_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", "dev", str(folder)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["", "../x", "ca", "server", ".hidden"])
def test_a_client_needs_a_name_that_can_be_a_files(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certs", "dev", str(tmp_path / "c"), f"--client={name}"]) == 1
    assert "--client" in capsys.readouterr().err and not os.path.exists(tmp_path / "c")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["certs", "dev", str(tmp_path / "file" / "c")]) == 1
    assert "rumqd: " in capsys.readouterr().err


# Nodes


def names(path: Path) -> list[str]:
    found = x509.load_pem_x509_certificate(path.read_bytes())
    return uris(found)


def uris(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def test_each_node_gets_its_name_of_one_authority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "nodes"
    words = ["certs", "node", str(folder), "--cluster", "plant"]
    assert main([*words, "--node", "n1", "--node", "n2"]) == 0
    assert "tls_authority" in capsys.readouterr().out
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*words, "--node", "n2", "--node", "n3"]) == 0
    assert "n2.key: exists, and is kept" in capsys.readouterr().out
    assert before == {name: (folder / name).read_bytes() for name in before}
    assert set(os.listdir(folder)) == {
        f"{name}.{kind}" for name in ("ca", "n1", "n2", "n3") for kind in ("pem", "key")
    }
    for node in ("n1", "n2", "n3"):
        assert names(folder / f"{node}.pem") == [f"rumq://plant/node/{node}"]
        assert stat.S_IMODE((folder / f"{node}.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "ca.key").stat().st_mode) == 0o600


def test_two_nodes_believe_each_other(tmp_path: Path) -> None:
    assert main(["certs", "node", str(tmp_path), "--cluster", "p", "--node", "n1", "--node", "n2"]) == 0
    contexts = []
    for node, protocol in (("n1", ssl.PROTOCOL_TLS_CLIENT), ("n2", ssl.PROTOCOL_TLS_SERVER)):
        context = ssl.SSLContext(protocol)
        context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_cert_chain(tmp_path / f"{node}.pem", tmp_path / f"{node}.key")
        context.load_verify_locations(tmp_path / "ca.pem")
        contexts.append(context)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near, far = contexts[0].wrap_bio(down, up), contexts[1].wrap_bio(up, down, server_side=True)
    shaken: set[object] = set()
    while len(shaken) < 2:
        for side in (near, far):
            try:
                side.do_handshake()
                shaken.add(side)
            except ssl.SSLWantReadError:
                pass
    assert uris_of(near.getpeercert()) == ("rumq://p/node/n2",) and uris_of(far.getpeercert()) == (
        "rumq://p/node/n1",
    )


def test_an_authority_that_is_there_signs_the_certificates_of_nodes(folder: Path) -> None:
    """That of a cluster whose nodes have certificates without names: the old ones stay good for old nodes."""
    assert main(["certs", "node", str(folder), "--cluster", "plant", "--node", "n1"]) == 0
    authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    x509.load_pem_x509_certificate((folder / "n1.pem").read_bytes()).verify_directly_issued_by(authority)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cluster", "plant"], "--node: expected the name"),
        (["--node", "n1"], "--cluster '': expected a name"),
        (["--cluster", "plant", "--node", "../n1"], "--node '../n1': expected a name"),
        (["--cluster", "plant", "--node", "ca"], "--node ca: the authority"),
    ],
)
def test_names_that_no_node_can_have_are_refused(
    tmp_path: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certs", "node", str(tmp_path / "x"), *words]) == 1
    assert says in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_half_an_authority_is_no_authority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["certs", "node", str(tmp_path), "--cluster", "p", "--node"]
    assert main([*words, "n1"]) == 0
    (tmp_path / "ca.key").unlink()
    assert main([*words, "n2"]) == 1
    assert "ca.key: the authority's other file is there" in capsys.readouterr().err
    (tmp_path / "ca.key").write_bytes((tmp_path / "n1.key").read_bytes())
    assert main([*words, "n2"]) == 1
    assert "is not the key of" in capsys.readouterr().err
