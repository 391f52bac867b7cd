"""`rumqd certs`: certificates for development, of an authority made with trustme, and those of a cluster's nodes."""

import argparse
import os
import shlex
from typing import TYPE_CHECKING

from rumq.errors import RumqError

if TYPE_CHECKING:
    import trustme

ABOUT = """\
dev: make a development authority, a server certificate (for localhost, 127.0.0.1, ::1 and this machine's name) and a
client certificate. Existing files are kept and used: run it again with another --client for another client.
Not for production: whoever reads ca.key can impersonate anybody.
node: make a certificate with its name for each --node of a cluster, for TLS between nodes, signed by an authority for
nodes alone, which the first call makes. Each node gets ca.pem and its own NAME.pem and NAME.key; ca.key makes nodes:
keep it away from them.
"""
EXAMPLES = """\
examples:
  rumqd certs dev                                into ./certs
  rumqd certs dev certs --client pump-7          another client, signed by the same authority
  rumqd certs dev certs --host broker.lan        another host name in the server certificate (when it is made)
  rumqd certs node --cluster plant --node n1 --node n2 --node n3     into ./node-certs

exit status: 0 done; 1 any other error
"""
HERE = ("localhost", "127.0.0.1", "::1")
PORT = 8883
KEY_MODE, CERTIFICATE_MODE = 0o600, 0o644


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", choices=("dev", "node"), help="for development, or of a cluster's nodes for each other"
    )
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", help="target folder, created if missing [certs or node-certs]"
    )
    parser.add_argument(
        "--client", metavar="NAME", default="client", help="the client's common name [client]"
    )
    parser.add_argument(
        "--host", metavar="NAME", action="append", default=[], help="another host name of the broker"
    )
    parser.add_argument("--cluster", metavar="NAME", default="", help="cluster.name of the nodes")
    parser.add_argument(
        "--node", metavar="NAME", action="append", default=[], help="cluster.node of a node; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    if args.what == "node":
        return run_node(args)
    args.folder = args.folder or "certs"
    require_trustme()
    if (
        not args.client
        or "/" in args.client
        or args.client.startswith(".")
        or args.client in ("ca", "server")
    ):
        raise RumqError(f"--client {args.client!r}: expected a valid file name other than ca and server")
    folder = Folder(args.folder)
    if folder.has(f"{args.client}.pem"):
        raise RumqError(
            f"{folder.path(args.client)}.pem exists already: give another --client, or another folder"
        )
    try:
        os.makedirs(args.folder, exist_ok=True)
        authority = folder.authority()
        if not folder.has("server.pem"):
            folder.write("server", server(authority, args.host))
        folder.write(
            args.client, authority.issue_cert(f"{args.client}.client.invalid", common_name=args.client)
        )
    except OSError as fault:
        raise RumqError(f"{fault.filename or args.folder}: {fault.strerror}") from None
    print(instructions(folder, args.client))
    return 0


def run_node(args: argparse.Namespace) -> int:
    from rumq.cli.admin.node_certs import make_node_certificates  # it is slow to import

    folder = args.folder or "node-certs"
    check_node_names(args.cluster, args.node)
    try:
        kept = make_node_certificates(folder, args.cluster, args.node)
    except OSError as fault:
        raise RumqError(f"{fault.filename or folder}: {fault.strerror}") from None
    for node in args.node:
        state = "exists, and is kept: remove it first to have another one" if node in kept else "made"
        print(f"{node:<12} {folder}/{node}.pem, {folder}/{node}.key: {state}")
    print(
        f"authority    {folder}/ca.pem; whoever has {folder}/ca.key can make nodes: keep it away from them\n\n"
        "on each node, with its own name:\n"
        "[cluster]\n"
        f'tls_certificate = "/etc/rumq/nodes/{args.node[0]}.pem"\n'
        f'tls_key = "/etc/rumq/nodes/{args.node[0]}.key"\n'
        'tls_authority = "/etc/rumq/nodes/ca.pem"'
    )
    return 0


def check_node_names(cluster: str, nodes: list[str]) -> None:
    """raises: RumqError"""
    from rumq.settings.rules import NAME

    if not nodes:
        raise RumqError("--node: expected the name of a node (cluster.node), once for each")
    for flag, name in (("--cluster", cluster), *(("--node", each) for each in nodes)):
        if not NAME.fullmatch(name):
            raise RumqError(f"{flag} {name!r}: expected a name of letters, digits, ., _ and -, at most 64")
    if "ca" in nodes:
        raise RumqError("--node ca: the authority's files have this name; give the node another one")


def require_trustme() -> None:
    """raises: RumqError"""
    try:
        import trustme  # noqa: F401
    except ImportError:
        raise RumqError("certificates are made by trustme: pip install 'rumq[certs]'") from None


def server(authority: "trustme.CA", more: list[str]) -> "trustme.LeafCert":
    """A server certificate for all names of this machine that a certificate can contain."""
    import socket

    try:
        return authority.issue_cert(*HERE, *more, socket.gethostname(), common_name="rumq")
    except ValueError:
        pass  # a machine may have a name that no certificate can have
    try:
        return authority.issue_cert(*HERE, *more, common_name="rumq")
    except ValueError as fault:
        raise RumqError(f"--host {' '.join(more)}: {fault}") from None


class Folder:
    """A folder of certificates NAME.pem with keys NAME.key."""

    def __init__(self, name: str) -> None:
        self._name = name

    def path(self, name: str) -> str:
        return os.path.join(self._name, name)

    def has(self, name: str) -> bool:
        return os.path.exists(self.path(name))

    def authority(self) -> "trustme.CA":
        """The existing authority, or a new one."""
        import trustme

        if self.has("ca.pem") and self.has("ca.key"):
            with open(self.path("ca.pem"), "rb") as certificate, open(self.path("ca.key"), "rb") as key:
                try:
                    return trustme.CA.from_pem(certificate.read(), key.read())
                except ValueError as fault:
                    raise RumqError(f"{self.path('ca.pem')}, ca.key: {fault}") from None
        made = trustme.CA(organization_name="rumq development")
        self._create("ca.key", made.private_key_pem.bytes(), KEY_MODE)
        self._create("ca.pem", made.cert_pem.bytes(), CERTIFICATE_MODE)
        return made

    def write(self, name: str, issued: "trustme.LeafCert") -> None:
        self._create(f"{name}.key", issued.private_key_pem.bytes(), KEY_MODE)
        self._create(
            f"{name}.pem", b"".join(blob.bytes() for blob in issued.cert_chain_pems), CERTIFICATE_MODE
        )

    def _create(self, name: str, content: bytes, mode: int) -> None:
        """Create a new file with its final mode, so that a key is never readable by others."""
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(fd, "wb") as file:
            file.write(content)


def instructions(folder: Folder, client: str) -> str:
    def shown(name: str) -> str:
        return shlex.quote(folder.path(name))

    flags = (
        f"-h localhost -p {PORT} --cafile {shown('ca.pem')} --cert {shown(client + '.pem')} "
        f"--key {shown(client + '.key')} -t plant/7/temp -m 21.5"
    )
    return (
        f"the authority       {folder.path('ca.pem')}\n"
        f"the broker          {folder.path('server.pem')}, {folder.path('server.key')}\n"
        f"the client {client:<8} {folder.path(client)}.pem, {folder.path(client)}.key\n\n"
        f"once a listener on port {PORT} has the broker's:\n"
        f"rumqd pub {flags}\n"
        f"mosquitto_pub {flags}"
    )
