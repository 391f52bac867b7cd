"""`rumqd init`: the first settings of a broker that other machines can reach, secure from its first start.

Credentials, certificates, rules and config.toml. Whatever exists is kept."""

from __future__ import annotations

import argparse
import os
import secrets

from rumq.errors import RumqError

ABOUT = """\
Make config.toml, certificates, a password file and rules in a folder, for a broker that serves other machines over TLS
(port 8883) and this one without (localhost:1883), to users with passwords only. Prints the passwords of `admin` and of
each --device, once: the file has their hashes. A folder that has a config.toml is left as it is; other existing files
are kept. Later, --device NAME adds a device: a user of its own, who reaches device/NAME/ alone.
With --cluster and --node, the certificates of these nodes for each other that are missing, in nodes/.
"""
EXAMPLES = """\
examples:
  rumqd init --dir /etc/rumq --group rumq        as root, for the service (the Debian package does it)
  rumqd init --dir demo --data demo/data         for yourself
  rumqd init --device pump-7 --device pump-8     a user and a password for each device, now or later
  rumqd init --host broker.lan                   another name in the server certificate
  rumqd check --config /etc/rumq/config.toml     is all of it in order?

exit status: 0 done, or already there; 1 any other error
"""
ADMIN = "admin"
PASSWORD_BYTES = 18  # of entropy; 24 characters
READERS_MODE, OWNERS_MODE = 0o640, 0o600

CONFIG = """\
# Settings of rumqd. All others, with defaults and units: rumqd config --example. After a change: rumqd check --config
# {folder}/config.toml, then systemctl reload rumqd (or SIGHUP); docs/guides/operating.md says what needs a restart.

[[listener]]                                   # for all machines: TLS, and a user with a password
host = "*"
port = 8883
tls_certificate = "{folder}/certs/server.pem"
tls_key = "{folder}/certs/server.key"

[[listener]]                                   # for this machine
host = "localhost"
port = 1883

[auth]
anonymous = "no"
password_file = "{folder}/users"               # rumqd init --dir {folder} --device NAME adds a device
rules_file = "{folder}/rules.toml"

[data]
dir = "{data}"

#[gateway]                                     # page, REST, metrics for this machine: docs/reference/gateway.md
#port = 8080
"""
RULES = """\
# What clients may do, docs/guides/security.md, "Authorization". Nothing is allowed without a rule that allows it.
# rumqd acl test USER CLIENT publish TOPIC --rules FILE says which rule decides.

[groups]
operators = ["admin"]

[[rule]]
groups = ["operators"]
allow = ["publish", "subscribe", "replay", "retain", "will"]
topics = ["#", "$SYS/#"]

[[rule]]                                       # each device is a user, and reaches the topics of its name alone
allow = ["publish", "subscribe", "replay", "retain", "will"]
topics = ["device/%u/#"]
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", metavar="DIR", default="/etc/rumq", help="folder of the settings [/etc/rumq]")
    parser.add_argument(
        "--data", metavar="DIR", default="/var/lib/rumq", help="data directory of the broker [/var/lib/rumq]"
    )
    parser.add_argument("--host", metavar="NAME", action="append", default=[], help="another host name of the broker")
    parser.add_argument("--group", metavar="NAME", default="", help="group that the broker runs as, which reads")
    parser.add_argument(
        "--device", metavar="NAME", action="append", default=[],
        help="make a user with a password for this device; may be repeated, and be given later",
    )  # fmt: skip
    parser.add_argument("--cluster", metavar="NAME", default="", help="cluster.name of the nodes")
    parser.add_argument(
        "--node", metavar="NAME", action="append", default=[], help="cluster.node of a node; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    folder = SecretsFolder(os.path.abspath(args.dir), group_id(args.group))
    check_devices(args.device)
    if args.node:
        try:
            make_nodes(folder, args.cluster, args.node)
        except OSError as fault:
            raise RumqError(f"{fault.filename or args.dir}: {fault.strerror}") from None
    if folder.has("config.toml"):
        if args.device:
            add_devices(folder, args.device)
        else:
            print(f"{folder.path('config.toml')} exists: nothing is changed")
        return 0
    try:
        make(folder, os.path.abspath(args.data), args.host, args.device)
    except OSError as fault:
        raise RumqError(f"{fault.filename or args.dir}: {fault.strerror}") from None
    return 0


def drawn_password() -> str:
    """One that a command takes for a value: without the "-" that an option begins with."""
    while (found := secrets.token_urlsafe(PASSWORD_BYTES)).startswith("-"):
        pass
    return found


def make(folder: SecretsFolder, data: str, hosts: list[str], devices: list[str]) -> None:
    """devices: their names. config.toml last: without it the next call goes on where this one was interrupted.

    raises: OSError, RumqError"""
    for each in (folder.name, data):
        if '"' in each or "\\" in each or not each.isprintable():
            raise RumqError(f"{each!r}: expected a path without quotes, backslashes and control characters")
    from rumq.auth.credentials.passwords import written

    folder.make("")
    make_certificates(folder, hosts)
    if not folder.has("rules.toml"):
        folder.write("rules.toml", RULES)
    if not folder.has("users"):
        passwords = {user: drawn_password() for user in dict.fromkeys((ADMIN, *devices))}
        folder.write("users", written({user: hashed(each) for user, each in passwords.items()}))
        show(passwords)
    elif devices:
        add_devices(folder, devices)
    folder.write("config.toml", CONFIG.format(folder=folder.name, data=data))
    print(f"settings: {folder.path('config.toml')}; clients verify the broker with {folder.path('certs/ca.pem')}")


def make_certificates(folder: SecretsFolder, hosts: list[str]) -> None:
    """An authority whose key only its owner reads, and the broker's certificate. raises: OSError, RumqError"""
    from rumq.cli.admin.dev_certs import make_server_certificate

    if folder.has("certs/server.pem"):
        return
    folder.make("certs")
    make_server_certificate(folder.path("certs"), hosts)
    for name, mode in (
        ("ca.key", OWNERS_MODE),
        ("ca.pem", 0o644),
        ("server.key", READERS_MODE),
        ("server.pem", 0o644),
    ):
        os.chmod(folder.path(f"certs/{name}"), mode)
    folder.give("certs/server.key")


