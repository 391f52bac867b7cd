"""Which broker is asked: --data, --url or --context; else the context in use; else ./rumq-data."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rumq.errors import ConfigError, Fault, RumqError

if TYPE_CHECKING:
    from rumq.cli.ask.source import Source

DATA = "rumq-data"


def add_source_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "which broker", "by default that of the context in use (rumqd context use), else of ./rumq-data"
    ).add_argument
    none = argparse.SUPPRESS
    add("-d", "--data", metavar="DIR", default=none, help="data directory of a broker on this machine")
    add("--url", metavar="URL", default=none, help="a gateway: http[s]://host:port")
    add("--context", metavar="NAME", default=none, help="one of rumqd context ls")
    add("--token-file", metavar="FILE", default=none, help="the gateway's token, its first line [RUMQ_TOKEN]")
    add("--cafile", metavar="FILE", default=none, help="PEM file of trusted authorities [the system's]")


def source_of(args: argparse.Namespace) -> Source:
    """raises: RumqError, ConfigError"""
    from rumq.cli.ask import contexts as c

    given = {name: getattr(args, name, None) for name in ("data", "url", "context", "token_file", "cafile")}
    named = [name for name in ("data", "url", "context") if given[name] is not None]
    if len(named) > 1:
        raise ConfigError(Fault(f"--{named[1]}", "", "", f"cannot be combined with --{named[0]}"))
    name = given["context"]
    if not named:
        name = os.environ.get("RUMQ_CONTEXT") or c.load(c.path_of(os.environ)).current or None
    if name is not None:
        context = c.context_named(c.load(c.path_of(os.environ)), name)
    else:
        context = c.SavedContext(url=given["url"] or "", data=given["data"] or ("" if given["url"] else DATA))
    if not context.url:
        if (flag := next((each for each in ("token_file", "cafile") if given[each] is not None), "")) != "":
            raise ConfigError(Fault(f"--{flag.replace('_', '-')}", "", "", "is of a gateway: give --url too"))
        from rumq.cli.ask.socket_source import SocketSource

        return SocketSource(context.data)
    from rumq.cli.ask.rest_source import RestSource

    token = token_of(context, given["token_file"], os.environ.get("RUMQ_TOKEN", ""), is_named=name is not None)
    cafile = given["cafile"] or context.cafile
    if cafile and not Path(cafile).is_file():
        raise RumqError(f"--cafile {cafile}: there is no such file")
    if token and (why := c.exposure(context.url)):
        print(f"rumqd: warning: {why}", file=sys.stderr)
    return RestSource(context.url, token, cafile)


def token_of(context: object, file: str | None, variable: str, *, is_named: bool) -> str:
    """Of a flag before the context's, and that before the environment's: a variable may be another broker's."""
    from rumq.cli.ask import contexts as c

    assert isinstance(context, c.SavedContext)
    if file is not None:
        return c.secret_in(file)
    if is_named and context.token_file:
        return c.secret_in(context.token_file)
    return (context.token if is_named else "") or variable.strip()
