"""Opens the outbox of a client, and chooses the options of its connection: the session belongs to the file."""

from __future__ import annotations

import time
from dataclasses import replace
from secrets import token_hex

from commitlog import RealFiles
from rumq.client.outbox.outbox import ClientOutbox, OutboxOptions
from rumq.client.outbox.outbox_errors import OutboxError
from rumq.client.outbox.outbox_log import OutboxLog
from rumq.client.session.options import ConnectOptions

SESSION_SECONDS = 7 * 86_400  # so long the broker keeps the packet ids of an outbox that is away


def open_log(store: OutboxOptions, client_id: str) -> OutboxLog:
    """The outbox's files, which belong to one client id from their first use on. May wait for a disk.

    raises: OutboxInUse, OutboxFailed, OutboxError"""
    log = OutboxLog(RealFiles(), store.path, store.bytes_max, syncs=store.syncs, now_us=lambda: time.time_ns() // 1000)
    known = log.progress.client_id
    if known and client_id and known != client_id:
        log.close()
        raise OutboxError(
            store.path, f"it belongs to client id {known!r}: connect as that one, or give {client_id!r} another outbox"
        )
    if not known:
        try:
            log.mark(replace(log.progress, client_id=client_id or f"outbox-{token_hex(8)}"))
            log.write()
        except OutboxError:
            log.close()
            raise
    return log


def open_outbox(store: OutboxOptions, options: ConnectOptions) -> tuple[ClientOutbox, OutboxLog, ConnectOptions]:
    """The outbox, its files, and the options with a session that outlives the connection. raises: as `open_log`"""
    log = open_log(store, options.client_id)
    chosen = replace(
        options,
        client_id=log.progress.client_id,
        clean_start=False,
        session_expiry=options.session_expiry or SESSION_SECONDS,
        reconnect=options.reconnect or True,
        begin_offline=True,
    )
    return ClientOutbox(log, store, options.version), log, chosen
