"""The table of settings, continued: [[function]]."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rumq.settings.table.setting_types import GIB, MIB, RESTART, choice, extra, maybe_text, number, text

# fmt: off
# A table: a formatter would give each argument a line.


class Function(Struct, frozen=True, kw_only=True):
    """A Python function that gets batches of records, and whose results are published: docs/guides/functions.md.
    Requires the extra "parquet".
    """

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]{0,31}\Z",
            description="name of the function, in events, metrics and client ids",
            extra=extra("text of a-z, 0-9, _ and -, at most 32, beginning with a letter or digit", RESTART),
        ),
    ] = "function"
    filters: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="MQTT topic filters of the records that it gets",
            extra=extra('a list of MQTT topic filters, such as ["plant/#", "pump/+/state"]', RESTART),
        ),
    ] = ("plant/#",)
    code: Annotated[
        str, text(
            'where it is: "file.py" (its function transform), "file.py:name" or "module:name"', RESTART, 4096
        )
    ] = "function.py"
    prefix: Annotated[
        str, text(
            'before the topic of each result, such as "derived/"; no function may read what comes back to itself',
            RESTART, 1024
        )
    ] = "derived/"
    timeout_ms: Annotated[
        int, number("time for one batch; then it is killed", RESTART, "milliseconds", 1, 600_000)
    ] = 1000
    memory_bytes_max: Annotated[
        int, number(
            "address space that it may use beyond what it has when it is loaded", RESTART, "bytes", 16 * MIB, 256 * GIB
        )
    ] = 256 * MIB
    on_failure: Annotated[
        Literal["hold", "pass", "refuse"], choice(
            'of a batch that it could not do: "hold" tries it again, and nothing behind it; "pass": its records go on '
            'unchanged; "refuse": nothing of it is published', RESTART
        )
    ] = "hold"
    records_max: Annotated[int, number("records of a batch", RESTART, "records", 1, 1_000_000)] = 10_000
    start: Annotated[
        Literal["earliest", "latest"], choice(
            'where it begins the first time: "earliest": at the first record that is kept; "latest": with what comes '
            "once it has started", RESTART
        )
    ] = "earliest"
    user: Annotated[
        str, maybe_text("user as whom it publishes, by the rules for that user; empty: as nobody", RESTART)
    ] = ""
