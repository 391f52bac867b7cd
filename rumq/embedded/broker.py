"""`rumq.broker()`: a whole broker for as long as a block runs, in a program or a test. docs/guides/testing.md

    with rumq.broker() as broker:                      # plain code, and asyncio
        ...
    async with rumq.broker(log={"durability": "process"}) as broker:        # trio, and asyncio
        async with broker.client() as client:
            await client.publish("plant/7/temp", b"21.5", qos=1)

The broker is a process of its own (decision 63), so that a test can kill it. Refuses to know MQTT."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from rumq.embedded import template
from rumq.embedded.broker_link import BrokerLink, LinkClosed, LinkMessage
from rumq.embedded.given_settings import Given, settings_tree
from rumq.embedded.readiness import Wait, run_now, wait_as_task, wait_blocking
from rumq.errors import ConfigError, DataDirectoryError, Fault, RumqError

if TYPE_CHECKING:
    from rumq.client import Client

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 10.0  # then it is killed
END_SECONDS_MAX = 10.0
EVENTS_SHOWN = 3  # the last ones, in the error of a broker that does not start


class BrokerFailed(RumqError):
    """A broker inside a program did not start, or is not there any more. why: with its last events"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the broker of this program: {self.why}"


class EmbeddedAddress(NamedTuple):
    host: str
    port: int


