"""Brokers by name, in a file of the user: the address of each, and its token. Nobody else can read it.

`$XDG_CONFIG_HOME/rumq/contexts.json`, by default `~/.config/rumq/contexts.json`, mode 600."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from rumq.auth.credentials.files import exposed
from rumq.errors import RumqError
from rumq.settings.loopback import is_loopback

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class SavedContext(msgspec.Struct, kw_only=True, omit_defaults=True):
    """url: of a gateway; else data: a data directory on this machine

    token: a secret; token_file: read at each use instead"""

    url: str = ""
    data: str = ""
    token: str = ""
    token_file: str = ""
    cafile: str = ""


class Contexts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """current: the one that is used where none is named; empty: none"""

    current: str = ""
    contexts: dict[str, SavedContext] = {}


def path_of(environ: dict[str, str] | os._Environ[str]) -> Path:
    home = environ.get("XDG_CONFIG_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path(environ.get("HOME", os.path.expanduser("~"))) / ".config"
    return base / "rumq" / "contexts.json"


def load(path: Path) -> Contexts:
    """raises: RumqError for a file that cannot be used, or that others can read"""
    try:
        text = path.read_bytes()
        mode = path.stat().st_mode & 0o077
    except FileNotFoundError:
        return Contexts()
    except OSError as fault:
        raise RumqError(f"{path}: {fault.strerror}") from None
    if mode:
        raise RumqError(f"{path} has tokens, and others can read or change it: chmod 600 {path}")
    try:
        return msgspec.json.decode(text, type=Contexts)
    except msgspec.MsgspecError as fault:
        raise RumqError(f"{path}: {fault}: repair or remove it") from None


def save(path: Path, contexts: Contexts) -> None:
    """Replaces the file at once. raises: RumqError"""
    new = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(contexts), indent=2) + b"\n")
            file.flush()
            os.fsync(fd)
        os.replace(new, path)
    except OSError as fault:
        raise RumqError(f"{fault.filename or path}: {fault.strerror}") from None


def context_named(contexts: Contexts, name: str) -> SavedContext:
    """raises: RumqError"""
    found = contexts.contexts.get(name)
    if found is None:
        names = ", ".join(sorted(contexts.contexts)) or "none: rumqd context add NAME --url URL"
        raise RumqError(f"there is no context {name!r}; known are {names}")
    return found


def exposure(url: str) -> str:
    """Why a token must not be sent to this address; empty: TLS, or this machine, keeps it."""
    address = urlsplit(url)
    if address.scheme != "http" or is_loopback(address.hostname or ""):
        return ""
    return (
        f"the token crosses the network in the clear to {url}, and whoever listens may use it: give https:// "
        "(gateway.tls_certificate), or tunnel to the broker's localhost (ssh -L)"
    )


def secret_in(path: str) -> str:
    """The first line of a file. raises: RumqError, also for a file that everybody on this machine can read"""
    if problem := exposed(path):
        raise RumqError(f"{path} has a token, and {problem}")
    try:
        with open(path, encoding="utf-8") as file:
            secret = file.readline().strip()
    except OSError as fault:
        raise RumqError(f"{path}: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise RumqError(f"{path} has no token: it is no text") from None
    if not secret:
        raise RumqError(f"{path} has no token: its first line is empty")
    return secret
