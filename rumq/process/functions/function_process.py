"""The process of a broker's functions: a thread for each, until SIGTERM or the end of the broker.

It reads the log's files and publishes over the broker's own Unix socket; the shards do not know it. Decision 62."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from commitlog import RealFiles
from rumq.auth.credentials.vouched import OWN_PASSWORD
from rumq.errors import DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.functions.function_counts import FOLDER, write_figures
from rumq.functions.function_thread import FunctionThread
from rumq.functions.rules import FunctionRules
from rumq.gateway.broker.broker_socket import open_broker
from rumq.process.listeners.gateway_listener import gateway_socket
from rumq.process.wiring.function_settings import check_functions, rules_of
from rumq.settings.table import Settings
from rumq.sink.sink_connection import SinkPartition, publish_all
from rumq.sink.sink_options import SinkOptions
from rumq.supervision.broker_parent import end_with_broker, is_orphan

WAITED = {signal.SIGTERM, signal.SIGINT}
TURN_SECONDS = 1.0
NICE = 5  # the broker has priority, and the workers have less than this


def serve(load: Callable[[], Settings], *, for_broker: bool) -> int:
    """for_broker: it ends with the broker that started it. raises: ConfigError, DataDirectoryError, RumqError"""
    broker = end_with_broker() if for_broker else None
    settings = load()
    setup_events(settings.events.format, settings.events.level)
    check_functions(settings)
    data = os.path.abspath(settings.data.dir)
    if not RealFiles().exists(f"{data}/FORMAT"):
        raise DataDirectoryError(settings.data.dir, "no data directory of rumq: name one with --data")
    lock = hold(Path(data, FOLDER))  # as long as this process lives
    os.nice(NICE)
    signal.pthread_sigmask(signal.SIG_BLOCK, {*WAITED, signal.SIGHUP})  # of all threads
    threads = {rules.name: thread_of(rules, settings, data) for rules in rules_of(settings)}
    stopping = threading.Event()
    for name, each in threads.items():
        threading.Thread(target=each.run, args=(stopping,), name=f"rumq-function-{name}", daemon=True).start()
    sender = EventSender(RING, data, "functions")
    while broker is None or not is_orphan(broker):
        sender.flush()
        write_figures(Path(data, FOLDER), {name: each.counts for name, each in threads.items()})
        found = signal.sigtimedwait(WAITED, TURN_SECONDS)
        if found is not None and not (found.si_signo == signal.SIGINT and for_broker):
            break  # a terminal sends SIGINT to the broker too, which stops us
    os.close(lock)
    os._exit(0)  # a batch that was begun is repeated; workers end with this process


def hold(folder: Path) -> int:
    """The lock of the functions: two processes would take each other's sessions. raises: RumqError"""
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RumqError(f"{folder}: another process runs the functions of this broker: stop it first") from None
    return lock


def thread_of(rules: FunctionRules, settings: Settings, data: str) -> FunctionThread:
    tell("function.started", name=rules.name, code=rules.code, filters=list(rules.filters), prefix=rules.prefix)
    broker = SinkOptions("", 0, False, username=rules.user or None, password=OWN_PASSWORD)
    return FunctionThread(
        rules, data, Path(data, FOLDER, rules.name), broker, partial(publish, gateway_socket(settings)), tell,
        now=time.monotonic, now_us=lambda: time.time_ns() // 1000,
    )  # fmt: skip


def publish(path: str, rows: Iterator[pa.RecordBatch], options: SinkOptions, partition: SinkPartition) -> int:
    return publish_all(rows, options, partition, partial(open_broker, path))
