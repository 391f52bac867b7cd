"""The gateway's queues: what they need of the process, and a nursery of their own. docs/reference/queues.md

They begin again after a fault of ours: what consumers held goes to others, and nothing else of the gateway ends."""

from __future__ import annotations

import time
from functools import partial

import trio

from rumq.auth.identity import Identity
from rumq.auth.permit import Permit
from rumq.events.event_log import tell
from rumq.gateway.broker.broker_socket import open_broker
from rumq.gateway.handlers.context import Context
from rumq.process.listeners.gateway_listener import gateway_socket
from rumq.queues import Ports, Queues
from rumq.settings.table import Settings

AGAIN_SECONDS = 1.0


async def run_queues(
    settings: Settings, context: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve queues until cancelled, if the settings have them; started once requests may ask for them."""
    if not settings.queues.enabled:
        task_status.started()
        return
    ports = ports_of(settings, context)
    is_first = True
    while True:
        queues = Queues(ports)
        context.use_queues(queues)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(context.consumers.run)
                if is_first:
                    task_status.started()
                    is_first = False
                await queues.run()
        except Exception:  # ours
            tell("gateway.failed", exc_info=True)
        await trio.sleep(AGAIN_SECONDS)


def ports_of(settings: Settings, context: Context) -> Ports:
    """Rules are those of the gateway's tokens, as a reload leaves them."""
    node = settings.cluster.node if settings.cluster.name else ""

    def permit_of(user: str) -> Permit | None:
        return None if context.rules is None else context.rules.permit(Identity(user or None), "")

    return Ports(
        name="-".join(filter(None, ("gateway", node))), open_broker=partial(open_broker, gateway_socket(settings)),
        permit_of=permit_of, event=tell, now_us=lambda: time.time_ns() // 1000, views=context.records.views.current,
    )  # fmt: skip