def make_nodes(folder: SecretsFolder, cluster: str, nodes: list[str]) -> None:
    """Certificates of nodes for each other; only its owner reads the authority's key. raises: OSError, RumqError"""
    from rumq.cli.admin.certs import check_node_names
    from rumq.cli.admin.node_certs import make_node_certificates

    check_node_names(cluster, nodes)
    folder.make("")
    folder.make("nodes")
    kept = make_node_certificates(folder.path("nodes"), cluster, nodes)
    for node in nodes:
        if node not in kept:
            os.chmod(folder.path(f"nodes/{node}.key"), READERS_MODE)
            folder.give(f"nodes/{node}.key")


def check_devices(names: list[str]) -> None:
    """raises: RumqError for a name that its topics cannot have"""
    from rumq.auth.credentials.passwords import user_problem

    for name in names:
        problem = user_problem(name)
        if not problem and (set(name) & set("+#/") or name.startswith("$") or name == ADMIN):
            problem = f"expected a name without +, # and /, that does not begin with $ and is not {ADMIN}"
        if problem:
            raise RumqError(f"--device {name!r}: {problem}: it is a level of the device's topics, device/NAME/#")


def add_devices(folder: SecretsFolder, names: list[str]) -> None:
    """Users for devices that have none yet; who is there keeps the password. raises: RumqError"""
    from rumq.auth.credentials import files
    from rumq.auth.credentials.passwords import parse, written
    from rumq.auth.errors import SecretsError

    path = folder.path("users")
    try:
        users = parse(files.read_secrets(path, strict=False), path)
        passwords = {name: drawn_password() for name in names if name not in users}
        for name in dict.fromkeys(each for each in names if each in users):
            print(f"{name} is there, and keeps its password: rumqd passwd {path} {name} sets another")
        if passwords:
            files.replace(path, written(users | {user: hashed(each) for user, each in passwords.items()}))
            show(passwords)
            print("A running broker knows them after a reload: systemctl reload rumqd, or rumqd ask reload.")
    except SecretsError as fault:
        raise RumqError(str(fault)) from None
    except OSError as fault:
        raise RumqError(f"{path}: {fault.strerror}") from None
    warn_of_shared_device(folder)


def show(passwords: dict[str, str]) -> None:
    for user, password in passwords.items():
        print(f"{user:<8} {password}")
    print("These passwords are shown once: note them, or set others with rumqd passwd.")


def warn_of_shared_device(folder: SecretsFolder) -> None:
    """Folders of versions before: one user for all devices, whose topics go by the client id that each one chooses."""
    try:
        with open(folder.path("rules.toml"), encoding="utf-8") as file:
            is_shared = "device/%c/#" in file.read()
    except OSError:
        return
    if is_shared:
        print(
            f"{folder.path('rules.toml')} lets whoever is the user `device` reach the topics of any client id: write "
            'topics = ["device/%u/#"] without `users` there, and delete that user (rumqd passwd -D) when each device '
            "has its own"
        )


def hashed(password: str) -> str:
    from rumq.auth.credentials import hashes

    return hashes.argon2id(password.encode(), secrets.token_bytes(hashes.SALT_BYTES))


def group_id(name: str) -> int:
    """-1 for no name. raises: RumqError"""
    import grp

    try:
        return grp.getgrnam(name).gr_gid if name else -1
    except KeyError:
        raise RumqError(f"--group {name}: there is no such group on this machine") from None


class SecretsFolder:
    """Files that their owner changes and a group reads, -1: the owner's own."""

    def __init__(self, name: str, group: int) -> None:
        self.name, self._group = name, group

    def path(self, name: str) -> str:
        return os.path.join(self.name, name)

    def has(self, name: str) -> bool:
        return os.path.exists(self.path(name))

    def make(self, name: str) -> None:
        """A folder; one that exists keeps its mode. raises: OSError"""
        path = self.path(name)
        if not os.path.isdir(path):
            os.makedirs(path, 0o750)
            self.give(name)

    def write(self, name: str, text: str) -> None:
        """A new file, never readable by others. raises: OSError, FileExistsError too"""
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNERS_MODE)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(fd, READERS_MODE)
            os.fsync(fd)
        self.give(name)

    def give(self, name: str) -> None:
        """To the group. raises: OSError"""
        if self._group >= 0:
            os.chown(self.path(name), -1, self._group)
