"""The socket at which the gateway asks for figures of the gRPC server: a line in, a line of JSON out.

`rumq.gateway.broker.service_client` asks. Only the broker's own user can."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec

from rumq.admin.figures import CallCount, HistogramFigures, ServiceFigures
from rumq.gateway.broker.service_client import NAME
from rumq.services.call_figures import CallFigures
from rumq.unix_address import Address

SECONDS_MAX = 5.0


async def answer_figures(directory: str, figures: Callable[[], ServiceFigures]) -> None:
    """Until cancelled. Without a directory that can be written there are no figures, and all else goes on."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                if await reader.readline():
                    writer.write(msgspec.json.encode(figures()) + b"\n")
                    await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # whoever asked is gone
        finally:
            writer.close()

    path = f"{directory}/{NAME}"
    try:
        if os.path.exists(path):
            os.unlink(path)  # of one that was killed
        with Address(path) as address:
            server = await asyncio.start_unix_server(answer, address)
        os.chmod(path, 0o600)
    except OSError:
        await asyncio.Event().wait()
        return
    async with server:
        try:
            await asyncio.Event().wait()
        finally:
            if os.path.exists(path):
                os.unlink(path)


def figures_of(
    calls: CallFigures, *, published: int, records: int, refused_logins: int, refused_calls: int
) -> ServiceFigures:
    return ServiceFigures(
        calls=[CallCount(method=each, code=code, calls=n) for (each, code), n in sorted(calls.calls.items())],
        seconds={each: HistogramFigures(counts=h.counts, seconds=h.seconds) for each, h in calls.seconds.items()},
        open=dict(calls.open), published=published, records=records, refused_logins=refused_logins,
        refused_calls=refused_calls,
    )  # fmt: skip
