"""The table of settings, continued: [[function]] and [[bridge]], each in a process beside the broker."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rumq.settings.types.setting_types import GIB, LIVE, MIB, RESTART, choice, extra, maybe_text, number, text

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


class Bridge(Struct, frozen=True, kw_only=True):
    """A bridge: messages to and from another MQTT broker, also when it is away for days: docs/guides/bridges.md. A
    reload starts, changes and ends bridges; the first one needs a restart.
    """

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]{0,31}\Z",
            description="name of the bridge, in events, metrics and client ids",
            extra=extra("text of a-z, 0-9, _ and -, at most 32, beginning with a letter or digit", LIVE),
        ),
    ] = "bridge"
    url: Annotated[
        str, text("the other broker: mqtt://HOST:PORT, mqtts://, ws://, wss:// or unix:///PATH", LIVE, 4096)
    ] = "mqtt://localhost:1884"
    more_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="further addresses of the other broker, tried in turn when one fails; the first one, url, is "
            "gone back to once it can be reached",
            extra=extra('a list of text such as ["mqtt://second.example"], or []', LIVE),
        ),
    ] = ()
    round_robin: Annotated[
        bool, choice("all addresses are equal: the next one is used when a connection ends", LIVE)
    ] = False
    mqtt_version: Annotated[
        Literal["auto", "5", "3.1.1"], choice(
            'version of MQTT at the other broker; "auto": 5, or 3.1.1 where that is refused', LIVE
        )
    ] = "auto"
    topics: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description='what it relays: "PATTERN [out|in|both] [0|1|2] [LOCAL_PREFIX] [REMOTE_PREFIX]", as in '
            "mosquitto.conf",
            extra=extra('a list of text such as ["plant/# out 2", "commands/# in 1"]', LIVE),
        ),
    ] = ("# out 2",)
    user: Annotated[str, maybe_text("user at the other broker; empty: none", LIVE)] = ""
    password_file: Annotated[
        str, maybe_text("file of that user's password, or token, on one line; read again at each connection", LIVE)
    ] = ""
    local_user: Annotated[
        str, maybe_text(
            "user here, whose rules hold for the bridge; empty: what its topics say, and nothing else", LIVE
        )
    ] = ""
    client_id: Annotated[
        str, maybe_text("client id at the other broker; empty: of the name and this broker's id", LIVE)
    ] = ""
    tls_authority: Annotated[
        str, maybe_text("PEM file of who signs the other broker's certificate; empty: the system's", LIVE)
    ] = ""
    tls_certificate: Annotated[str, maybe_text("PEM file of a certificate for this side; empty: none", LIVE)] = ""
    tls_key: Annotated[str, maybe_text("PEM file of its key; empty: in that of the certificate", LIVE)] = ""
    notification_topic: Annotated[
        str, maybe_text(
            "topic of a retained 1 while the bridge is connected and 0 otherwise, here and there; empty: none, "
            "$SYS/broker/connection/NAME/state says so here", LIVE
        )
    ] = ""
    notifications_local_only: Annotated[
        bool, choice("the other broker gets no message on notification_topic", LIVE)
    ] = False
    exactly_once: Annotated[
        bool, choice(
            "between rumq brokers each message of QoS 1 is there once: it is carried as QoS 2, with two packets more",
            LIVE,
        )
    ] = True
    inflight_max: Annotated[
        int, number("messages each way without an answer; the other broker may take fewer", LIVE, "messages", 1, 65_535)
    ] = 1000
    bytes_per_second_max: Annotated[
        int, number("payloads each way, on average; 0: no limit", LIVE, "bytes", 0, 2**60)
    ] = 0
    session_expiry_seconds: Annotated[
        int, number(
            "how long both brokers keep messages while the other one is away, or shorter by their own limits; "
            "4294967295: for ever", LIVE, "seconds", 60, 2**32 - 1
        )
    ] = 2**32 - 1
    keep_alive_seconds: Annotated[
        int, number("silence after which a connection counts as lost, times 1.5; 0: never", LIVE, "seconds", 0, 65_535)
    ] = 60
    retry_seconds_max: Annotated[
        float, number("longest pause between attempts to connect, which never end", LIVE, "seconds", 0.1, 3600)
    ] = 60.0
