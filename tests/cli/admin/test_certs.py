"""`rumqd certs`: certificates with which a TLS handshake works, and keys that nobody else reads."""

import os
import re
import shlex
import shutil
import ssl
import stat
import subprocess
from pathlib import Path

import pytest
import trustme
from cryptography import x509

from rumq.cli.main import main
from rumq.cluster.links.node_names import uris_of
from rumq.net.tls.tls_options import TlsOptions, make_context

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, Debian's openssl")


def handshake(folder: Path, client: str, host: str) -> dict[str, object]:
    """Both sides in memory; what the broker sees of the client."""
    server_context = make_context(
        TlsOptions(
            certfile=str(folder / "server.pem"), keyfile=str(folder / "server.key"), cafile=str(folder / "ca.pem"),
            client_certificates="required",
        )
    )  # fmt: skip
    client_context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
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


def said_by_openssl(*words: object) -> tuple[int, str]:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def verified(folder: Path, name: str, purpose: str) -> bool:
    status, _ = said_by_openssl(
        "verify", "-x509_strict", "-purpose", purpose, "-CAfile", folder / "ca.pem", folder / f"{name}.pem"
    )
    return status == 0


@needs_openssl
def test_a_certificate_is_good_for_what_it_is_made_for_alone(folder: Path) -> None:
    """OpenSSL's own rules, with no exception for certificates that other programs made."""
    assert main(["certs", "node", str(folder / "n"), "--cluster", "p", "--node", "n1"]) == 0
    asked = [("server", folder), ("client", folder), ("n1", folder / "n")]
    assert {
        (name, purpose)
        for name, place in asked
        for purpose in ("sslserver", "sslclient")
        if verified(place, name, purpose)
    } == {("server", "sslserver"), ("client", "sslclient"), ("n1", "sslserver"), ("n1", "sslclient")}
    assert not verified(folder / "n", "../client", "sslclient")  # of the other authority


@needs_openssl
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("ca", ["CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "Not After : Jan  1 00:00:00 3000 GMT"]),
        ("server", ["CA:FALSE", "TLS Web Server Authentication\n", "DNS:localhost, IP Address:127.0.0.1"]),
        (
            "client",
            ["CA:FALSE", "TLS Web Client Authentication\n", "Subject: O = rumq development, CN = client"],
        ),
    ],
)
def test_what_openssl_reads_in_a_certificate(folder: Path, name: str, lines: list[str]) -> None:
    status, text = said_by_openssl("x509", "-in", folder / f"{name}.pem", "-noout", "-text")
    assert status == 0
    text = re.sub(r"\b([A-Z]+)=", r"\1 = ", text)  # as OpenSSL wrote names before 3.2
    assert [line for line in lines if line not in text] == []
    usages = re.search(r"X509v3 Key Usage: critical\n +(.*)\n", text)
    assert usages and usages[1] == ("Certificate Sign, CRL Sign" if name == "ca" else "Digital Signature")


def test_the_authority_of_an_earlier_version_signs_another_client(tmp_path: Path) -> None:
    """It was made with trustme, and so was the server's certificate."""
    made = trustme.CA(organization_name="rumq development")
    (tmp_path / "ca.pem").write_bytes(made.cert_pem.bytes())
    (tmp_path / "ca.key").write_bytes(made.private_key_pem.bytes())
    server = made.issue_cert("localhost", common_name="rumq")
    (tmp_path / "server.pem").write_bytes(server.cert_chain_pems[0].bytes())
    (tmp_path / "server.key").write_bytes(server.private_key_pem.bytes())
    assert main(["certs", "dev", str(tmp_path), "--client", "two"]) == 0
    assert (("commonName", "two"),) in handshake(tmp_path, "two", "localhost")["subject"]  # type: ignore[operator]


@pytest.mark.parametrize("name", ["pump 7", "pump_7", "a" * 64])
def test_a_client_need_not_have_a_name_that_hosts_have(tmp_path: Path, name: str) -> None:
    assert main(["certs", "dev", str(tmp_path), "--client", name]) == 0
    assert (("commonName", name),) in handshake(tmp_path, name, "localhost")["subject"]  # type: ignore[operator]


@pytest.mark.parametrize("name", ["a_b.lan", "a b", "", "x" * 64 + ".lan", ".lan"])
def test_a_name_that_no_host_has_is_refused(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", "dev", str(tmp_path), f"--host={name}"]) == 1
    assert "--host: " in capsys.readouterr().err and not (tmp_path / "server.pem").exists()


@pytest.mark.parametrize("name", ["", "../x", "ca", "server", ".hidden", "a" * 65, "a\tb"])
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
    assert set(os.listdir(folder)) == {f"{name}.{kind}" for name in ("ca", "n1", "n2", "n3") for kind in ("pem", "key")}
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
    assert uris_of(near.getpeercert()) == ("rumq://p/node/n2",) and uris_of(far.getpeercert()) == ("rumq://p/node/n1",)


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
