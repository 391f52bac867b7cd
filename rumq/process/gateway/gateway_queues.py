"""The gateway's queues, in a nursery of their own. docs/reference/queues.md

They begin again after a fault of ours: what consumers held goes to others, and nothing else of the gateway ends."""

from __future__ import annotations

import trio

from rumq.events.event_log import tell
from rumq.gateway.handlers.context import Context
from rumq.process.wiring.queue_ports import queue_ports
from rumq.queues import Queues
from rumq.settings.table import Settings

AGAIN_SECONDS = 1.0


async def run_queues(
    settings: Settings, context: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve queues until cancelled, if the settings have them; started once requests may ask for them."""
    if not settings.queues.enabled:
        task_status.started()
        return
    # Rules are those of the gateway's tokens, as a reload leaves them.
    ports = queue_ports(settings, "gateway", lambda: context.rights.rules, context.broker.shards.ask, tell)
    is_first = True
    while True:
        queues = Queues(ports)
        context.queues.use(queues)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(context.queues.consumers.run)
                if is_first:
                    task_status.started()
                    is_first = False
                await queues.run()
        except Exception:  # ours
            tell("gateway.failed", exc_info=True)
        await trio.sleep(AGAIN_SECONDS)
