"""The table of settings, continued: [queues]."""

from typing import Annotated

from msgspec import Struct

from rumq.settings.table.setting_types import DAY_SECONDS, RESTART, choice, number


# fmt: off
# A table: a formatter would give each argument a line.
class QueueSection(Struct, frozen=True, kw_only=True):
    """Queues and channels, through REST and gRPC: docs/reference/queues.md. They lie in two streams of their own,
    queues and queues-lasting, which [[stream]] may define otherwise.
    """

    enabled: Annotated[
        bool, choice("there are queues: the streams for them, and their calls in REST and gRPC", RESTART)
    ] = False
    ttl_seconds_max: Annotated[
        int, number(
            "longest time to live of messages, after which their bytes leave the disk, whole segments at a time",
            RESTART, "seconds", 1, 30 * DAY_SECONDS
        )
    ] = 3600
    lasting_seconds_max: Annotated[
        int, number(
            "the same of dead letters, and longest delay of a message", RESTART, "seconds", 60, 30 * DAY_SECONDS
        )
    ] = 7 * DAY_SECONDS
    queues_max: Annotated[
        int, number(
            "queues; creating one more is refused; each costs memory in every door", RESTART, "queues", 1, 10**6
        )
    ] = 10_000
    channels_max: Annotated[
        int, number(
            "channels of all queues; creating one more is refused; each costs memory in a shard, and every door",
            RESTART, "channels", 1, 10**6
        )
    ] = 100_000
    delayed_max: Annotated[
        int, number(
            "messages that wait in one door for their time; pushing one more with a delay there is refused",
            RESTART, "messages", 1, 30_000
        )
    ] = 10_000
