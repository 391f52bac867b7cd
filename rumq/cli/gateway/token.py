"""`rumqd token`: tokens of the gateway. A secret is shown once; the file keeps its hash."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumq.gateway.access.tokens import Token
    from rumq.settings.table import Settings

ABOUT = """\
Tokens with which programs use the gateway's REST interface. `add` prints the token's secret, once; the file keeps only
its hash. Roles: read (everything that changes nothing), publish, administer (actions). A token publishes and reads
as its --user, under gateway.rules_file or auth.rules_file; where rules or mount points stand at listeners only, a token
may have no user. A running gateway reads the file again at SIGHUP of its broker.
"""
EXAMPLES = """\
examples:
  rumqd token add prometheus --role read
  rumqd token add desk --role read --role publish --user anna --config /etc/rumq/config.toml
  rumqd token add ops --role read --role publish --role administer --file /etc/rumq/tokens
  rumqd token list
  rumqd token remove desk

exit status: 0 done; 2 invalid arguments or file; 1 any other error
"""
SECONDS_MAX = 10 * 366 * 86_400
ROLES = ("read", "publish", "consume", "administer")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add", "remove", "list", "ls", "rm"))
    parser.add_argument("name", metavar="NAME", nargs="?", help="of the token, for events")
    parser.add_argument("--role", action="append", choices=ROLES, default=[], help="may be given several times [read]")
    parser.add_argument("--user", metavar="USER", default="", help="as whom it publishes and reads [nobody]")
    parser.add_argument(
        "--expires",
        metavar="TIME",
        type=seconds_of,
        default=0,
        help="until it expires: 30d, 12h, 90m [never]",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a token; of a new one with its secret")
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=Path,
        help="the broker's config.toml: says where tokens are, and whether they may have a user",
    )  # fmt: skip
    parser.add_argument("-d", "--data", metavar="DIR", help="data directory [that of --config, or rumq-data]")
    parser.add_argument("--file", metavar="FILE", help="gateway.tokens_file [gateway-tokens in the data directory]")


def run(args: argparse.Namespace) -> int:
    """Returns the exit status. raises: ConfigError for settings of --config, or a user that they do not allow"""
    from rumq.auth.errors import SecretsError

    try:
        return change(args)
    except SecretsError as fault:
        print(f"rumqd token: {fault}", file=sys.stderr)
        return 2
    except OSError as fault:
        print(f"rumqd token: {fault.filename}: {fault.strerror}", file=sys.stderr)
        return 1


def change(args: argparse.Namespace) -> int:
    """raises: SecretsError, OSError, ConfigError"""
    from rumq.auth.credentials import files
    from rumq.gateway.access import tokens as t
    from rumq.process.wiring.gateway_settings import tokens_path

    settings = settings_of(args)
    path = tokens_path(settings)
    if args.action in ("list", "ls"):
        for token in (t.parse(files.read_secrets(path), path) if os.path.exists(path) else {}).values():
            if args.json:
                print(json.dumps(about(token)))
            else:
                print(f"{token.name}  {','.join(sorted(token.roles))}  {token.user or '-'}  {expiry(token)}")
        return 0
    if not args.name or t.NAME.fullmatch(args.name) is None:
        print("rumqd token: give a NAME of letters, digits, . _ and -, at most 64", file=sys.stderr)
        return 2
    if not settings.gateway.tokens_file:
        os.makedirs(settings.data.dir, 0o700, exist_ok=True)  # tokens may be made before the broker's first start
    with files.locked(path):
        return change_locked(args, settings, path)


def change_locked(args: argparse.Namespace, settings: Settings, path: str) -> int:
    """As `change`, of add and remove, while nobody else changes the file."""
    from rumq.auth.credentials import files
    from rumq.gateway.access import tokens as t
    from rumq.process.wiring.gateway_settings import check_tokens

    known = t.parse(files.read_secrets(path), path) if os.path.exists(path) else {}
    same = [sha256 for sha256, token in known.items() if token.name == args.name]
    if args.action in ("remove", "rm"):
        if not same:
            print(f"rumqd token: there is no token {args.name!r} in {path}", file=sys.stderr)
            return 2
        del known[same[0]]
        files.replace(path, t.formatted(known))
        return 0
    if same:
        print(f"rumqd token: there is a token {args.name!r} already: remove it first", file=sys.stderr)
        return 2
    secret = t.new_secret()
    sha256 = t.hash_of(secret)
    expires_us = time.time_ns() // 1000 + args.expires * 1_000_000 if args.expires else 0
    known[sha256] = made = t.Token(args.name, frozenset(args.role or ["read"]), args.user, sha256, expires_us)
    check_tokens(settings, [made])
    files.replace(path, t.formatted(known))
    print(json.dumps(about(made) | {"secret": secret}) if args.json else secret)
    return 0


def settings_of(args: argparse.Namespace) -> Settings:
    """Of --config, with what the flags say; without it the defaults. raises: ConfigError"""
    from rumq.settings.load import Flag, load_settings

    given = (("data.dir", args.data, "--data"), ("gateway.tokens_file", args.file, "--file"))
    flags = [Flag(*each) for each in given if each[1] is not None]
    return load_settings(args.config, {} if args.config is None else os.environ, flags).settings


def about(token: Token) -> dict[str, object]:
    return {
        "name": token.name, "roles": sorted(token.roles), "user": token.user or None,
        "expires_us": token.expires_us or None,
    }  # fmt: skip


def expiry(token: Token) -> str:
    if not token.expires_us:
        return "-"
    when = datetime.fromtimestamp(token.expires_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{'expired' if token.is_expired(time.time_ns() // 1000) else 'until'} {when}"


def seconds_of(text: str) -> int:
    """30d, 12h, 90m or 600s, as seconds."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in units or not 1 <= int(number) * units[unit] <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text}: expected a time such as 30d, 12h, 90m or 600s, at most 3660d")
    return int(number) * units[unit]
