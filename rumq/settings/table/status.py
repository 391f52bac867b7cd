"""The table of settings, continued: [sys] and [events]."""

from typing import Annotated, Literal

from msgspec import Struct

from rumq.settings.types.setting_types import DAY_SECONDS, LIVE, RESTART, choice, number

# fmt: off
# A table: a formatter would give each argument a line.


class Sys(Struct, frozen=True, kw_only=True):
    """Status topics under $SYS; docs/reference/sys.md lists them."""

    interval_seconds: Annotated[
        int, number("interval at which changed values are published; 0: never", RESTART, "seconds", 0, 86_400)
    ] = 10


class Events(Struct, frozen=True, kw_only=True):
    """Events on standard error, rumqd's log for the operator; docs/reference/events.md lists them."""

    format: Annotated[
        Literal["auto", "human", "json"], choice('output format; "auto": human on a terminal, otherwise JSON', LIVE)
    ] = "auto"
    level: Annotated[
        Literal["debug", "info", "warning", "error"], choice("lowest level that is written", LIVE)
    ] = "info"
    lag_records_max: Annotated[
        int, number(
            "a session with a longer backlog is reported (consumer.lagging); 0: never", RESTART, "records", 0, 2**60
        )
    ] = 1_000_000
    lag_seconds_max: Annotated[
        int, number(
            "a session whose oldest undelivered record is older is reported (consumer.lagging); 0: never",
            RESTART, "seconds", 0, 3_650 * DAY_SECONDS
        )
    ] = 0