class EmbeddedBroker:
    """A broker of this program. What every kind has; `BlockingBroker` and `AsyncBroker` also start and end it."""

    def __init__(self, settings: dict[str, Any], data: str | None) -> None:
        """data: the data directory, absolute; None: a temporary one"""
        self.settings = settings
        self._given_data = data
        self._link: BrokerLink | None = None
        self._directory = ""
        self._scheme = "mqtt"
        self._is_running = False
        self.address = EmbeddedAddress("", 0)

    @property
    def host(self) -> str:
        return self.address.host

    @property
    def port(self) -> int:
        return self.address.port

    @property
    def url(self) -> str:
        """As `rumq.client.connect` and most libraries take it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}"

    @property
    def data(self) -> Path:
        """The data directory, as `rumq.read` takes it."""
        return Path(self._given_data or f"{self._directory}/data")

    @property
    def is_running(self) -> bool:
        """False once it was stopped or killed, or has died."""
        try:
            self._take_messages()
        except LinkClosed:
            self._is_running = False
        return self._is_running

    def events(self, *names: str) -> list[dict[str, Any]]:
        """What it has said so far, over restarts; with names only those. docs/reference/events.md"""
        try:
            lines = Path(self._directory, "events.jsonl").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [event for event in found if not names or event.get("event") in names]

    def client(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        """A client of `rumq.client`, under trio, connected to it. options: as of `rumq.client.connect`"""
        from rumq.client import connect  # a program with another client does not import it

        return connect(self.url, **options)

    # --- its life: one coroutine each, whatever waits

    async def _open(self, wait: Wait) -> None:
        """raises: ConfigError, DataDirectoryError, BrokerFailed"""
        try:
            self._link = template.open_link()
            try:
                await self._start(wait)
            except LinkClosed:  # the template ended just then, idle
                self._link.close()
                self._link = template.open_link()
                await self._start(wait)
        except LinkClosed as fault:
            raise BrokerFailed(f"the process that starts it has ended ({fault})") from fault
        except OSError as fault:
            raise BrokerFailed(f"cannot start it: {fault}") from fault

    async def _start(self, wait: Wait) -> None:
        """Start it on its data directory and return once it accepts clients. raises: as `_open`, LinkClosed"""
        link = self._open_link()
        request = {
            "settings": self.settings, "data": self._given_data, "cwd": os.getcwd(), "port": self.address.port,
        }  # fmt: skip
        link.send({"start": request})
        until = time.monotonic() + START_SECONDS_MAX
        while not self._is_running:
            for message in link.receive_nowait():
                self._take(message)
                if "refused" in message:
                    raise refusal(message)
                if "ended" in message:
                    raise BrokerFailed(f"it ended with status {message['ended']}{self._last_words()}")
            if (left := until - time.monotonic()) <= 0:
                raise BrokerFailed(f"not ready within {START_SECONDS_MAX:.0f} s{self._last_words()}")
            if not self._is_running:
                await wait(link.fileno(), left)

    async def _signal(self, number: int, wait: Wait, seconds: float) -> bool:
        """Send it a signal that ends it; returns whether it has ended within so long. raises: LinkClosed"""
        link = self._open_link()
        if self.is_running:
            link.send({"signal": number})
        until = time.monotonic() + seconds
        while self.is_running:
            if (left := until - time.monotonic()) <= 0:
                return False
            await wait(link.fileno(), left)
        return True

    async def _restart(self, wait: Wait) -> None:
        try:
            if self.is_running and not await self._signal(signal.SIGTERM, wait, STOP_SECONDS_MAX):
                await self._signal(signal.SIGKILL, wait, END_SECONDS_MAX)
            await self._start(wait)
        except LinkClosed as fault:
            raise BrokerFailed(f"the process that starts it has ended ({fault})") from fault

    async def _close(self, wait: Wait) -> None:
        """Stop it and remove what it left. If the wait is cancelled it is killed, and gone as well on return."""
        if self._link is None:
            return
        try:
            await self._signal(signal.SIGTERM, wait, STOP_SECONDS_MAX)
        except LinkClosed:
            pass
        finally:
            self._end_now()

    def _end_now(self) -> None:
        """Have the template kill it if it runs, and remove its directory; it does so in milliseconds."""
        link, self._link, self._is_running = self._link, None, False
        if link is not None:
            run_now(wait_gone(link))
            template.tidy(self._directory)

    def _take_messages(self) -> None:
        if self._link is not None:
            for message in self._link.receive_nowait():
                self._take(message)

    def _take(self, message: LinkMessage) -> None:
        if "directory" in message:
            self._directory = message["directory"]
        elif "ended" in message:
            self._is_running = False
        elif ready := message.get("ready"):
            self.address = EmbeddedAddress(ready["host"], ready["port"])
            self._scheme, self._is_running = ready["scheme"], True

    def _open_link(self) -> BrokerLink:
        if self._link is None:
            raise BrokerFailed("the block that it belonged to has ended")
        return self._link

    def _last_words(self) -> str:
        last = [f"{each.get('event')}: {each.get('why') or each.get('exception', '')}" for each in self.events()]
        return f"; it said last: {'; '.join(last[-EVENTS_SHOWN:])}" if last else ""


class BlockingBroker(EmbeddedBroker):
    """A broker for code that blocks: tests without a loop, and short calls within one."""

    def kill(self) -> None:
        """kill -9 of all its processes: nothing is flushed, nobody is told."""
        run_now(self._signal(signal.SIGKILL, wait_blocking, END_SECONDS_MAX))

    def stop(self) -> None:
        """As `systemctl stop`: every client is told, the log is synced. `restart` starts it again."""
        run_now(self._signal(signal.SIGTERM, wait_blocking, STOP_SECONDS_MAX))

    def restart(self) -> None:
        """Start it again on its port and its data directory; one that runs is stopped first. raises: BrokerFailed"""
        run_now(self._restart(wait_blocking))


class AsyncBroker(EmbeddedBroker):
    """A broker for tasks of trio or asyncio: the same, and others run while it is waited for."""

    async def kill(self) -> None:
        """kill -9 of all its processes: nothing is flushed, nobody is told."""
        await self._signal(signal.SIGKILL, wait_as_task, END_SECONDS_MAX)

    async def stop(self) -> None:
        """As `systemctl stop`: every client is told, the log is synced. `restart` starts it again."""
        await self._signal(signal.SIGTERM, wait_as_task, STOP_SECONDS_MAX)

    async def restart(self) -> None:
        """Start it again on its port and its data directory; one that runs is stopped first. raises: BrokerFailed"""
        await self._restart(wait_as_task)


class BrokerBlock:
    """What `rumq.broker()` returns: to be used once, by `with` or `async with`."""

    def __init__(self, settings: dict[str, Any], data: str | None) -> None:
        self._settings, self._data = settings, data
        self._broker: EmbeddedBroker | None = None

    def __enter__(self) -> BlockingBroker:
        self._broker = broker = BlockingBroker(self._settings, self._data)
        try:
            run_now(broker._open(wait_blocking))
        except BaseException:
            broker._end_now()
            raise
        return broker

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._broker is not None:
            run_now(self._broker._close(wait_blocking))

    async def __aenter__(self) -> AsyncBroker:
        self._broker = broker = AsyncBroker(self._settings, self._data)
        try:
            await broker._open(wait_as_task)
        except BaseException:
            broker._end_now()
            raise
        return broker

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._broker is not None:
            await self._broker._close(wait_as_task)


def broker(
    settings: Given | None = None, *, data: str | os.PathLike[str] | None = None, **sections: Given | list[Given]
) -> BrokerBlock:  # fmt: skip
    """A whole broker, on a free port of 127.0.0.1, for a `with` or an `async with` block; nothing is left behind it.

    settings: with the names of config.toml, `{"log": {"durability": "process"}}` or `{"log.durability": "process"}`;
      the environment is not looked at
    data: its data directory, which is kept; None: a temporary one, which is removed
    sections: the same settings as keywords: `log={"durability": "process"}`, `stream=[{"name": ..., "filters": ...}]`
    raises: entering the block: ConfigError with every faulty setting, DataDirectoryError, BrokerFailed
    cost: the first of a program 0.3 to 0.5 s of imports, in another process; each later one a fork
    """
    return BrokerBlock(settings_tree(settings, sections), None if data is None else os.path.abspath(data))


async def wait_gone(link: BrokerLink) -> None:
    """Close the link, once the other end has removed everything."""
    link.finish()
    until = time.monotonic() + END_SECONDS_MAX
    try:
        while (left := until - time.monotonic()) > 0:
            link.receive_nowait()
            await wait_blocking(link.fileno(), left)
    except LinkClosed:
        pass
    finally:
        link.close()


def refusal(message: LinkMessage) -> RumqError:
    """The error of a broker that did not start, as if it had been raised here."""
    if message.get("faults"):
        return ConfigError(*(Fault(*each) for each in message["faults"]))
    if message.get("data"):
        return DataDirectoryError(*message["data"])
    return BrokerFailed(message["refused"])
