"""`rumqd passwd`: users of a password file, with the options of mosquitto_passwd(1).

A password is prompted for twice on a terminal, otherwise read from one line of standard input."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import secrets
import sys

from rumq.errors import RumqError

ABOUT = """\
Add a user to a password file, or change the password of a user. A line of the file is user:hash; the setting
auth.password_file or listener.password_file names the file. A running broker reads it again at SIGHUP. Files of
mosquitto_passwd can be used unchanged.
"""
EXAMPLES = """\
examples:
  rumqd passwd -c users alice               a new file with one user; prompts for the password
  rumqd passwd users pump-7 < secret.txt    the password is one line of standard input
  rumqd passwd -b users bob 'long secret'   on the command line, where others can see it
  rumqd passwd -H scram users carol         for clients that speak SCRAM-SHA-256 (MQTT 5), and others
  rumqd passwd -D users bob                 delete
  rumqd passwd -L users                     the users' names
  rumqd passwd -U users                     hash the plain text passwords of a file

exit status: 0 done; 2 invalid arguments or file; 1 any other error
"""
HASHES = ("argon2id", "scram", "sha512-pbkdf2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the password file")
    parser.add_argument("user", metavar="USER", nargs="?", help="the user's name")
    parser.add_argument("password", metavar="PASSWORD", nargs="?", help="only with -b")
    parser.add_argument(
        "-b",
        "--batch",
        action="store_true",
        help="read the password from the command line, or standard input",
    )
    parser.add_argument("-c", "--create", action="store_true", help="create the file, replacing an existing one")
    parser.add_argument("-D", "--delete", action="store_true", help="delete the user")
    parser.add_argument("-L", "--list", action="store_true", help="print the names of the users, one a line")
    parser.add_argument("--json", action="store_true", help="with -L: one JSON object a user")
    parser.add_argument("-U", "--upgrade", action="store_true", help="hash the plain passwords of a file")
    parser.add_argument(
        "-H", "--hash", choices=HASHES, default="argon2id",
        help="argon2id; scram also serves SCRAM-SHA-256; sha512-pbkdf2 is mosquitto's format [argon2id]",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from rumq.auth.errors import SecretsError

    try:
        return change(args)
    except SecretsError as fault:
        raise RumqError(str(fault)) from None
    except OSError as fault:
        raise RumqError(f"{args.file}: cannot be written: {fault.strerror}") from None


def change(args: argparse.Namespace) -> int:
    """Change the file; returns the exit status. raises: SecretsError, OSError"""
    from rumq.auth.credentials import files
    from rumq.auth.credentials.passwords import PASSWORD_BYTES_MAX, parse, user_problem, written

    if args.list:
        if args.user or args.create or args.delete or args.upgrade:
            return refused("-L takes only the file")
        for user in parse(files.read_secrets(args.file, strict=False), args.file):
            print(json.dumps({"user": user}) if args.json else user)
        return 0
    if args.upgrade:
        if args.user or args.create or args.delete:
            return refused("-U takes only the file")
        return upgrade(args.file, args.hash)
    if not args.user:
        return refused("USER is missing")
    if problem := user_problem(args.user):
        return refused(problem)
    if args.password is not None and not args.batch:
        return refused("a password on the command line needs -b, because other users can see it")
    if args.delete and (args.create or args.password is not None):
        return refused("-D takes neither -c nor a password")
    users = {} if args.create else parse(files.read_secrets(args.file, strict=False), args.file)
    if args.delete:
        if args.user not in users:
            raise RumqError(f"{args.file}: no user {args.user!r}")
        del users[args.user]
    else:
        password = args.password.encode() if args.password is not None else prompt_password()
        if not password or len(password) > PASSWORD_BYTES_MAX:
            return refused(f"expected a password of 1 to {PASSWORD_BYTES_MAX} bytes")
        users[args.user] = hashed(password, args.hash)
    files.replace(args.file, written(users))
    return 0


def upgrade(path: str, kind: str) -> int:
    from rumq.auth.credentials import files, hashes
    from rumq.auth.credentials.passwords import user_problem, written
    from rumq.auth.errors import SecretsError

    users: dict[str, str] = {}
    for number, line in enumerate(files.read_secrets(path, strict=False).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, rest = line.partition(":")
        if problem := ("expected user:password" if not colon or not rest else user_problem(user)):
            raise SecretsError(path, number, problem)
        users[user] = hashed(rest.encode(), kind) if hashes.problem_of(rest.strip()) else rest.strip()
    files.replace(path, written(users))
    return 0


def hashed(password: bytes, kind: str) -> str:
    from rumq.auth.credentials import hashes

    makers = dict(zip(HASHES, (hashes.argon2id, hashes.scram, hashes.pbkdf2_sha512), strict=True))
    return makers[kind](password, secrets.token_bytes(hashes.SALT_BYTES))


def prompt_password() -> bytes:
    """The password, prompted for twice on a terminal, otherwise the first line of standard input."""
    if not sys.stdin.isatty():
        return os.fsencode(sys.stdin.readline().rstrip("\r\n"))
    first = getpass.getpass("Password: ")
    if first != getpass.getpass("Again: "):
        raise RumqError("the two passwords differ")
    return first.encode()


def refused(why: str) -> int:
    print(f"rumqd passwd: {why}; see rumqd passwd --help", file=sys.stderr)
    return 2
