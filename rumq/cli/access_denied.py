"""A PermissionError as a sentence for the operator: the owner of the file or directory, and the way out."""

from __future__ import annotations

import os
import pwd


def sentence(fault: PermissionError) -> str:
    """The path, this user, the owner of the obstacle, and the way out."""
    path = os.fsdecode(fault.filename) if isinstance(fault.filename, (str, bytes)) else "a file"
    obstacle = nearest(path)
    owner, me = name(os.stat(obstacle).st_uid), name(os.geteuid())
    where = path if obstacle == os.path.abspath(path) else f"{path} (in {obstacle})"
    if owner == me:
        return f"{where}: its mode denies access to its owner ({me}): chmod u+rwX {obstacle}"
    return f"{where}: user {me} has no access, it belongs to {owner}: run this as {owner} (sudo -u {owner} rumqd ...)"


def nearest(path: str) -> str:
    """The path, or the lowest directory above it that this user can stat: the obstacle."""
    path = os.path.abspath(path)
    while True:
        try:
            os.stat(path)
        except OSError:
            if path == "/":
                return path
            path = os.path.dirname(path)
        else:
            return path


def name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
