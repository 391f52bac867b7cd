"""`rumqd certs`: certificates for development, of an authority of their own, and those of a cluster's nodes."""

import argparse
import os
import shlex

from rumq.errors import RumqError

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
PORT = 8883
CLIENT_CHARACTERS_MAX = 64  # of a common name: RFC 5280, A.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("dev", "node"), help="for development, or of a cluster's nodes for each other")
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", help="target folder, created if missing [certs or node-certs]"
    )
    parser.add_argument("--client", metavar="NAME", default="client", help="the client's common name [client]")
    parser.add_argument("--host", metavar="NAME", action="append", default=[], help="another host name of the broker")
    parser.add_argument("--cluster", metavar="NAME", default="", help="cluster.name of the nodes")
    parser.add_argument(
        "--node", metavar="NAME", action="append", default=[], help="cluster.node of a node; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    if args.what == "node":
        return run_node(args)
    from rumq.cli.admin.dev_certs import make_development_certificates  # it is slow to import

    args.folder = args.folder or "certs"
    check_client_name(args.client)
    if os.path.exists(f"{args.folder}/{args.client}.pem"):
        raise RumqError(f"{args.folder}/{args.client}.pem exists already: give another --client, or another folder")
    try:
        make_development_certificates(args.folder, args.client, args.host)
    except OSError as fault:
        raise RumqError(f"{fault.filename or args.folder}: {fault.strerror}") from None
    print(instructions(args.folder, args.client))
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


def check_client_name(name: str) -> None:
    """raises: RumqError"""
    if not name or "/" in name or name.startswith(".") or name in ("ca", "server"):
        raise RumqError(f"--client {name!r}: expected a valid file name other than ca and server")
    if len(name) > CLIENT_CHARACTERS_MAX or not name.isprintable():
        raise RumqError(f"--client {name!r}: expected at most {CLIENT_CHARACTERS_MAX} printable characters")


def instructions(folder: str, client: str) -> str:
    def shown(name: str) -> str:
        return shlex.quote(os.path.join(folder, name))

    flags = (
        f"-h localhost -p {PORT} --cafile {shown('ca.pem')} --cert {shown(client + '.pem')} "
        f"--key {shown(client + '.key')} -t plant/7/temp -m 21.5"
    )
    return (
        f"the authority       {os.path.join(folder, 'ca.pem')}\n"
        f"the broker          {os.path.join(folder, 'server.pem')}, {os.path.join(folder, 'server.key')}\n"
        f"the client {client:<8} {os.path.join(folder, client)}.pem, {os.path.join(folder, client)}.key\n\n"
        f"once a listener on port {PORT} has the broker's:\n"
        f"rumqd pub {flags}\n"
        f"mosquitto_pub {flags}"
    )
