"""The broker's listener for its gateway, gRPC server, functions and bridges: a Unix socket without passwords.

It lies in the data directory, and only the broker's own user can open it: who can, can read and write the log anyway.
Rules apply as to any client: gateway.rules_file, or those of [auth]. A PROXY header says for whom is spoken."""

from __future__ import annotations

import os

import msgspec

from rumq.bridge.removed_bridges import has_bridges
from rumq.settings.table import Listener, Settings

NAME = "gateway.sock"


def gateway_socket(settings: Settings) -> str:
    return f"{os.path.abspath(settings.data.dir)}/{NAME}"


def is_gateway(settings: Settings, listener: Listener) -> bool:
    return is_wanted(settings) and listener.path == gateway_socket(settings)


def is_wanted(settings: Settings) -> bool:
    """Also for the process that ends what bridges of earlier settings have left."""
    is_used = settings.gateway.port or settings.grpc.port or settings.function or settings.bridge
    return bool(is_used) or has_bridges(settings.data.dir)


def with_gateway(settings: Settings) -> Settings:
    """The settings, with that listener if there is to be a gateway or a gRPC server, functions or bridges."""
    if not is_wanted(settings) or any(is_gateway(settings, each) for each in settings.listeners):
        return settings
    path = gateway_socket(settings)
    own = Listener(
        path=path, path_mode="600", anonymous="yes", proxies=("unix",), rules_file=settings.gateway.rules_file
    )
    return msgspec.structs.replace(settings, more_listeners=(*settings.more_listeners, own))
